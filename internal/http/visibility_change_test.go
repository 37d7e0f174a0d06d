package http

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/stream"
)

func in(namespaces ...string) auth.Scope { return auth.Scope{Namespaces: namespaces} }

const asAnn = "Authorization: Bearer ann"

func TestStreamsAreNarrowedAndWidened(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for _, key := range []string{"a/a1", "b/b1", "c/c1"} {
			g.api.Put("pods", key, "spec.secret="+key)
		}
		g.access.permit("ann", in("a"))
		s := g.stream("/api/v1/pods", asAnn)
		if f := s.expect("narrowed", "added a1", "synced"); f.field("count") != "1" {
			t.Errorf("%s", f.data)
		}
		g.api.Put("pods", "b/b2")
		g.api.Put("pods", "a/a2")
		s.expect("added a2")

		g.access.permit("ann", in("a", "b"))
		if f := s.next(); f.event != "widened" || f.data != `{"namespaces":["a","b"]}` {
			t.Errorf("%q", f.raw)
		}
		s.expect("added b1", "added b2")
		g.api.Put("pods", "b/b1", "spec.n:=1")
		s.expect("modified b1")

		g.access.permit("ann", auth.Scope{Namespaces: []string{"c"}, Names: map[string][]string{"b": {"b1"}}})
		if f := s.next(); f.event != "narrowed" || f.data != `{"namespaces":["c"],"names":{"b":["b1"]}}` {
			t.Errorf("%q", f.raw)
		}
		for _, name := range []string{"a1", "a2", "b2"} {
			f := s.expect("deleted " + name)
			if !regexp.MustCompile(`^\{"apiVersion":"v1","kind":"Pod","metadata":\{"name":"` + name + `","namespace":"[ab]","uid":"uid-\d+","resourceVersion":"\d+"\}\}$`).MatchString(f.data) {
				t.Errorf("%s", f.data)
			}
		}
		s.expect("widened", "added c1")
		g.api.Put("pods", "a/a1", "spec.n:=2")
		g.api.Put("pods", "b/b2", "spec.n:=2")
		g.api.Put("pods", "b/b1", "spec.n:=2")
		s.expect("modified b1")

		g.access.permit("ann", auth.Scope{All: true})
		if f := s.next(); f.event != "widened" || f.data != `{"all":true,"namespaces":[]}` {
			t.Errorf("%q", f.raw)
		}
		s.expect("added a1", "added a2", "added b2")
		g.access.permit("ann", in())
		if left := s.end(); len(left) == 0 || left[len(left)-1].String() != "goodbye revoked" {
			t.Errorf("%v", left)
		}
		if response := g.open("/api/v1/pods", asAnn, "Last-Event-ID: "+s.lastID).response; response.StatusCode != 403 {
			t.Errorf("%s", response.Status)
		}
	})
}

// A change of permissions takes effect within a second, also while they change all the time.
func TestChangedPermissionsTakeEffectWithinASecond(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "a/a1")
		g.api.Put("pods", "b/b1")
		g.access.permit("ann", in("a", "b"))
		s := g.stream("/api/v1/pods", asAnn)
		s.expect("narrowed", "added a1", "added b1", "synced")
		pass(3 * time.Second)
		for range 100 {
			g.access.permit("ann", in("a", "b")) // which is nothing new
			pass(20 * time.Millisecond)
		}
		if asked := g.access.questions(); asked > 60 {
			t.Errorf("%d questions in two seconds", asked)
		}
		began := time.Now()
		g.access.permit("ann", in("a"))
		s.expect("narrowed", "deleted b1")
		if took := time.Since(began); took >= time.Second {
			t.Errorf("after %v", took)
		}
	})
}

// Some events wait to be told while their caller's permissions change. Those of objects that may
// still be seen are told. The others are left out in silence: of objects that came in between, the
// caller does not even learn the names.
func TestPermissionsChangeWhileEventsWait(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for _, key := range []string{"a/known", "b/known", "b/gone", "b/left"} {
			g.api.Put("pods", key, "metadata.labels.app=web")
		}
		g.access.permit("ann", in("a", "b"))
		s := g.stream("/api/v1/pods?labelSelector=app%3Dweb", asAnn)
		s.expect("narrowed", "added known", "added gone", "added known", "added left", "synced")
		synctest.Wait()
		g.api.Put("pods", "a/first", "metadata.labels.app=web")
		s.expect("added first") // from here on events wake readers only in ten seconds
		hang := make(chan struct{})
		g.access.set(func(a *fakeAuth) { a.hang = hang })
		g.access.permit("ann", in("a"))
		pass(time.Second) // it is being asked what that means
		g.api.Put("pods", "a/known", "metadata.labels.app=web", "spec.n:=1")
		g.api.Put("pods", "a/new", "metadata.labels.app=web")
		g.api.Put("pods", "b/known", "metadata.labels.app=web", "spec.n:=1")
		g.api.Put("pods", "b/new", "metadata.labels.app=web")
		g.api.Put("pods", "b/other", "metadata.labels.app=db")
		g.api.Put("pods", "b/left", "metadata.labels.app=db")
		g.api.Delete("pods", "b/gone")
		g.api.Put("pods", "b/brief", "metadata.labels.app=web")
		g.api.Delete("pods", "b/brief")
		synctest.Wait()
		close(hang)
		s.expect("modified known", "added new", "narrowed", "deleted known", "deleted left", "deleted gone")
		g.api.Put("pods", "a/last", "metadata.labels.app=web")
		s.expect("added last")
	}, cached(stream.Options{Events: 1000, Bytes: 64 << 20, Age: time.Hour, Gather: 10 * time.Second}))
}

// What is held back to be conflated is told before the client's sight changes, for else nothing would tell it.
func TestHeldModificationsSurviveAChangeOfPermissions(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "a/a1")
		g.api.Put("pods", "b/b1")
		g.access.permit("ann", in("a", "b"))
		s := g.stream("/api/v1/pods?conflate=1m", asAnn)
		s.expect("narrowed", "added a1", "added b1", "synced")
		for n := range 3 {
			for _, key := range []string{"a/a1", "b/b1"} {
				g.api.Put("pods", key, fmt.Sprintf("spec.n:=%d", n))
				synctest.Wait()
			}
		}
		s.expect("modified a1", "modified b1")
		g.access.permit("ann", in("a"))
		if f := s.expect("modified a1"); f.field("spec", "n") != "2" {
			t.Errorf("%s", f.data)
		}
		s.expect("narrowed", "deleted b1")
	})
}

// A client that is cut off while it is told of a change of permissions has been told only a part of
// it. So it begins anew, whatever it may see when it comes back. And a position of other
// permissions says nothing.
func TestPositionsOfOtherPermissionsAreReset(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "a/a1")
		g.api.Put("pods", "b/b1")
		g.api.Put("pods", "b/b2")
		g.access.permit("ann", in("a"))
		resume := func(id string) *events { return g.stream("/api/v1/pods", asAnn, "Last-Event-ID: "+id) }
		s := g.stream("/api/v1/pods", asAnn)
		s.expect("narrowed", "added a1", "synced")
		narrow := s.lastID
		if s = resume(narrow); s.next().event != "narrowed" {
			t.Error("the same permissions are not said again")
		}
		g.access.permit("ann", in("a", "b"))
		s.expect("widened", "added b1")
		within := s.lastID
		s.expect("added b2")
		if f := s.frame(); f.event != "bookmark" {
			t.Errorf("%q", f.raw)
		}
		after := s.lastID
		s.close()
		for id, want := range map[string]string{narrow: "reset epoch", within: "reset epoch", after: "narrowed"} {
			if f := resume(id).next(); f.String() != want {
				t.Errorf("%s, which may see both: %s", id, f)
			}
		}
		g.access.permit("ann", in("a"))
		for id, want := range map[string]string{narrow: "narrowed", within: "reset epoch", after: "reset epoch"} {
			if f := resume(id).next(); f.String() != want {
				t.Errorf("%s, which may see one: %s", id, f)
			}
		}
		g.access.permit("ann", auth.Scope{All: true})
		resume(after).expect("reset epoch", "widened", "added a1", "added b1", "added b2", "synced")
	})
}

// A permission that is taken away while a snapshot is sent, to somebody who reads slowly, is no
// longer in its rest; and what was sent is taken back.
func TestSnapshotIsBegunAnewWhenPermissionsChange(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		pad := "metadata.annotations.pad=" + strings.Repeat("x", 10000)
		for i := range 60 {
			g.api.Put("pods", fmt.Sprintf("a/a%02d", i), pad)
			g.api.Put("pods", fmt.Sprintf("b/b%02d", i), pad)
		}
		g.access.permit("ann", in("a", "b"))
		s := g.stream("/api/v1/pods", asAnn)
		s.expect("narrowed", "added a00")
		pass(time.Second) // it is stuck, for nobody reads
		g.access.permit("ann", in("b"))
		synctest.Wait()
		for f := s.next(); f.String() != "reset epoch"; f = s.next() {
			if f.String() == "added b59" {
				t.Fatal("the snapshot went on to its end")
			}
		}
		if f := s.next(); f.event != "narrowed" || f.data != `{"namespaces":["b"]}` {
			t.Errorf("%q", f.raw)
		}
		want := make([]string, 0, 61)
		for i := range 60 {
			want = append(want, fmt.Sprintf("added b%02d", i))
		}
		s.expect(append(want, "synced")...)
	})
}

// Permissions are widened, and taken back while the client is slowly being told of that. It is told
// what it may see in the end.
func TestPermissionsThatChangeBackMeanwhileAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		pad := "metadata.annotations.pad=" + strings.Repeat("x", 10000)
		g.api.Put("pods", "a/a1")
		for i := range 60 {
			g.api.Put("pods", fmt.Sprintf("b/b%02d", i), pad)
		}
		g.access.permit("ann", in("a"))
		s := g.stream("/api/v1/pods", asAnn)
		s.expect("narrowed", "added a1", "synced")
		g.access.permit("ann", in("a", "b"))
		pass(time.Second) // it is stuck, for nobody reads
		g.access.permit("ann", in("a"))
		synctest.Wait()
		s.expect("widened")
		for f := s.next(); f.String() != "reset epoch"; f = s.next() {
			if f.String() == "added b59" {
				t.Fatal("what may not be seen any more was told to its end")
			}
		}
		if f := s.next(); f.event != "narrowed" || f.data != `{"namespaces":["a"]}` {
			t.Errorf("%q", f.raw)
		}
		s.expect("added a1", "synced")
	})
}

// A client in Kubernetes' own form is told 410, so that it lists again.
func TestKubernetesWatchEndsWhenPermissionsChange(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "a/a1")
		g.api.Put("pods", "b/b1")
		g.access.permit("ann", in("a"))
		w := g.watch("/api/v1/pods?watch=true", asAnn)
		w.expect("ADDED a1")
		g.api.Put("pods", "b/b2")
		g.api.Put("pods", "a/a2")
		w.expect("ADDED a2")
		g.access.permit("ann", in("a", "b"))
		w.expect("ERROR 410")
		w.end()
		w = g.watch("/api/v1/pods?watch=true", asAnn)
		w.expect("ADDED a1", "ADDED a2", "ADDED b1", "ADDED b2")
		g.access.permit("ann", in())
		w.end()
	})
}
