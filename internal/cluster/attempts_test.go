package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

// client-go repeats what is answered with 429 for ten seconds, and tells nobody.
func TestAnAPIServerThatIsBusyIsNotCalledSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		busy := func(*http.Request) *apitest.Fault { return apitest.Busy() }
		api.Answer("pods", busy)
		r, stop := inform(t, api, apitest.Pods)
		defer stop()
		told := func(within time.Duration, want string) {
			t.Helper()
			before := len(r.causes())
			for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				if slices.ContainsFunc(r.causes()[before:], func(err error) bool { return strings.HasPrefix(err.Error(), want) }) {
					return
				}
			}
			t.Errorf("not told %q but %v", want, r.causes()[before:])
		}
		told(2*time.Second, "the API server answers 429 Too Many Requests")
		time.Sleep(30 * time.Second) // client-go's own repeats end, and begin anew
		for _, err := range r.causes() {
			if !strings.HasPrefix(err.Error(), "the API server answers 429 Too Many Requests") {
				t.Errorf("while it is busy: %v", err)
			}
		}
		api.Hang("pods")
		told(5*time.Second, "the API server does not answer")
		api.Answer("pods", busy)
		told(5*time.Second, "the API server answers 429 Too Many Requests")
		api.Fail("pods", 403)
		told(20*time.Second, "the API server answers 403 Forbidden: ")
		if errs := r.causes(); !apierrors.IsForbidden(errs[len(errs)-1]) {
			t.Errorf("%v is not known for a refusal", errs[len(errs)-1])
		}
		api.Fail("pods", 0)
		time.Sleep(time.Minute)
		if _, health := r.take(); health[len(health)-1] != "up" {
			t.Error("it is not back")
		}
		// The next watch is late, too.
		api.Answer("pods", busy)
		api.EndWatches()
		told(5*time.Second, "the API server answers 429 Too Many Requests")
		api.Fail("pods", 0)
	})
}

// What has to be answered in time says what the answer was.
func TestTimeOutsNameTheNewestAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		api.Intercept(func(*http.Request) *apitest.Fault { return apitest.Busy() })
		c := api.Connect(t)
		for what, ask := range map[string]func(context.Context) error{
			"a review": func(ctx context.Context) error {
				_, err := c.Reviews().Create(ctx, &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{})
				return err
			},
			"what the gateway may do": func(ctx context.Context) error {
				_, err := c.May(ctx, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"})
				return err
			},
			"the epoch": func(context.Context) error {
				_, err := c.Epoch(t.Context())
				return err
			},
			"a ConfigMap": func(ctx context.Context) error {
				_, err := c.ConfigMaps("n").List(ctx, metav1.ListOptions{})
				return err
			},
			"the watch of a ConfigMap": func(ctx context.Context) error {
				_, err := c.ConfigMaps("n").Watch(ctx, metav1.ListOptions{})
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if err := ask(ctx); err == nil || !strings.Contains(err.Error(), "the API server answers 429 Too Many Requests") || what != "the epoch" && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
			cancel()
		}
	})
}

// Each attempt counts, those that client-go makes in silence, too.
func TestRequestsAreCountedByWhatTheyAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		c := api.Connect(t)
		count := func(verb, code string) (n uint64) {
			n = 1 << 32 // not told
			c.Requests(func(kind cluster.RequestKind, counted uint64) {
				if kind == (cluster.RequestKind{Verb: verb, Code: code}) {
					n = counted
				}
			})
			return n
		}
		expect := func(when, verb, code string, want uint64) {
			t.Helper()
			if got := count(verb, code); got != want {
				t.Errorf("%s: %d of %s answered %s, not %d", when, got, verb, code, want)
			}
		}
		expect("before", "list", "429", 0)
		expect("before", "create", "201", 0)
		api.Answer("pods", func(*http.Request) *apitest.Fault { return apitest.Busy() })
		r := &recorder{}
		stop := informFrom(t, c.ListWatch(apitest.Pods, r), r)
		time.Sleep(3500 * time.Millisecond)
		expect("busy", "list", "429", 4)
		api.Fail("pods", 0)
		time.Sleep(10 * time.Second)
		expect("back", "list", "200", 1)
		expect("back", "watch", "200", 1)
		stop()
		if _, err := c.Epoch(t.Context()); err != nil {
			t.Error(err)
		}
		expect("the epoch", "get", "200", 1)
		api.Away(true)
		_, _ = c.May(t.Context(), authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"})
		if count("create", "none") == 0 {
			t.Error("what has no answer is not counted")
		}
		expect("away", "create", "201", 0)
	})
}
