package http

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/jobs"
)

// remade deletes a namespace, and makes it anew.
func (c *chronicle) remade(namespace string) {
	c.api.Delete("namespaces", namespace)
	c.api.Put("namespaces", namespace)
}

// A namespace is deleted, and somebody else makes one of the same name, as they can where users
// make their own. What its former tenant did in it is not theirs, in no view and by no path; who
// may see all namespaces sees both.
func TestHistoryOfANamespaceIsNotItsNextTenants(t *testing.T) {
	c := newChronicle(t)
	c.lives("blue/merger", "alice", "", jobs.Running, jobs.Failed, jobs.Deleted)
	blue := "/history/apis/batch/v1/namespaces/blue/jobs"
	paths := []string{
		allJobs, blue, blue + "/merger", allJobs + "?view=transitions", blue + "?view=transitions", allJobs + "?view=usage&by=owner", blue + "?view=usage&by=owner", allJobs + "?owner=alice",
		allJobs + "?state=Deleted",
	}
	c.access.permit("mallory", auth.Scope{Namespaces: []string{"blue"}})
	c.access.permit("eve", auth.Scope{Names: map[string][]string{"blue": {"merger"}}})
	for _, path := range paths {
		if a := c.get(path, "Authorization: Bearer mallory"); a.code != 200 || !strings.Contains(a.body, "alice") {
			t.Errorf("%s in the namespace's own life: %d %.100s", path, a.code, a.body)
		}
	}
	c.remade("blue")
	for _, user := range []string{"mallory", "eve"} {
		for _, path := range paths {
			if a := c.get(path, "Authorization: Bearer "+user); strings.Contains(a.body, "merger\"") && a.code == 200 || strings.Contains(a.body, "alice") {
				t.Errorf("%s tells %s of the former tenant: %d %.150s", path, user, a.code, a.body)
			}
		}
	}
	c.lives("blue/next", "mallory", "", jobs.Running)
	c.tells(allJobs, "mallory", "next:Running")
	c.tells(blue, "mallory", "next:Running")
	c.tells(blue, "bob", "next:Running merger:Deleted")
	c.tells(blue+"?view=transitions", "bob", "next:→Running merger:Failed→Deleted merger:Running→Failed merger:→Running")
	c.api.Delete("namespaces", "blue")
	c.tells(blue, "mallory", "")
	c.tells(blue, "bob", "next:Running merger:Deleted")
}

// Where it cannot be asked which namespaces there are, nothing is shown to whom it matters: neither
// what is theirs, nor what may not be.
func TestHistoryIsUnavailableWhereNamespacesCannotBeAskedFor(t *testing.T) {
	c := newChronicle(t)
	c.lives("blue/one", "alice", "", jobs.Running)
	c.access.permit("narrow", auth.Scope{Namespaces: []string{"blue"}})
	for _, code := range []int{403, 500} {
		c.api.Intercept(func(r *http.Request) *apitest.Fault {
			if r.URL.Path == "/api/v1/namespaces/blue" {
				return apitest.Refuse(code)
			}
			return nil
		})
		if a := c.get(allJobs, "Authorization: Bearer narrow"); a.code != 503 || a.header.Get("Retry-After") == "" || strings.Contains(a.body, apitest.SecretDetail) {
			t.Errorf("%d: %d %s", code, a.code, a.body)
		}
		c.tells(allJobs, "alice", "one:Running")
	}
	c.api.Intercept(nil)
	c.tells(allJobs, "narrow", "one:Running")
}

// A namespace is made anew while streams run whose callers may see it in both of its lives, and
// while some are cut off: from then on they are told of the new one, each transition once, and
// nothing more of the old one.
func TestHistoryStreamGoesOnInANamespaceThatIsMadeAnew(t *testing.T) {
	c := newChronicle(t)
	c.runs("blue/one")
	c.access.permit("narrow", auth.Scope{Namespaces: []string{"blue"}})
	for _, path := range []string{allJobs, "/history/apis/batch/v1/namespaces/blue/jobs"} {
		s := c.stream(path, "Authorization: Bearer narrow")
		s.until("synced")
		cut := s.lastID
		former := c.api.UID("namespaces", "blue")
		c.remade("blue")
		c.runs("blue/two", "red/hidden", "blue/three")
		c.livesIn(former, "blue/late", "alice", "", jobs.Running)
		c.runs("blue/four")
		again := c.stream(path, "Authorization: Bearer narrow", "Last-Event-ID: "+cut)
		for _, from := range []*events{s, again} {
			for _, want := range []string{"two", "three", "four"} {
				if f := from.until("transition"); f.field("name") != want {
					t.Errorf("%s: %s instead of %s", path, f.raw, want)
				}
			}
		}
		s.close()
		again.close()
	}
}

// A namespace is made while streams run that were opened before there was one, and the recorder
// could not learn which it is. What is younger than the namespace is its own, as on a page.
func TestHistoryStreamTellsOfANamespaceThatWasMissing(t *testing.T) {
	c := newChronicle(t)
	c.runs("red/one")
	c.access.permit("narrow", auth.Scope{Namespaces: []string{"blue"}})
	for _, path := range []string{allJobs, "/history/apis/batch/v1/namespaces/blue/jobs"} {
		s := c.stream(path, "Authorization: Bearer narrow")
		s.until("synced")
		c.livesIn("", "blue/nobodys", "alice", "", jobs.Running)
		c.livesIn("", "blue/nobodys-too", "alice", "", jobs.Running)
		c.api.Put("namespaces", "blue", apitest.Set("metadata.creationTimestamp", (c.at+30_000).Std().UTC().Format(time.RFC3339)))
		c.livesIn("", "blue/own", "bob", "", jobs.Running)
		if f := s.until("transition"); f.field("name") != "own" {
			t.Errorf("%s: %s", path, f.raw)
		}
		c.livesIn("", "blue/next", "bob", "", jobs.Running)
		if f := s.until("transition"); f.field("name") != "next" {
			t.Errorf("%s: %s", path, f.raw)
		}
		s.close()
		c.api.Delete("namespaces", "blue")
	}
}
