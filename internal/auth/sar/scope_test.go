package sar

import (
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

var _ auth.Authorizer = (*Authorizer)(nil)

// fixedNamespaces are the namespaces of a cluster called default; nil: not known.
type fixedNamespaces []string

func (n fixedNamespaces) Names(cluster string) ([]string, bool) {
	return n, n != nil && cluster == "default"
}

func (n fixedNamespaces) Changes(func()) func() { return func() {} }

// allowIn answers as if every user may see these namespaces; "" is all of them.
func (f *fakeReviewer) allowIn(namespaces ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = func(spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: slices.Contains(namespaces, spec.ResourceAttributes.Namespace)}, nil
	}
}

var everywhere = auth.Request{Cluster: "default", Verb: "list", Resource: "pods"}

func TestScopeBySubjectAccessReviews(t *testing.T) {
	for name, c := range map[string]struct {
		known   fixedNamespaces
		allowed []string
		want    auth.Scope
		asked   int
	}{
		"all":                 {fixedNamespaces{"a", "b", "c"}, []string{""}, auth.Scope{All: true}, 1},
		"some":                {fixedNamespaces{"a", "b", "c"}, []string{"a", "c"}, auth.Scope{Namespaces: []string{"a", "c"}}, 4},
		"none":                {fixedNamespaces{"a", "b", "c"}, nil, auth.Scope{}, 4},
		"namespaces unknown":  {nil, []string{"a"}, auth.Scope{}, 1},
		"too many namespaces": {make(fixedNamespaces, maxReviewedNamespaces+1), []string{"a"}, auth.Scope{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f := newFakeSAR(Options{})
				s.namespaces = c.known
				f.allowIn(c.allowed...)
				got, err := s.Scope(t.Context(), jane, auth.Request{Cluster: "default", Verb: "list", Resource: "pods", Name: "ignored"})
				if err != nil || !got.Equal(c.want) || f.count() != c.asked {
					t.Errorf("%+v, %v after %d questions; want %+v after %d", got, err, f.count(), c.want, c.asked)
				}
			})
		})
	}
}

// A scope of one namespace is one question, however many namespaces there are.
func TestScopeOfANamespaceIsOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(Options{})
		s.namespaces = fixedNamespaces{"a", "b", "c"}
		f.allowIn("a")
		for namespace, want := range map[string]auth.Scope{"a": {Namespaces: []string{"a"}}, "b": {}} {
			before := f.count()
			got, err := s.Scope(t.Context(), jane, auth.Request{Cluster: "default", Verb: "list", Resource: "pods", Namespace: namespace})
			if err != nil || !got.Equal(want) || f.count() != before+1 {
				t.Errorf("%s: %+v, %v after %d questions", namespace, got, err, f.count()-before)
			}
		}
	})
}

// A scope of which a part is not known is an error: clients would be told that the missing part was deleted.
func TestScopeWithAnUnansweredQuestionIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(Options{})
		s.namespaces = fixedNamespaces{"a", "b", "c"}
		f.answer = func(spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
			if spec.ResourceAttributes.Namespace == "b" {
				return authorizationv1.SubjectAccessReviewStatus{}, errors.New("overload")
			}
			return authorizationv1.SubjectAccessReviewStatus{Allowed: spec.ResourceAttributes.Namespace == "a"}, nil
		}
		if got, err := s.Scope(t.Context(), jane, everywhere); !errors.Is(err, auth.ErrUndecided) || !got.Empty() {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestScopeDoesNotStormTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(Options{})
		for i := range maxReviewedNamespaces {
			s.namespaces = append(s.namespaces.(fixedNamespaces), fmt.Sprintf("n%03d", i))
		}
		f.allowIn()
		f.takes = time.Second
		began := time.Now()
		if _, err := s.Scope(t.Context(), jane, everywhere); err != nil {
			t.Fatal(err)
		}
		rounds := (maxReviewedNamespaces + reviewsPerUser - 1) / reviewsPerUser
		if took := time.Since(began); took < time.Duration(rounds)*time.Second {
			t.Errorf("%d questions in %v: more than %d at once", f.count(), took, reviewsPerUser)
		}
	})
}

// When all clients come at once, the API server is asked a few questions at a time, and no question times out while
// it waits for its turn. A question about one namespace does not wait for them.
func TestScopesOfManyAreAskedAboutInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(Options{Timeout: 2 * time.Second})
		var namespaces fixedNamespaces
		for i := range 20 {
			namespaces = append(namespaces, fmt.Sprintf("n%02d", i))
		}
		s.namespaces = namespaces
		f.allowIn("n07")
		f.takes = time.Second
		var asking sync.WaitGroup
		for i := range 40 {
			asking.Go(func() {
				scope, err := s.Scope(t.Context(), auth.Identity{Username: fmt.Sprint("user", i), Groups: []string{"all"}}, everywhere)
				if err != nil || !scope.Equal(auth.Scope{Namespaces: []string{"n07"}}) {
					t.Errorf("user %d: %+v, %v", i, scope, err)
				}
			})
		}
		time.Sleep(1500 * time.Millisecond) // by now the question about the whole cluster was asked for all of them
		synctest.Wait()
		if most := f.mostAtOnce(); most > 2*reviewsAtOnce {
			t.Errorf("%d questions at once, not %d in each line", most, reviewsAtOnce)
		}
		time.Sleep(time.Second) // for those that had to wait
		began := time.Now()
		mustDecide(t, s, jane, request, false)
		if took := time.Since(began); took != time.Second {
			t.Errorf("a question about one namespace took %s", took)
		}
		asking.Wait()
		if took, want := time.Since(began), time.Duration(40*20/reviewsAtOnce)*time.Second; took < want-2*time.Second || took > want+2*time.Second {
			t.Errorf("all of it took %s, not about %s", took, want)
		}
	})
}
