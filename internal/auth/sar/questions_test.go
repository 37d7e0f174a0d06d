package sar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/kubecast/kubecast/internal/auth"
)

func manyNamespaces(n int) (names fixedNamespaces) {
	for i := range n {
		names = append(names, fmt.Sprintf("n%03d", i))
	}
	return names
}

// However much one user asks, another one waits only for a turn or two. Questions about running streams do not wait
// for any of that, not even those of the user who asks so much.
func TestUserWhoAsksForMuchDelaysNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(Options{})
		s.namespaces = manyNamespaces(maxReviewedNamespaces)
		f.allowIn("n007")
		f.takes = 10 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		mallory := auth.Identity{Username: "mallory", Groups: []string{"all"}}
		for i := range 200 {
			asking.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					_, _ = s.Scope(ctx, mallory, auth.Request{Cluster: "default", Verb: "watch", Resource: fmt.Sprintf("x%dy%d", i, n)})
				}
			})
		}
		time.Sleep(time.Second)
		took := func(ask func()) time.Duration {
			began := time.Now()
			ask()
			return time.Since(began)
		}
		if d := took(func() { mustDecide(t, s, jane, request, false) }); d > 50*time.Millisecond {
			t.Errorf("another one's question took %s", d)
		}
		alone := 10 * time.Millisecond * (maxReviewedNamespaces/reviewsPerUser + 2)
		if d := took(func() {
			if scope, err := s.Scope(ctx, jane, everywhere); err != nil || !slices.Equal(scope.Namespaces, []string{"n007"}) {
				t.Errorf("%+v %v", scope, err)
			}
		}); d > 2*alone {
			t.Errorf("another one's scope took %s, and alone %s", d, alone)
		}
		if d := took(func() {
			running := auth.WhileRunning(ctx)
			if scope, err := s.Scope(running, mallory, everywhere); err != nil || !slices.Equal(scope.Namespaces, []string{"n007"}) {
				t.Errorf("%+v %v", scope, err)
			}
		}); d > 2*alone {
			t.Errorf("a running stream's scope took %s, and alone %s", d, alone)
		}
		cancel()
		asking.Wait()
	})
}

// The questions of one request are bounded. That one request has asked too much is no answer for another request.
func TestQuestionsOfOneRequestAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(Options{CacheDeny: time.Minute, CacheAllow: time.Minute})
		s.namespaces = manyNamespaces(100)
		f.allowIn("n007")
		ctx := auth.WithQuestions(t.Context(), 150)
		if _, err := s.Scope(ctx, jane, everywhere); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Scope(ctx, jane, everywhere); err != nil {
			t.Errorf("what is remembered counts: %v", err)
		}
		second := everywhere
		second.Resource = "jobs"
		if _, err := s.Scope(ctx, jane, second); !errors.Is(err, auth.ErrTooManyQuestions) || !errors.Is(err, auth.ErrUndecided) {
			t.Errorf("%v", err)
		}
		if n := f.count(); n > 150 {
			t.Errorf("%d questions", n)
		}
		var asking sync.WaitGroup
		for i := range 4 {
			asking.Go(func() {
				ctx := t.Context()
				if i%2 == 0 {
					ctx = auth.WithQuestions(ctx, 20)
				}
				if scope, err := s.Scope(ctx, jane, second); i%2 == 1 && (err != nil || len(scope.Namespaces) != 1) {
					t.Errorf("beside one who may not ask: %+v %v", scope, err)
				}
			})
		}
		asking.Wait()
	})
}

// A question about a URL that is not a resource is asked as such.
func TestQuestionsAboutPathsAreAboutPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(Options{CacheAllow: time.Minute, CacheDeny: time.Minute})
		f.answer = func(spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
			a := spec.NonResourceAttributes
			return authorizationv1.SubjectAccessReviewStatus{Allowed: spec.ResourceAttributes == nil && a.Verb == "get" && a.Path == "/apis"}, nil
		}
		mustDecide(t, s, jane, auth.Request{Cluster: "default", Verb: "get", Path: "/apis"}, true)
		mustDecide(t, s, jane, auth.Request{Cluster: "default", Verb: "get", Path: "/openapi/v2"}, false)
	})
}
