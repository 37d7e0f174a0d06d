package http

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

const nodeSays = "unable to retrieve container logs for containerd://0123"

// cannotTell has the kubelet answer as one does whose runtime has no file any more: 200, what can
// be told, and a sentence.
func (k *kubelet) cannotTell() {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ended := httpRequestWithoutFollow(r)
		k.ServeHTTP(w, ended)
		_, _ = io.WriteString(w, nodeSays)
	})
	k.instead.Store(&answer)
}

// httpRequestWithoutFollow is a request for what is there.
func httpRequestWithoutFollow(r *http.Request) *http.Request {
	q := r.URL.Query()
	q.Del("follow")
	once := r.Clone(r.Context())
	once.URL.RawQuery = q.Encode()
	return once
}

// A log that a node cannot tell is not an empty one, nor one that ended: its clients are told what
// the node says, and no line of it.
func TestLogThatANodeCannotTellIsNotComplete(t *testing.T) {
	const path = "/logs/api/v1/namespaces/a/pods/web"
	for _, ends := range []bool{false, true} {
		for _, lines := range [][]string{nil, {"one"}} {
			withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
				g := all[0]
				k.starts("a/web", "main")
				k.writes("a/web", "main", lines...)
				if ends {
					k.exits("a/web", "main", 0)
				}
				k.cannotTell()
				want := []string{"started web/main#0"}
				for _, line := range lines {
					want = append(want, "web/main "+line)
				}
				want = append(want, "reset unavailable web")

				s := g.stream(path + "?follow=false")
				s.says(append(want, "goodbye unavailable")...)

				response := g.follow(path+"?follow=false", "Accept: text/plain")
				text, err := io.ReadAll(response.Body)
				if err == nil || !strings.Contains(string(text), nodeSays) || strings.Contains(string(text), "1970") {
					t.Errorf("as text it looks complete: %q", text)
				}

				s = g.stream(path)
				s.says(want[:len(want)-1]...)
				if reset := s.next(); saidOf(reset) != "reset unavailable web" || reset.field("message") != nodeSays {
					t.Errorf("%s", reset.raw)
				}
				s.says("synced")
				for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); {
					if f := s.frame(); f.event != "bookmark" && f.event != "" {
						t.Errorf("more is told of what cannot be read: %s", f.raw)
					}
				}
				if !ends {
					k.instead.Store(nil)
					k.writes("a/web", "main", "and on")
					s.says("web/main and on")
				}
			})
		}
	}
}

// A client that follows a log is told when no more of it can be had, though what was there had been told.
func TestFollowedLogThatCannotGoOnSaysSo(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one")
		s := all[0].stream("/logs/api/v1/namespaces/a/pods/web")
		s.says("started web/main#0", "web/main one", "synced")
		k.cannotTell()
		k.breakAll()
		if reset := s.next(); saidOf(reset) != "reset unavailable web" || reset.field("message") != nodeSays {
			t.Errorf("%s", reset.raw)
		}
		k.instead.Store(nil)
		k.writes("a/web", "main", "two")
		s.says("web/main two")
	})
}

// A node that is down answers nothing, and the API server says so after half a minute: long after
// what is there should have come.
func TestFollowedLogOfANodeThatIsDownSaysSo(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one")
		down := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(30 * time.Second):
				http.Error(w, "dial tcp: i/o timeout", http.StatusInternalServerError)
			case <-r.Context().Done():
			}
		})
		k.instead.Store(&down)
		s := all[0].stream("/logs/api/v1/namespaces/a/pods/web")
		s.says("started web/main#0", "synced", "reset unavailable web")
		k.instead.Store(nil)
		s.says("web/main one")
	})
}
