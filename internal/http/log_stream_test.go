package http

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// saidOf is what a frame of a stream of logs says.
func saidOf(f frame) string {
	name := f.event[strings.LastIndexByte(f.event, '.')+1:]
	switch name {
	case "line":
		return f.field("pod") + "/" + f.field("container") + " " + f.field("text")
	case "started", "ended":
		return strings.TrimSpace(name + " " + f.field("pod") + "/" + f.field("container") + "#" + f.field("restart") + " " + f.field("reason") + " " + f.field("exitCode"))
	case "reset":
		return "reset " + f.field("reason") + " " + f.field("pod")
	case "goodbye":
		return "goodbye " + f.field("reason")
	}
	return name
}

// says reads the next events, which must be these.
func (s *events) says(want ...string) {
	s.t.Helper()
	for _, w := range want {
		if got := saidOf(s.next()); got != w {
			s.t.Fatalf("%q in place of %q", got, w)
		}
	}
}

func TestLogsAreFollowedThroughRestartsToTheEnd(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one", "two <&> \x1b[1m\"three\"")
		s := g.stream("/logs/api/v1/namespaces/a/pods/web")
		s.says("started web/main#0", "web/main one", "web/main two <&> \x1b[1m\"three\"", "synced")
		k.writes("a/web", "main", "four")
		began := time.Now()
		s.says("web/main four")
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("a line took %v", took)
		}
		k.writes("a/web", "main", "last")
		k.exits("a/web", "main", 3)
		s.says("web/main last", "ended web/main#0 Error 3")
		k.backsOff("a/web", "main")
		time.Sleep(time.Second)
		k.starts("a/web", "main")
		k.writes("a/web", "main", "again")
		s.says("started web/main#1", "web/main again")
		// Another container of the pod, and a pod of the same name.
		k.starts("a/web", "side")
		k.writes("a/web", "side", "beside")
		s.says("started web/side#0", "web/side beside")
		g.api.Delete("pods", "a/web")
		k.vanishes("a/web")
		ends := []string{saidOf(s.next()), saidOf(s.next())}
		if slices.Sort(ends); !slices.Equal(ends, []string{"ended web/main#1 Deleted", "ended web/side#0 Deleted"}) {
			t.Errorf("%q", ends)
		}
		k.starts("a/web", "main")
		k.writes("a/web", "main", "anew")
		s.says("started web/main#0", "web/main anew")
	})
}

// TestLogsOfAJobAreThoseOfItsPods, of those that come later, and of what stands between.
func TestLogsOfAJobAreThoseOfItsPods(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		g.api.Put("jobs", "a/train", "metadata.uid=u")
		k.ownedPod("a/mine", ownedBy("Job", "batch/v1", "train"))
		k.ownedPod("a/late", ownedBy("Job", "batch/v1", "train"))
		k.ownedPod("a/grandchild", ownedBy("Deployment", "apps/v1", "between"))
		k.starts("a/mine", "main")
		k.starts("a/other", "main")
		k.writes("a/mine", "main", "mine")
		k.writes("a/other", "main", "not mine")
		s := g.stream("/logs/apis/batch/v1/namespaces/a/jobs/train")
		s.says("started mine/main#0", "mine/main mine", "synced")
		k.starts("a/late", "main")
		k.writes("a/late", "main", "late")
		s.says("started late/main#0", "late/main late")
		// What stands between may come later than the pod, by its own watch.
		k.starts("a/grandchild", "main")
		time.Sleep(time.Second)
		g.api.Put("deployments", "a/between", "metadata.uid=u", ownedBy("Job", "batch/v1", "train"))
		k.writes("a/grandchild", "main", "grandchild")
		s.says("started grandchild/main#0", "grandchild/main grandchild")
		// What is there now is all of it, also where the owners between have to be read first.
		if a := g.get("/logs/apis/batch/v1/namespaces/a/jobs/train?follow=false", "Accept: text/plain", "Authorization: Bearer bob"); !strings.Contains(a.body, "grandchild/main grandchild") {
			t.Errorf("%q", a.body)
		}
		if a := g.get("/logs/apis/batch/v1/namespaces/a/jobs", "Accept: text/event-stream"); a.code != 404 {
			t.Errorf("all jobs: %d", a.code)
		}
	}, between)
}

// Whoever is cut off anywhere, and comes back to whatever replica, is told what follows, once:
// while connections to the API server break, containers are started again, and pods come and go.
func TestLogStreamGoesOnBehindEachLine(t *testing.T) {
	for seed := range uint64(6) {
		withKubelet(t, 2, func(t *testing.T, k *kubelet, replicas []*gateway) {
			random := rand.New(rand.NewPCG(seed, 7))
			const path = "/logs/api/v1/namespaces/a/pods?tailLines=100000"
			var want sync.Map // by pod: how many lines were written
			done := make(chan struct{})
			var writing sync.WaitGroup
			pods := []string{"p0", "p1", "p2", "late"}
			for i, pod := range pods {
				likes := rand.New(rand.NewPCG(seed, uint64(20+i)))
				write := func(count int) {
					for range count {
						n := 0
						if known, ok := want.Load(pod); ok {
							n = known.(int)
						}
						lines := make([]string, 1+likes.IntN(5))
						for j := range lines {
							lines[j] = strconv.Itoa(n + j)
						}
						k.writes("a/"+pod, "main", lines...)
						want.Store(pod, n+len(lines))
						time.Sleep(time.Duration(likes.IntN(40)) * time.Millisecond)
					}
				}
				writing.Go(func() {
					if pod == "late" {
						time.Sleep(3 * time.Second)
					}
					k.starts("a/"+pod, "main")
					write(300)
					for likes.IntN(3) > 0 {
						k.exits("a/"+pod, "main", 1)
						time.Sleep(time.Duration(likes.IntN(1500)) * time.Millisecond)
						k.starts("a/"+pod, "main")
						write(150)
						time.Sleep(2 * time.Second) // nobody misses more than one run
					}
					k.exits("a/"+pod, "main", 0)
				})
			}
			go func() {
				writing.Wait()
				close(done)
			}()
			next := map[string]int{}
			position, ended := "", map[string]int{}
			finished := func() bool {
				select {
				case <-done:
				default:
					return false
				}
				for _, pod := range pods {
					if n, _ := want.Load(pod); n != next[pod] {
						return false
					}
				}
				return true
			}
			for deadline := time.Now().Add(10 * time.Minute); !finished(); {
				if time.Now().After(deadline) {
					t.Fatalf("seed %d: not all comes: %v", seed, next)
				}
				if random.IntN(4) == 0 {
					k.breakAll()
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(100+random.IntN(1500))*time.Millisecond)
				g := replicas[random.IntN(2)]
				headers := []string{"Accept: text/event-stream"}
				if position != "" {
					headers = append(headers, "Last-Event-ID: "+position)
				}
				response, err := g.client.Do(g.newRequest(ctx, http.MethodGet, path, headers))
				if err == nil {
					s := &events{t: t, response: response, body: bufio.NewReader(response.Body), lastID: position}
					for most := random.IntN(400); most > 0; most-- {
						f, err := s.read()
						if err != nil {
							break
						}
						if f.id != "" {
							position = f.id
						}
						switch pod := f.field("pod"); f.event {
						case "line":
							if n, _ := strconv.Atoi(f.field("text")); n != next[pod] {
								t.Fatalf("seed %d: of %s comes %d in place of %d (%s)", seed, pod, n, next[pod], f.raw)
							}
							next[pod]++
						case "ended":
							ended[pod+f.field("restart")]++
						case "reset", "goodbye":
							t.Fatalf("seed %d: %s", seed, f.raw)
						}
					}
					_ = response.Body.Close()
				}
				cancel()
				time.Sleep(time.Duration(random.IntN(800)) * time.Millisecond)
			}
			for run, times := range ended {
				if times != 1 {
					t.Errorf("seed %d: the end of %s was told %d times", seed, run, times)
				}
			}
			pass(time.Minute)
			for _, g := range replicas { // nothing is left behind
				if left := g.server.feeds.Stats(); len(left) > 0 {
					t.Errorf("seed %d: still followed: %+v", seed, left)
				}
			}
		})
	}
}

// TestNobodySeesLogsThatTheyMayNotGet, now, while it runs, and by whatever path.
func TestNobodySeesLogsThatTheyMayNotGet(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		for _, pod := range []string{"a/web", "b/web"} {
			k.starts(pod, "main")
			k.writes(pod, "main", "of "+pod)
		}
		g.access.permit("bob", auth.Scope{Namespaces: []string{"a"}})
		for _, path := range []string{"/logs/api/v1/namespaces/b/pods/web", "/logs/api/v1/namespaces/b/pods", "/logs/apis/batch/v1/namespaces/b/jobs/x"} {
			if a := g.get(path, "Accept: text/event-stream", "Authorization: Bearer bob"); a.code != 403 || !strings.Contains(a.body, "pods/log") {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		s := g.stream("/logs/api/v1/pods", "Authorization: Bearer bob")
		s.expect("narrowed")
		s.says("started web/main#0", "web/main of a/web", "synced")
		g.access.permit("bob", auth.Scope{Namespaces: []string{"b"}})
		s.expect("narrowed")
		k.writes("a/web", "main", "not for bob")
		k.writes("b/web", "main", "for bob")
		s.says("started web/main#0", "web/main of b/web", "web/main for bob")
		g.access.permit("bob", auth.Scope{})
		pass(time.Second)
		k.writes("b/web", "main", "no more")
		if left := s.end(); len(left) != 1 || left[0].String() != "goodbye revoked" {
			t.Errorf("%v", left)
		}
	})
}

// detailOf is what an answer says of what is wrong.
func detailOf(a answer) string {
	var problem struct{ Detail string }
	_ = json.Unmarshal([]byte(a.body), &problem) // what is none says nothing
	return problem.Detail
}

func TestLogStreamsRefuseWhatTheyDoNotKnow(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		k.starts("a/web", "main", "side")
		known := all[0].stream("/logs/api/v1/namespaces/a/pods/web") // so that the pods are known
		known.until("synced")
		known.close()
		const pod = "/logs/api/v1/namespaces/a/pods/web"
		for path, want := range map[string]string{
			"/logs/":          "404 below /logs stands",
			"/logs/api/v1/x":  "404 below /logs stands",
			"/logs/apis/b/v1": "404 below /logs stands",
			"/logs/apis/batch/v1/namespaces/a/cronjobs/x":              "404 the server could not find",
			"/logs/clusters/none" + pod[5:]:                            "404",
			pod + "?tailLines=-1":                                      "400 tailLines: \"-1\" is not a number",
			pod + "?tailLines=1&tailLines=2":                           "400 tailLines: given more than once",
			pod + "?sinceTime=yesterday":                               "400 sinceTime: \"yesterday\" is not a time",
			pod + "?sinceSeconds=0":                                    "400 sinceSeconds",
			pod + "?sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z":     "400 sinceTime and sinceSeconds",
			pod + "?follow=perhaps":                                    "400 follow: \"perhaps\"",
			pod + "?previous=true":                                     "400 previous: there is no such parameter",
			pod + "?labelSelector=a":                                   "400 labelSelector and fieldSelector",
			pod + "?container=none":                                    "400 container: pod web has no such container; it has main, side",
			pod + "?container=,":                                       "400 container",
			pod + "?search=%ff":                                        "400 search",
			"/logs/api/v1/namespaces/a/pods?labelSelector=((":          "400",
			"/stream?l=/logs/api/v1/namespaces/a/pods%3FtailLines%3Dx": "400 l: tailLines",
			"/stream?l=/logs/apis/batch/v1/namespaces/a/jobs":          "404 l: below /logs",
		} {
			if a := all[0].get(path, "Accept: text/event-stream"); !strings.HasPrefix(fmt.Sprint(a.code, " ", detailOf(a)), want) {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		if a := all[0].get(pod, "Accept: application/json"); a.code != 406 {
			t.Errorf("as JSON: %d", a.code)
		}
	})
}

// TestLogsAreReadAsText by whoever does not ask for events, and look complete only if they are.
func TestLogsAreReadAsText(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one", "two")
		const path = "/logs/api/v1/namespaces/a/pods/web"
		if a := g.get(path+"?follow=false", "Accept: */*"); a.code != 200 || a.body != "one\ntwo\n" || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
			t.Errorf("%d %q", a.code, a.body)
		}
		pass(time.Second)
		k.starts("a/web", "side")
		k.writes("a/web", "side", "three")
		pass(time.Second)
		if a := g.get(path+"?follow=false&search=t", "Accept: text/plain"); a.body != "web/main two\nweb/side three\n" {
			t.Errorf("%q", a.body)
		}
		response := g.follow(path, "Accept: text/plain")
		reader := bufio.NewReader(response.Body)
		for range 3 {
			if _, err := reader.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		go g.drain()
		if rest, err := io.ReadAll(reader); err == nil {
			t.Errorf("what was cut looks complete: %q", rest)
		}
	})
}

// TestWhatIsThereIsToldOnce to a client that does not follow: an EventSource that comes back is told to stop.
func TestWhatIsThereIsToldOnce(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one")
		const path = "/logs/api/v1/namespaces/a/pods/web?follow=false"
		s := g.stream(path)
		s.says("started web/main#0", "web/main one", "synced", "goodbye gone")
		s.end()
		if a := g.get(path, "Accept: text/event-stream", "Last-Event-ID: "+s.lastID); a.code != 204 || a.body != "" {
			t.Errorf("%d %q", a.code, a.body)
		}
	})
}

func TestTooManyLogsOnAStream(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		for i := range 3 {
			k.starts(fmt.Sprint("a/few-", i), "main")
		}
		s := g.stream("/logs/api/v1/namespaces/a/pods")
		if s.until("goodbye").field("reason") != "limit" {
			t.Error("a third container of a user who may follow two")
		}
		s.end()
		one := g.stream("/logs/api/v1/namespaces/a/pods/few-0")
		one.until("synced")
		g.eventually("its connection is counted", func() bool { return g.metric("kubecast_log_upstreams", "streams") > 0 })
		for i := range 65 {
			k.starts(fmt.Sprint("a/many-", i), "main")
		}
		pass(time.Second)
		if a := g.get("/logs/api/v1/namespaces/a/pods", "Accept: text/event-stream", "Authorization: Bearer bob"); a.code != 422 || !strings.Contains(a.body, "64") {
			t.Errorf("%d %s", a.code, a.body)
		}
		k.writes("a/few-0", "main", "goes on")
		one.says("few-0/main goes on")
		one.close()
		pass(time.Minute)
		if n := g.metric("kubecast_log_upstreams", "streams"); n != 0 {
			t.Errorf("%v connections are counted, and nobody reads", n)
		}
	}, options(func(o *Options) { o.Limits.Logs = LogLimits{Total: 100, PerUser: 2} }))
}

// Logs on one stream share the room in its ids: without that, a client would come back with an id
// that nobody can read, and be told everything again.
func TestLogsOnOneStreamShareItsIDs(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		g.get("/api/v1/pods")
		for i := range 33 {
			k.starts(fmt.Sprint("a/web-", i), "main")
			k.writes(fmt.Sprint("a/web-", i), "main", "one", "two")
			if i < 32 {
				k.starts(fmt.Sprint("b/web-", i), "main")
				k.writes(fmt.Sprint("b/web-", i), "main", "one", "two")
			}
		}
		pass(time.Second)
		both := func(a, b string) string {
			return "/stream?a=" + escape("/logs/api/v1/namespaces/"+a+"/pods") + "&b=" + escape("/logs/api/v1/namespaces/"+b+"/pods")
		}
		const is = "Accept: text/event-stream"
		if a := g.get(both("b", "a"), is); a.code != 422 || !strings.Contains(a.body, "b: this selects more than the 32 containers") {
			t.Errorf("%d %s", a.code, a.body)
		}
		s := g.stream(both("b", "b"))
		for synced := 0; synced < 2; { // in whichever order
			if strings.HasSuffix(s.next().event, ".synced") {
				synced++
			}
		}
		k.writes("b/web-0", "main", "three")
		s.until("a.line")
		s.close()
		if len(s.lastID) > 4096 || strings.Count(s.lastID, "-") < 5*64 {
			t.Errorf("%d bytes: %s", len(s.lastID), s.lastID)
		}
		back := g.stream(both("b", "b"), "Last-Event-ID: "+s.lastID)
		k.writes("b/web-0", "main", "four")
		if e := back.until("a.line"); e.field("text") != "four" && e.field("text") != "three" {
			t.Errorf("told again: %s", e.raw)
		}
	})
}

// TestPositionsOfLogsThatAreNoneAreReset, whatever they are.
func TestPositionsOfLogsThatAreNoneAreReset(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one")
		s := g.stream("/logs/api/v1/namespaces/a/pods/web")
		s.until("synced")
		epoch, _, _ := strings.Cut(s.lastID, ".")
		for _, bad := range []string{"p", "p9", "p1-x", "p1-x-0-0-0-!", "p1-x-0-0-0-zzzzzzzzzzzzzzzzz", "7"} {
			id := epoch + ".l-" + bad
			back := g.stream("/logs/api/v1/namespaces/a/pods/web", "Last-Event-ID: "+id)
			back.says("reset unreadable ", "started web/main#0", "web/main one", "synced")
			back.close()
		}
		// One that is of another file: what is later is told.
		at := s.lastID[strings.LastIndexByte(s.lastID, '-'):]
		back := g.stream("/logs/api/v1/namespaces/a/pods/web", "Last-Event-ID: "+strings.TrimSuffix(s.lastID, at)+"-1")
		back.says("reset expired web")
		pass(2 * time.Second)
		k.writes("a/web", "main", "two")
		back.says("web/main two")
	})
}
