package http

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// A namespace is made anew with a pod, and an owner, of the names that the former tenant had. Their
// logs are those of the new ones alone, also for who comes back with a position from before; though
// the ring still has what the old ones wrote. Whoever was connected all the time goes on.
func TestLogsOfANamespaceThatIsMadeAnewAreTheNewOnes(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		paths := []string{"/logs/api/v1/namespaces/blue/pods/web", "/logs/api/v1/namespaces/blue/pods", "/logs/apis/batch/v1/namespaces/blue/jobs/train"}
		g.access.permit("mallory", in("blue"))
		const as = "Authorization: Bearer mallory"
		life := func(uid, line string) {
			g.api.Put("namespaces", "blue")
			g.api.Put("jobs", "blue/train", "metadata.uid="+uid)
			k.ownedPod("blue/web", strings.ReplaceAll(ownedBy("Job", "batch/v1", "train"), `"uid":"u"`, `"uid":"`+uid+`"`))
			k.starts("blue/web", "main")
			k.writes("blue/web", "main", line)
		}
		life("first", "of the former")
		var connected []*events
		var positions []string
		for _, path := range paths {
			s := g.stream(path, as)
			s.says("started web/main#0", "web/main of the former", "synced")
			connected, positions = append(connected, s), append(positions, s.lastID)
		}
		g.api.Delete("pods", "blue/web")
		g.api.Delete("jobs", "blue/train")
		g.api.Delete("namespaces", "blue")
		k.vanishes("blue/web")
		life("second", "own")
		for i, path := range paths {
			var told []string
			for range 3 {
				told = append(told, saidOf(connected[i].next()))
			}
			if slices.Sort(told); !slices.Equal(told, []string{"ended web/main#0 Deleted", "started web/main#0", "web/main own"}) {
				t.Errorf("%s: %q", path, told)
			}
			for _, position := range []string{"", positions[i]} {
				s := g.stream(path, as, "Last-Event-ID: "+position)
				s.says("started web/main#0", "web/main own")
				s.close()
			}
			if a := g.get(path+"?follow=false", as, "Accept: text/plain"); !strings.Contains(a.body, "own") || strings.Contains(a.body, "former") {
				t.Errorf("%s: %s", path, a.body)
			}
		}
	})
}

// A kind that stands between an owner and its pods cannot be read for long. Until it can, nobody
// knows whose the pods are: the client is told that something is missing, and not that there is
// nothing; then it is told all of it.
func TestPodsBehindAKindThatCannotBeReadAreWaitedFor(t *testing.T) {
	for name, test := range map[string]struct {
		breaks func(*gateway)
		reason string
	}{
		"fails": {func(g *gateway) { g.api.Fail("deployments", 500) }, "unreachable"},
		"hangs": {func(g *gateway) { g.api.Hang("deployments") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
				g := all[0]
				test.breaks(g)
				g.access.permit("ann", auth.Scope{All: true})
				g.api.Put("jobs", "a/train", "metadata.uid=u")
				g.api.Put("deployments", "a/between", "metadata.uid=u", ownedBy("Job", "batch/v1", "train"))
				k.ownedPod("a/web", ownedBy("Deployment", "apps/v1", "between"))
				k.starts("a/web", "main")
				k.writes("a/web", "main", "one")
				const path = "/logs/apis/batch/v1/namespaces/a/jobs/train"
				// Whoever asks only for what is there is not told that this is nothing.
				once := g.stream(path + "?follow=false")
				once.says("stale", "goodbye unavailable")
				once.close()
				text, err := g.client.Do(g.newRequest(t.Context(), "GET", path+"?follow=false", []string{"Accept: text/plain", "Accept-Encoding: identity"}))
				if err != nil {
					t.Fatal(err)
				}
				if all, err := io.ReadAll(text.Body); err == nil {
					t.Errorf("as text, it looks complete: %q", all)
				}
				s := g.stream(path + "?heartbeat=1m") // or it would be cut while nobody reads
				began := time.Now()
				if f := s.next(); f.event != "stale" || test.reason != "" && f.field("reason") != test.reason || time.Since(began) > 2*time.Second {
					t.Fatalf("after %v: %q", time.Since(began), f.raw)
				}
				several := g.stream("/stream?mine=" + escape(path) + "&jobs=/apis/batch/v1/jobs")
				for _, want := range []string{"jobs.added", "jobs.synced", "mine.stale"} {
					if f := several.next(); f.event != want {
						t.Fatalf("%q in place of %s", f.raw, want)
					}
				}
				several.close()
				time.Sleep(12 * time.Second) // longer than owners are waited for that are not there
				g.api.Fail("deployments", 0)
				s.says("started web/main#0", "web/main one", "synced", "live")
				several = g.stream("/stream?mine="+escape(path)+"&jobs=/apis/batch/v1/jobs", "Last-Event-ID: "+several.lastID)
				if f := several.until("mine.line"); f.field("text") != "one" {
					t.Errorf("%q", f.raw)
				}
				several.until("mine.synced")
				several.close()
				k.writes("a/web", "main", "two")
				s.says("web/main two")
			}, between)
		})
	}
}
