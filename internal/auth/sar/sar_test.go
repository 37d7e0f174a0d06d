package sar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/kubecast/kubecast/internal/auth"
)

var _ Reviewer = authorizationclient.SubjectAccessReviewInterface(nil)

// fakeReviewer answers as it is told, after a while, and counts the questions.
type fakeReviewer struct {
	mu     sync.Mutex
	asked  []authorizationv1.SubjectAccessReviewSpec
	now    int // under way
	most   int // the most that were under way at once
	takes  time.Duration
	answer func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)
}

func (f *fakeReviewer) Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	f.mu.Lock()
	f.asked = append(f.asked, review.Spec)
	f.now++
	f.most = max(f.most, f.now)
	takes, answer := f.takes, f.answer
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.now--
	}()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	status, err := answer(review.Spec)
	if err != nil {
		return nil, err
	}
	return &authorizationv1.SubjectAccessReview{Status: status}, nil
}

func (f *fakeReviewer) mostAtOnce() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.most
}

func (f *fakeReviewer) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

func (f *fakeReviewer) say(allowed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: allowed, Reason: fmt.Sprint(allowed)}, nil
	}
}

func newFakeSAR(opts Options) (*Authorizer, *fakeReviewer) {
	f := &fakeReviewer{takes: 100 * time.Millisecond}
	f.say(true)
	s := New(fixedNamespaces(nil), opts)
	s.Add("default", f)
	return s, f
}

var (
	jane    = auth.Identity{Username: "jane", Groups: []string{"team-b", "team-a"}}
	request = auth.Request{Cluster: "default", Verb: "watch", Group: "batch", Version: "v1", Resource: "jobs", Subresource: "status", Namespace: "ns", Name: "n"}
	briefly = Options{CacheAllow: 10 * time.Second, CacheDeny: 5 * time.Second}
)

func mustDecide(t *testing.T, s *Authorizer, id auth.Identity, req auth.Request, allowed bool) {
	t.Helper()
	d, err := s.Authorize(t.Context(), id, req)
	if err != nil || d.Allowed != allowed {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestTheWholeQuestionIsPut(t *testing.T) {
	s, f := newFakeSAR(briefly)
	mustDecide(t, s, jane, request, true)
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "jane", Groups: []string{"team-a", "team-b"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "watch", Group: "batch", Version: "v1", Resource: "jobs", Subresource: "status", Namespace: "ns", Name: "n"},
	}
	if diff := cmp.Diff(want, f.asked[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(jane.Groups, []string{"team-b", "team-a"}) {
		t.Error("the caller's groups were sorted under it")
	}
}

func TestAllowIsNotHonouredLongerThanCacheAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(briefly)
		f.takes = 3 * time.Second
		mustDecide(t, s, jane, request, true) // asked at 0, answered at 3 s
		f.say(false)
		time.Sleep(7 * time.Second)
		mustDecide(t, s, jane, request, true) // 10 s: still the first answer
		if f.count() != 1 {
			t.Errorf("asked %d times", f.count())
		}
		time.Sleep(time.Nanosecond)
		mustDecide(t, s, jane, request, false) // the time counts from the question, although the answer came later
		if f.count() != 2 {
			t.Errorf("asked %d times", f.count())
		}
	})
}

func TestDenyIsForgottenSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(briefly)
		f.say(false)
		mustDecide(t, s, jane, request, false)
		f.say(true)
		time.Sleep(4 * time.Second)
		mustDecide(t, s, jane, request, false)
		time.Sleep(time.Second)
		mustDecide(t, s, jane, request, true)
		if f.count() != 2 {
			t.Errorf("asked %d times", f.count())
		}
	})
}

func TestWithoutCacheEveryQuestionIsPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(Options{})
		for range 3 {
			mustDecide(t, s, jane, request, true)
		}
		if f.count() != 3 {
			t.Errorf("asked %d times", f.count())
		}
	})
}

// The remembered answers of a cluster are not taken for those of the next one of the same name.
func TestAnswersOfARemovedClusterAreForgotten(t *testing.T) {
	s, f := newFakeSAR(briefly)
	mustDecide(t, s, jane, request, true)
	strict := &fakeReviewer{}
	strict.say(false)
	remove := s.Add("default", strict)
	mustDecide(t, s, jane, request, false)
	remove()
	if _, err := s.Authorize(t.Context(), jane, request); !errors.Is(err, auth.ErrUndecided) {
		t.Errorf("%v", err)
	}
	s.Add("default", f)
	mustDecide(t, s, jane, request, true)
	remove() // this removes another one
	mustDecide(t, s, jane, request, true)
}

func TestEveryPartOfAQuestionMakesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeReviewer{}
		f.say(true)
		s := New(fixedNamespaces(nil), briefly)
		s.Add("default", f)
		s.Add("other", f)
		vary := func(change func(*auth.Identity, *auth.Request)) {
			id, req := jane, request
			id.Groups = slices.Clone(id.Groups)
			change(&id, &req)
			before := f.count()
			mustDecide(t, s, id, req, true)
			if f.count() != before+1 {
				t.Errorf("%+v %+v has another's answer", id, req)
			}
		}
		vary(func(*auth.Identity, *auth.Request) {})
		vary(func(id *auth.Identity, _ *auth.Request) { id.Username = "joe" })
		vary(func(id *auth.Identity, _ *auth.Request) { id.Groups = nil })
		vary(func(id *auth.Identity, _ *auth.Request) { id.Groups = []string{"team-a"} })
		vary(func(id *auth.Identity, _ *auth.Request) { id.Groups = []string{"team-a", "team-b", "team-b"} })
		vary(func(id *auth.Identity, _ *auth.Request) { id.Groups = []string{"team-ateam-b"} })
		vary(func(id *auth.Identity, _ *auth.Request) { id.Groups = []string{"team-a\x00team-b"} })
		vary(func(id *auth.Identity, _ *auth.Request) { id.Groups = []string{"team-a\x06team-b"} })
		vary(func(_ *auth.Identity, r *auth.Request) { r.Cluster = "other" })
		vary(func(_ *auth.Identity, r *auth.Request) { r.Verb = "list" })
		vary(func(_ *auth.Identity, r *auth.Request) { r.Group = "" })
		vary(func(_ *auth.Identity, r *auth.Request) { r.Version = "v2" })
		vary(func(_ *auth.Identity, r *auth.Request) { r.Resource = "cronjobs" })
		vary(func(_ *auth.Identity, r *auth.Request) { r.Subresource = "" })
		vary(func(_ *auth.Identity, r *auth.Request) { r.Namespace = "" })
		vary(func(_ *auth.Identity, r *auth.Request) { r.Name = "" })
		vary(func(_ *auth.Identity, r *auth.Request) { r.Namespace, r.Name = "n", "ns" })
		vary(func(_ *auth.Identity, r *auth.Request) { r.Namespace, r.Name = "nsn", "" })

		before := f.count()
		mustDecide(t, s, auth.Identity{Username: "jane", Groups: []string{"team-a", "team-b"}, ExpiresAt: time.Now()}, request, true)
		if f.count() != before {
			t.Error("the order of the groups makes another question")
		}
	})
}

func TestManyWhoAskTheSameAreOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(Options{})
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { mustDecide(t, s, jane, request, true) })
		}
		wg.Wait()
		if f.count() != 1 {
			t.Errorf("asked %d times", f.count())
		}
	})
}

func TestErrorsAreNeverAnAllowAndNeverRemembered(t *testing.T) {
	gr := schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"away":      {errors.New("connection refused"), "cluster default: connection refused"},
		"forbidden": {apierrors.NewForbidden(gr, "", errors.New("no")), "system:auth-delegator"},
		"overload":  {apierrors.NewTooManyRequests("later", 1), "later"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f := newFakeSAR(briefly)
				// An answer that comes beside an error must not be believed.
				f.answer = func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
					return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, c.err
				}
				var wg sync.WaitGroup
				for range 10 {
					wg.Go(func() {
						d, err := s.Authorize(t.Context(), jane, request)
						if d.Allowed || !errors.Is(err, auth.ErrUndecided) || !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) {
							t.Errorf("%+v, %v", d, err)
						}
					})
				}
				wg.Wait()
				f.say(true)
				mustDecide(t, s, jane, request, true)
				if f.count() != 2 {
					t.Errorf("asked %d times", f.count())
				}
			})
		})
	}
}

func TestSilentAPIServerIsNotWaitedForForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(briefly)
		f.takes = time.Hour
		start := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if d, err := s.Authorize(t.Context(), jane, request); d.Allowed || !errors.Is(err, auth.ErrUndecided) {
					t.Errorf("%+v, %v", d, err)
				}
			})
		}
		wg.Wait()
		if d := time.Since(start); d != 5*time.Second || f.count() != 1 {
			t.Errorf("waited %v, asked %d times", d, f.count())
		}
	})
}

func TestCallerWhoGoesAwayTakesNobodyWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(briefly)
		f.takes = 2 * time.Second
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { // the caller that asks
			d, err := s.Authorize(impatient, jane, request)
			if d.Allowed || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, auth.ErrUndecided) {
				t.Errorf("%+v, %v", d, err)
			}
		})
		synctest.Wait()
		wg.Go(func() { // a caller that waits for it, and leaves too
			if d, err := s.Authorize(impatient, jane, request); d.Allowed || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%+v, %v", d, err)
			}
		})
		for range 10 {
			wg.Go(func() { mustDecide(t, s, jane, request, true) })
		}
		wg.Wait()
		if f.count() != 2 {
			t.Errorf("asked %d times", f.count())
		}
	})
}

func TestPanicOfTheAskerLeavesNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(briefly)
		f.answer = func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
			f.say(true)
			panic("client")
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() { _ = recover() }()
			s.Authorize(t.Context(), jane, request)
		})
		synctest.Wait()
		mustDecide(t, s, jane, request, true)
		wg.Wait()
	})
}

func TestDoubtfulAnswersAreNoAllow(t *testing.T) {
	s, f := newFakeSAR(Options{})
	f.answer = func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, nil
	}
	mustDecide(t, s, jane, request, false)
	f.answer = func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{EvaluationError: `role "x" not found`}, nil
	}
	mustDecide(t, s, jane, request, false)
	if d, _ := s.Authorize(t.Context(), jane, request); !strings.Contains(d.Reason, `role "x" not found`) {
		t.Errorf("reason %q", d.Reason)
	}
	s.Add("default", nilReviewer{})
	if d, err := s.Authorize(t.Context(), jane, request); d.Allowed || !errors.Is(err, auth.ErrUndecided) {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := s.Authorize(t.Context(), auth.Identity{}, request); d.Allowed || !errors.Is(err, auth.ErrUndecided) {
		t.Errorf("nobody: %+v, %v", d, err)
	}
	if d, err := s.Authorize(t.Context(), jane, auth.Request{Cluster: "unknown"}); d.Allowed || !errors.Is(err, auth.ErrUndecided) {
		t.Errorf("unknown cluster: %+v, %v", d, err)
	}
}

type nilReviewer struct{}

func (nilReviewer) Create(context.Context, *authorizationv1.SubjectAccessReview, metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	return nil, nil
}

func TestDecisionsDoNotGrowWithoutBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFakeSAR(Options{CacheAllow: time.Hour, CacheSize: 10})
		f.takes = 0
		for i := range 1000 {
			req := request
			req.Name = fmt.Sprint(i)
			mustDecide(t, s, jane, req, true)
		}
		if n := len(s.decisions.Keys()); n != 10 || len(s.questions) != 0 {
			t.Errorf("%d decisions, %d questions", n, len(s.questions))
		}
	})
}

func BenchmarkAuthorizeRemembered(b *testing.B) {
	s, f := newFakeSAR(Options{CacheAllow: time.Hour})
	f.takes = 0
	b.ReportAllocs()
	for b.Loop() {
		if d, err := s.Authorize(b.Context(), jane, request); err != nil || !d.Allowed {
			b.Fatal(d, err)
		}
	}
}
