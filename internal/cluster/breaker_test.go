package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

// run runs a connection in a synctest bubble until the test ends.
func run(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Run(ctx)
	}()
	synctest.Wait()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// A request to a cluster that is known to be away fails at once, and is not sent. A probe finds out when the cluster
// is back.
func TestClusterThatIsAwayIsNotAskedByEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		c := api.Connect(t)
		run(t, c)
		if c.Away() != nil {
			t.Error("it is away before it was asked")
		}
		hole := make(chan struct{})
		api.Intercept(func(r *http.Request) *apitest.Fault {
			select {
			case <-r.Context().Done():
				return &apitest.Fault{Err: r.Context().Err()}
			case <-hole:
				return nil
			}
		})
		if _, err := c.Named(t.Context(), "pods"); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		time.Sleep(10 * time.Second)
		if err := c.Away(); !errors.Is(err, cluster.ErrUnavailable) {
			t.Fatalf("it is not away: %v", err)
		}
		api.Requests()
		began := time.Now()
		for range 100 {
			_, named := c.Named(t.Context(), "pods")
			_, epoch := c.Epoch(t.Context())
			_, review := c.Reviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{})
			for _, err := range []error{named, epoch, review} {
				if !errors.Is(err, cluster.ErrUnavailable) {
					t.Fatalf("%v", err)
				}
			}
		}
		if time.Since(began) > 0 {
			t.Errorf("it took %v", time.Since(began))
		}
		time.Sleep(time.Minute)
		for _, request := range api.Requests() {
			if !strings.Contains(request, "/livez") {
				t.Errorf("%s", request)
			}
		}
		close(hole)
		time.Sleep(10 * time.Second)
		if _, err := c.Named(t.Context(), "pods"); err != nil || c.Away() != nil {
			t.Errorf("it is back, but: %v, %v", err, c.Away())
		}
	})
}

// One broken connection does not make a cluster count as away, nor does any answer.
func TestClusterThatAnswersIsNotAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		c := api.Connect(t)
		run(t, c)
		broken := false
		api.Intercept(func(*http.Request) *apitest.Fault {
			if broken {
				return nil
			}
			broken = true
			return &apitest.Fault{Err: syscall.ECONNRESET}
		})
		_, _ = c.Epoch(t.Context())
		synctest.Wait()
		if _, err := c.Epoch(t.Context()); err != nil {
			t.Errorf("after a connection broke: %v", err)
		}
		api.Intercept(func(*http.Request) *apitest.Fault { return apitest.Refuse(http.StatusForbidden) })
		if _, err := c.Named(t.Context(), "pods"); err == nil || c.Away() != nil {
			t.Errorf("it refuses: %v, %v", err, c.Away())
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = c.Reviews().Create(gone, &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{})
		synctest.Wait()
		if c.Away() != nil {
			t.Errorf("somebody gave up: %v", c.Away())
		}
	})
}

// Requests that are under way when Run ends do not outlive it.
func TestQuestionsEndWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		c := api.Connect(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = c.Run(ctx)
		}()
		synctest.Wait()
		api.Intercept(func(r *http.Request) *apitest.Fault {
			<-r.Context().Done()
			return &apitest.Fault{Err: r.Context().Err()}
		})
		began := time.Now()
		time.AfterFunc(time.Second, cancel)
		if _, err := c.Epoch(t.Context()); err == nil || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		<-ended
	})
}

// The columns of a kind are those of its definition in its version, as they are now. A definition that cannot be read
// is not asked for with each request.
func TestPrinterColumnsFollowTheDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		widgets := cluster.Kind{Group: "example.com", Version: "v1", Resource: "widgets", Kind: "Widget", Namespaced: true, Watchable: true}
		api := apitest.New(widgets, apitest.Definitions)
		define := func(columns string, served bool) {
			api.Put("customresourcedefinitions", "widgets.example.com", apitest.Set("spec.versions", []any{
				map[string]any{"name": "v1", "served": served, "additionalPrinterColumns": []any{map[string]any{"name": columns, "type": "string", "jsonPath": ".a"}}},
				map[string]any{"name": "v2", "served": true},
			}))
		}
		c := api.Connect(t)
		look := func(kind cluster.Kind) string {
			columns, ok := c.PrinterColumns(t.Context(), kind)
			switch {
			case !ok:
				return "none"
			case len(columns) == 0:
				return "default"
			}
			return columns[0].Name
		}
		newer := widgets
		newer.Version = "v2"
		define("One", true)
		if one, two, pods := look(widgets), look(newer), look(apitest.Pods); one != "One" || two != "default" || pods != "none" {
			t.Errorf("%s, %s, %s", one, two, pods)
		}
		define("Other", true)
		if have := look(widgets); have != "One" {
			t.Errorf("%s was asked for again", have)
		}
		c.Changed("example.com")
		if have := look(widgets); have != "Other" {
			t.Errorf("after a change: %s", have)
		}
		define("Late", true) // a change that no watch reports
		time.Sleep(time.Minute)
		if have := look(widgets); have != "Late" {
			t.Errorf("after a minute: %s", have)
		}
		define("Late", false)
		c.Changed("example.com")
		if have := look(widgets); have != "none" {
			t.Errorf("a version that is not served: %s", have)
		}
		api.Away(true)
		c.Changed("example.com")
		if have := look(newer); have != "default" {
			t.Errorf("while the cluster is away: %s", have)
		}
		api.Away(false)
		api.Intercept(func(*http.Request) *apitest.Fault { return apitest.Refuse(http.StatusForbidden) })
		c.Changed("example.com")
		api.Requests()
		for range 10 {
			if have := look(newer); have != "none" {
				t.Errorf("where it may not be read: %s", have)
			}
		}
		if n := len(api.Requests()); n != 1 {
			t.Errorf("it was asked for %d times", n)
		}
	})
}
