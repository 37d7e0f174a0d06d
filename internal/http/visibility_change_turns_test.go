package http

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// TestWhoseSightChangesTakesTurns: what a change of permissions takes to be told is done in slices,
// as what a stream begins with.
func TestWhoseSightChangesTakesTurns(t *testing.T) {
	g := newGateway(t, manyPods(4000), cached(streamOptions(), "pods"))
	g.eventually("pods are there", func() bool { return len(g.list("/api/v1/pods?fields=metadata.name").Items) == 4000 })
	g.access.permit("ann", in("ns-00"))
	s := g.stream("/api/v1/pods?fieldSelector="+escape("spec.n!=-1,spec.a!=x,spec.b!=x,spec.c!=x,status.d=y"), asAnn)
	s.until("synced")
	var releases []func()
	for range runtime.GOMAXPROCS(0) {
		release, err := g.server.processors.Take(t.Context(), "bob")
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	g.access.permit("ann", in("ns-00", "ns-01", "ns-02", "ns-03", "ns-04", "ns-05", "ns-06", "ns-07", "ns-08"))
	told := make(chan struct{})
	go func() {
		defer close(told)
		for f, err := s.read(); err == nil && f.event != "bookmark"; f, err = s.read() {
		}
	}()
	wait, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	select {
	case <-told:
		t.Error("all was selected anew without a turn")
	case <-wait.Done():
	}
	for _, release := range releases {
		release()
	}
	<-told
}
