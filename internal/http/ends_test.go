package http

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/stream"
)

// TestPlannedEndsSayWhyAndLeaveTheNewestPosition: the client is told what it needs to come back.
func TestPlannedEndsSayWhyAndLeaveTheNewestPosition(t *testing.T) {
	for name, test := range map[string]struct {
		reason      string
		set         func(*gateway)
		after, till time.Duration // of the stream
		bookmark    bool
		soon        bool // it may come back at once, since its end was at a random moment
	}{
		"age": {"age", nil, 48 * time.Minute, time.Hour, true, true},
		"token": {"expired", func(g *gateway) { g.access.expires = time.Now().Add(10 * time.Minute) },
			10 * time.Minute, 10 * time.Minute, true, false},
		"revoked": {"revoked", func(g *gateway) {
			began := time.Now()
			g.access.decide = func(auth.Identity, auth.Request) (bool, error) { return time.Since(began) < 5*time.Minute, nil }
		}, 5 * time.Minute, 5*time.Minute + 10*time.Second, false, false},
		"drain": {"drain", func(g *gateway) {
			context.AfterFunc(timeout(g.t, 5*time.Minute), g.drain)
		}, 5 * time.Minute, 5*time.Minute + 20*time.Second, true, true},
		"nobody can say whether it is allowed": {"unavailable", func(g *gateway) {
			began := time.Now()
			g.access.decide = func(auth.Identity, auth.Request) (bool, error) {
				if time.Since(began) < 5*time.Minute {
					return true, nil
				}
				return false, fmt.Errorf("%w: %s", auth.ErrUndecided, apitest.SecretDetail)
			}
		}, 5*time.Minute + 50*time.Second, 5*time.Minute + 80*time.Second, false, false},
		"the authorizer hangs": {"unavailable", func(g *gateway) {
			began := time.Now()
			g.access.decide = func(auth.Identity, auth.Request) (bool, error) {
				if time.Since(began) > 5*time.Minute {
					pass(5 * time.Second) // the real one's own bound
					return false, auth.ErrUndecided
				}
				return true, nil
			}
		}, 5*time.Minute + 50*time.Second, 5*time.Minute + 90*time.Second, false, false},
		"the authorizer never answers": {"unavailable", func(g *gateway) {
			context.AfterFunc(timeout(g.t, 5*time.Minute), func() { g.access.set(func(a *fakeAuth) { a.hang = make(chan struct{}) }) })
		}, 5*time.Minute + 50*time.Second, 5*time.Minute + 75*time.Second, false, false},
		"what is permitted cannot be confirmed any more": {"unavailable", func(g *gateway) {
			began := time.Now()
			g.access.decide = func(auth.Identity, auth.Request) (bool, error) {
				if time.Since(began) < 5*time.Minute {
					return true, nil
				}
				return false, fmt.Errorf("%w: %s", auth.ErrUnconfirmed, apitest.SecretDetail)
			}
		}, 5 * time.Minute, 5*time.Minute + 10*time.Second, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				if test.set != nil {
					g.access.set(func(*fakeAuth) { test.set(g) })
				}
				g.api.Put("pods", "team-a/web")
				began := time.Now()
				s := g.stream("/stream?p=/api/v1/pods")
				s.expect("p.added web", "p.synced")
				version := g.api.Put("pods", "team-b/new")
				left := s.end()
				if took := time.Since(began); took < test.after || took > test.till {
					t.Errorf("ended after %v", took)
				}
				last := left[len(left)-1]
				if last.String() != "goodbye "+test.reason || last.id != fmt.Sprintf("%s.p-%d", systemEpoch, version) {
					t.Errorf("the last frame is %q", last.raw)
				}
				if before := left[len(left)-2]; test.bookmark && before.event != "p.bookmark" {
					t.Errorf("before goodbye comes %q", before.raw)
				}
				var retry time.Duration
				for _, f := range left {
					retry = max(retry, f.retry)
				}
				if within := retry >= 100*time.Millisecond && retry <= 500*time.Millisecond; within != test.soon || !within && retry != 0 {
					t.Errorf("the client is to come back after %v", retry)
				}
			})
		})
	}
}

// timeout is a context that ends after a while, or with the test.
func timeout(t testing.TB, after time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), after)
	t.Cleanup(cancel)
	return ctx
}

// TestExpiringIsToldAMinuteAhead, so that a client can fetch another token.
func TestExpiringIsToldAMinuteAhead(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		expires := time.Now().Add(10 * time.Minute)
		g.access.set(func(a *fakeAuth) { a.expires = expires })
		s := g.stream("/api/v1/pods")
		f := s.until("expiring")
		if ahead := time.Until(expires); ahead != time.Minute {
			t.Errorf("told %v ahead", ahead)
		}
		if f.field("at") != expires.UTC().Format(time.RFC3339) || f.id == "" {
			t.Errorf("%q", f.raw)
		}
	})
}

// TestExpiringOfAShortTokenIsNotToldAtOnce: who was told so would renew, come back, and be told at once again.
func TestExpiringOfAShortTokenIsNotToldAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		expires := time.Now().Add(30 * time.Second)
		g.access.set(func(a *fakeAuth) { a.expires = expires })
		s := g.stream("/api/v1/pods")
		s.until("expiring")
		if ahead := time.Until(expires); ahead != 10*time.Second {
			t.Errorf("told %v ahead", ahead)
		}
	})
}

// TestTokenThatEndsWhileTheKindIsRead: there is no position yet that could be told, only the client's own.
func TestTokenThatEndsWhileTheKindIsRead(t *testing.T) {
	for _, position := range []string{"", id(42), "otherone.p-5", "unreadable\u00ff"} {
		inBubble(t, func(t *testing.T, g *gateway) {
			g.access.set(func(a *fakeAuth) { a.expires = time.Now().Add(30 * time.Second) })
			s := g.stream("/api/v1/pods?lastEventId=" + escape(position))
			echoed := strings.ReplaceAll(position, "unreadable\u00ff", "")
			if f := s.expect("stale starting", "stale unreachable"); f.id != echoed {
				t.Errorf("%q: %q", position, f.raw)
			}
			if f := s.expect("expiring"); f.id != echoed {
				t.Errorf("%q: %q", position, f.raw)
			}
			if f := s.expect("goodbye expired"); f.id != echoed {
				t.Errorf("%q: %q", position, f.raw)
			}
			s.end()
		}, before(func(api *apitest.API) { api.Hang("pods") }), options(func(o *Options) { o.SyncTimeout = time.Hour }))
	}
}

// A client whose permission was taken away is told nothing of what happened in the meantime.
func TestRevokedClientGetsNotAByteMore(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		s := g.stream("/api/v1/pods")
		s.expect("synced")
		// The authorizer says no from now on, but answers only when a secret has been put.
		hang := make(chan struct{})
		g.access.set(func(a *fakeAuth) {
			a.hang = hang
			a.decide = func(auth.Identity, auth.Request) (bool, error) { return false, nil }
		})
		asked := g.access.questions()
		for g.access.questions() == asked {
			s.frame()
		}
		g.api.Put("pods", "team-a/while-it-is-asked")
		s.expect("added while-it-is-asked") // an authorizer that takes its time holds up nothing
		close(hang)
		s.expect("goodbye revoked")
		if left := s.end(); len(left) > 0 {
			t.Errorf("after goodbye comes %q", left[0].raw)
		}
	})
}

// TestEveryWatchOfAStreamIsAskedForAgain, each with its own name and namespace.
func TestEveryWatchOfAStreamIsAskedForAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		s := g.stream("/stream?a=/api/v1/pods&b=/api/v1/namespaces/team-b/pods/web&c=/clusters/default/apis/batch/v1/jobs")
		s.until("c.synced")
		g.access.set(func(a *fakeAuth) {
			a.asked = nil
			a.decide = func(_ auth.Identity, r auth.Request) (bool, error) { return r.Resource != "jobs", nil }
		})
		s.until("goodbye")
		g.access.mu.Lock()
		defer g.access.mu.Unlock()
		asked := map[auth.Request]bool{}
		for _, r := range g.access.asked {
			asked[r] = true
		}
		for _, want := range []auth.Request{
			{Cluster: "default", Verb: "watch", Version: "v1", Resource: "pods"},
			{Cluster: "default", Verb: "watch", Version: "v1", Resource: "pods", Namespace: "team-b", Name: "web"},
			{Cluster: "default", Verb: "watch", Group: "batch", Version: "v1", Resource: "jobs"},
		} {
			if !asked[want] {
				t.Errorf("not asked: %+v", want)
			}
		}
	})
}

// TestOutageOfTheAPIServerEndsNoStream: while it is away permissions do not change there, and the client is told that
// what it sees is stale.
func TestOutageOfTheAPIServerEndsNoStream(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		s := g.stream("/api/v1/pods")
		s.expect("synced")
		g.access.set(func(a *fakeAuth) {
			a.decide = func(auth.Identity, auth.Request) (bool, error) { return false, auth.ErrUndecided }
		})
		g.api.Fail(apitest.Everything, http.StatusServiceUnavailable)
		g.api.CutWatches("pods")
		s.expect("stale unreachable")
		for began := time.Now(); time.Since(began) < 20*time.Minute; {
			if f := s.frame(); f.event == "goodbye" {
				t.Fatalf("%q", f.raw)
			}
		}
		g.access.set(func(a *fakeAuth) { a.decide = nil })
		g.api.Fail(apitest.Everything, 0)
		s.expect("live live")
		g.api.Put("pods", "team-a/web")
		s.expect("added web")
	})
}

// TestClientThatIsAlwaysBehindEndsInTime: however much there is to read, a token ends and a server drains. The client
// takes one event a second, while there is always another one.
func TestClientThatIsAlwaysBehindEndsInTime(t *testing.T) {
	ends := map[string]func(*gateway){
		"expired": func(g *gateway) { g.access.expires = time.Now().Add(20 * time.Second) },
		"drain":   func(g *gateway) { context.AfterFunc(timeout(g.t, 10*time.Second), g.drain) },
		"revoked": func(g *gateway) {
			began := time.Now()
			g.access.decide = func(auth.Identity, auth.Request) (bool, error) { return time.Since(began) < 10*time.Second, nil }
		},
	}
	for name, end := range ends {
		for _, size := range []int{eventstream.FlushAt / 8, eventstream.FlushAt} { // sent with others, or each by itself
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				inBubble(t, func(t *testing.T, g *gateway) {
					g.access.set(func(*fakeAuth) { end(g) })
					s := g.stream("/api/v1/pods")
					s.until("synced")
					began, made := time.Now(), 0
					put := func() {
						made++
						g.api.Put("pods", fmt.Sprintf("team-a/pod-%d", made), "spec.pad="+noise(size))
						g.eventually("it is cached", func() bool { return g.kinds.All()[0].Snapshot().Len() == made })
					}
					for range 3 {
						put()
					}
					for {
						put()
						f := s.frame()
						if f.event == "goodbye" {
							if f.String() != "goodbye "+name {
								t.Errorf("%q", f.raw)
							}
							break
						}
						if took := time.Since(began); took > 35*time.Second {
							t.Fatalf("after %v it goes on", took)
						}
						pass(time.Second)
					}
				}, cached(stream.Options{Events: 100000, Bytes: 1 << 30, Age: time.Hour}))
			})
		}
	}
}

// TestTokenThatEndsInTheMiddleOfASnapshot: who reads slowly does not see more for it.
func TestTokenThatEndsInTheMiddleOfASnapshot(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		pad := noise(eventstream.FlushAt)
		for i := range 100 {
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%02d", i), "spec.pad="+pad)
		}
		expires := time.Now().Add(20 * time.Second)
		g.access.set(func(a *fakeAuth) { a.expires = expires })
		s := g.stream("/api/v1/pods")
		for f := s.frame(); f.event != "goodbye"; f = s.frame() {
			if f.event == "synced" || time.Since(expires) > 2*time.Second {
				t.Fatalf("%v after its end: %q", time.Since(expires), f.event)
			}
			s.lastID = f.id
			pass(time.Second)
		}
		if s.lastID != id(0) {
			t.Errorf("the position left is %q, though the snapshot is not complete", s.lastID)
		}
	})
}

// A client that asks first for a catch-up that has no answer does not keep its place until the answer's deadline.
func TestClientThatBeganACatchUpMayLeave(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "team-a/web")
		g.watches("pods", 1)
		g.stream("/api/v1/pods").expect("added web", "synced")
		g.api.Hang("pods") // the question for the history has no answer
		defer g.api.Fail("pods", 0)
		conn, _ := g.rawStream("/api/v1/pods?lastEventId=" + id(900))
		g.eventually("it is open", func() bool { return g.streams() == 2 })
		pass(200 * time.Millisecond)
		conn.Close()
		began := time.Now()
		g.eventually("its stream has ended", func() bool { return g.streams() == 1 })
		if took := time.Since(began); took > time.Second {
			t.Errorf("the stream went on for %v after its client had left", took)
		}
	}, cached(streamOptions(), "pods"))
}
