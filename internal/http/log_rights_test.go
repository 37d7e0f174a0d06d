package http

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// may has bob do some things in the namespace a, such as "get pods/log" or "get jobs train", and
// nothing else; nor may he read discovery.
func (g *gateway) may(things ...string) {
	g.access.set(func(a *fakeAuth) {
		a.strangers = []string{"bob"}
		a.decide = func(id auth.Identity, r auth.Request) (bool, error) {
			thing := r.Verb + " " + r.Resource
			if r.Subresource != "" {
				thing += "/" + r.Subresource
			}
			return id.Username != "bob" || r.Namespace == "a" && (slices.Contains(things, thing) || r.Name != "" && slices.Contains(things, thing+" "+r.Name)), nil
		}
		for changed, of := range a.changed {
			if of == "bob" {
				go (*changed)()
			}
		}
	})
}

// logsOf is what bob is answered, and how long that takes.
func (g *gateway) logsOf(path string) (answer string, took time.Duration) {
	began := time.Now()
	a := g.get("/logs"+path, "Accept: text/plain", "Authorization: Bearer bob")
	return fmt.Sprint(a.code, " ", strings.TrimSpace(a.body)), time.Since(began)
}

// Each form of address needs what kubectl logs would need, and without it tells nothing of what
// there is: not of fields of pods, not of objects, not of kinds.
func TestLogsAreFoundOnlyInWhatTheirCallerMaySee(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		g.api.Put("jobs", "a/train", "metadata.uid=u")
		k.ownedPod("a/web", ownedBy("Job", "batch/v1", "train"))
		k.starts("a/web", "main")
		k.writes("a/web", "main", "hello")
		const pods, job = "/api/v1/namespaces/a/pods", "/apis/batch/v1/namespaces/a/jobs/"
		for _, test := range []struct {
			may        []string
			path, want string
		}{
			{[]string{"get pods/log"}, pods + "/web?follow=false", "200 hello"},
			{[]string{"get pods/log web"}, pods + "/web?follow=false", "200 hello"},
			{[]string{"get pods", "list pods"}, pods + "/web?follow=false", "403 cannot get resource \"pods/log\""},
			{[]string{"get pods/log", "list pods"}, pods + "?follow=false", "200 hello"},
			{[]string{"get pods/log", "get pods"}, pods + "?follow=false", "403 cannot list resource \"pods\""},
			{[]string{"list pods"}, pods + "?follow=false", "403 cannot get resource \"pods/log\""},
			{[]string{"get pods/log", "list pods", "get jobs"}, job + "train?follow=false", "200 hello"},
			{[]string{"get pods/log", "list pods", "get jobs train"}, job + "train?follow=false", "200 hello"},
			{[]string{"get pods/log", "get jobs"}, job + "train?follow=false", "403 cannot list resource \"pods\""},
			{[]string{"get pods/log", "list pods", "list jobs"}, job + "train?follow=false", "403 cannot get resource \"jobs\""},
			{[]string{"get pods/log", "list pods", "get jobs other"}, job + "train?follow=false", "403 cannot get resource \"jobs\""},
			{[]string{"get pods/log", "list pods"}, "/api/v1/namespaces/a/secrets/train?follow=false", "404 below /logs stands"},
		} {
			g.may(test.may...)
			code, words, _ := strings.Cut(test.want, " ")
			if got, _ := g.logsOf(test.path); !strings.HasPrefix(got, code) || !strings.Contains(got, strings.ReplaceAll(words, `"`, `\"`)) {
				t.Errorf("%q %s: %s, not %s", test.may, test.path, got, test.want)
			}
		}
		// Whoever may read the text alone is told the same, whatever there is.
		g.may("get pods/log")
		for yes, no := range map[string]string{
			pods + "?fieldSelector=status.containerStatuses.0.name=main": pods + "?fieldSelector=status.containerStatuses.0.name=other",
			pods + "?labelSelector=!x":                                   pods + "?labelSelector=x",
			job + "train":                                                job + "none",
			"/apis/apps/v1/namespaces/a/deployments/x":                   "/apis/apps/v1/namespaces/a/gadgetries/x",
		} {
			same := strings.NewReplacer("none", "train", "gadgetries", "deployments").Replace
			if a, _ := g.logsOf(yes); a != same(func() string { b, _ := g.logsOf(no); return b }()) || !strings.HasPrefix(a, "403") {
				t.Errorf("%s is answered otherwise than %s: %s", yes, no, a)
			}
		}
	}, between)
}

// Whoever makes pods and chooses their owners must not learn, by how long an answer takes, whether
// objects or kinds exist of which they may see nothing. What is there and may not be seen takes the
// way of what is not there.
func TestLogsOfOwnersTakeAsLongWhateverMayNotBeSeen(t *testing.T) {
	took := func(may []string, owner string, there bool) (d time.Duration) {
		withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
			g := all[0]
			g.api.Put("jobs", "a/mine")
			if there {
				g.api.Put("deployments", "a/project-x", "metadata.uid=u")
			}
			k.ownedPod("a/probe", owner)
			k.starts("a/probe", "main")
			g.may(append(may, "get pods/log", "list pods", "get jobs")...)
			ask := func() time.Duration {
				answer, took := g.logsOf("/apis/batch/v1/namespaces/a/jobs/mine?follow=false")
				if answer != "200 " {
					t.Errorf("%q", answer)
				}
				return took.Round(100 * time.Millisecond)
			}
			ask() // the kinds are read now
			time.Sleep(time.Second)
			d = ask()
		}, between)
		return d
	}
	deployment := ownedBy("Deployment", "apps/v1", "project-x")
	forged := strings.ReplaceAll(deployment, `"uid":"u"`, `"uid":"guessed"`)
	for name, test := range map[string]struct {
		may        []string
		one, other string
	}{
		"nothing of the kind":           {nil, deployment, deployment},
		"nothing of it, and no kind":    {nil, deployment, ownedBy("Gadgetry", "apps/v1", "project-x")},
		"another of the kind":           {[]string{"get deployments other"}, deployment, deployment},
		"all of the kind, but no uid":   {[]string{"get deployments"}, forged, forged},
		"what the gateway never serves": {nil, ownedBy("Secret", "v1", "project-x"), ownedBy("Gadgetry", "v1", "project-x")},
	} {
		if there, not := took(test.may, test.one, true), took(test.may, test.other, false); there != not {
			t.Errorf("%s: %v if it is there, %v if not", name, there, not)
		}
	}
}

// What belongs to an owner by what stands between is found where the caller may get that, too, and
// a pod that only says it belongs is not.
func TestOnlyPodsThatBelongByWhatMayBeSeenAreToldAsAnOwners(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		g.api.Put("jobs", "a/train", "metadata.uid=u")
		g.api.Put("deployments", "a/between", "metadata.uid=u", ownedBy("Job", "batch/v1", "train"))
		k.ownedPod("a/mine", ownedBy("Job", "batch/v1", "train"))
		k.ownedPod("a/grandchild", ownedBy("Deployment", "apps/v1", "between"))
		k.ownedPod("a/forged", strings.ReplaceAll(ownedBy("Job", "batch/v1", "train"), `"uid":"u"`, `"uid":"guessed"`))
		for _, pod := range []string{"a/mine", "a/grandchild", "a/forged"} {
			k.starts(pod, "main")
			k.writes(pod, "main", "of "+pod)
		}
		g.may("get pods/log", "list pods", "get jobs", "get deployments")
		const path = "/apis/batch/v1/namespaces/a/jobs/train?follow=false"
		if a, _ := g.logsOf(path); !strings.Contains(a, "of a/mine") || !strings.Contains(a, "of a/grandchild") || strings.Contains(a, "forged") {
			t.Errorf("%q", a)
		}
		g.may("get pods/log", "list pods", "get jobs")
		if a, _ := g.logsOf(path); a != "200 of a/mine" {
			t.Errorf("without what stands between: %q", a)
		}
	}, between)
}

// A stream of logs ends once one of the things that it needs may not be done any more.
func TestLogsEndWithEachPermissionThatTheyNeed(t *testing.T) {
	needs := []string{"get pods/log", "list pods", "get jobs"}
	for _, lost := range needs {
		withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
			g := all[0]
			g.api.Put("jobs", "a/train", "metadata.uid=u")
			k.ownedPod("a/web", ownedBy("Job", "batch/v1", "train"))
			k.starts("a/web", "main")
			k.writes("a/web", "main", "hello")
			g.may(needs...)
			s := g.stream("/logs/apis/batch/v1/namespaces/a/jobs/train", "Authorization: Bearer bob")
			s.says("started web/main#0", "web/main hello", "synced")
			g.may(slices.DeleteFunc(slices.Clone(needs), func(need string) bool { return need == lost })...)
			pass(time.Second)
			k.writes("a/web", "main", "no more")
			if left := s.end(); len(left) != 1 || left[0].String() != "goodbye revoked" {
				t.Errorf("without %s: %v", lost, left)
			}
		}, between)
	}
}
