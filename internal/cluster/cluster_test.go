package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

func widgets(version string) cluster.Kind {
	return cluster.Kind{Group: "example.com", Version: version, Resource: "widgets", Kind: "Widget", Namespaced: true, Watchable: true}
}

func TestKindsAreFoundByTheirNames(t *testing.T) {
	metrics := cluster.Kind{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "nodes", Kind: "NodeMetrics"}
	api := apitest.New(apitest.Pods, apitest.Nodes, apitest.Jobs, metrics, widgets("v1"), widgets("v1beta1"))
	c := api.Connect(t)
	none := cluster.Kind{}
	for name, want := range map[string]cluster.Kind{
		"pods":                          apitest.Pods,
		"nodes":                         apitest.Nodes,
		"jobs.batch":                    apitest.Jobs,
		"jobs.v1.batch":                 apitest.Jobs,
		"pods.v1.":                      apitest.Pods,
		"nodes.metrics.k8s.io":          metrics,
		"widgets.example.com":           widgets("v1"),
		"widgets.v1beta1.example.com":   widgets("v1beta1"),
		"jobs":                          none,
		"Pod":                           none,
		"pods.batch":                    none,
		"jobs.v2.batch":                 none,
		"pods/status":                   none,
		"":                              none,
		"widgets.v1alpha1.example.com.": none,
	} {
		kind, err := c.Named(t.Context(), name)
		if kind != want || (err != nil) != (want == none) || err != nil && !errors.Is(err, cluster.ErrNoKind) {
			t.Errorf("%q: %v, %v", name, kind, err)
		}
		if err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not say which: %v", err)
		}
	}
	for _, want := range []cluster.Kind{apitest.Pods, apitest.Jobs, metrics, widgets("v1"), widgets("v1beta1")} {
		if kind, err := c.Resolve(t.Context(), want.Group, want.Version, want.Resource); kind != want || err != nil {
			t.Errorf("%v is %v, %v", want, kind, err)
		}
	}
	if _, err := c.Resolve(t.Context(), "example.com", "v2", "widgets"); !errors.Is(err, cluster.ErrNoKind) || !strings.Contains(err.Error(), "widgets of example.com/v2") {
		t.Errorf("%v", err)
	}
}

func TestUnknownKindsAskAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		c := api.Connect(t)
		for range 100 {
			if _, err := c.Named(t.Context(), "widgets.example.com"); !errors.Is(err, cluster.ErrNoKind) {
				t.Fatalf("%v", err)
			}
		}
		once := len(api.Requests())
		if once > 3 { // /api, /apis, and the APIServices
			t.Errorf("%d requests", once)
		}
		time.Sleep(500 * time.Millisecond)
		api.Serve(widgets("v1"), true)
		if _, err := c.Named(t.Context(), "widgets.example.com"); err == nil || len(api.Requests()) > 0 {
			t.Errorf("it asked again after half a second, %v", err)
		}
		time.Sleep(time.Second)
		for range 100 {
			if _, err := c.Named(t.Context(), "widgets.example.com"); err != nil {
				t.Fatalf("a kind installed a second ago is not found: %v", err)
			}
		}
		if n := len(api.Requests()); n != once {
			t.Errorf("%d requests", n)
		}
	})
}

func TestConcurrentQuestionsAreOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		api.Intercept(func(*http.Request) *apitest.Fault {
			time.Sleep(time.Second)
			return nil
		})
		c := api.Connect(t)
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.Named(impatient, "pods"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who cannot wait gets %v", err)
		}
		answers := make(chan error)
		for range 50 {
			go func() {
				_, err := c.Named(t.Context(), "pods")
				answers <- err
			}()
		}
		for range 50 {
			if err := <-answers; err != nil {
				t.Errorf("%v", err)
			}
		}
		if n := len(api.Requests()); n > 3 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestGroupThatDoesNotAnswerIsUnavailable(t *testing.T) {
	api := apitest.New(apitest.Pods, apitest.Jobs, widgets("v1"))
	api.Stale("example.com", true)
	c := api.Connect(t)
	if kind, err := c.Named(t.Context(), "jobs.batch"); err != nil || kind != apitest.Jobs {
		t.Errorf("the other groups suffer: %v, %v", kind, err)
	}
	for _, name := range []string{"widgets.example.com", "widgets.v1.example.com"} {
		if _, err := c.Named(t.Context(), name); !errors.Is(err, cluster.ErrUnavailable) || !strings.Contains(err.Error(), "example.com/v1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Resolve(t.Context(), "example.com", "v1", "widgets"); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if _, err := c.Named(t.Context(), "gadgets.other.com"); !errors.Is(err, cluster.ErrNoKind) {
		t.Errorf("%v", err)
	}
}

func TestClusterThatIsAwayIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		api.Away(true)
		c := api.Connect(t)
		if _, err := c.Named(t.Context(), "pods"); !errors.Is(err, cluster.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%v", err)
		}
		if _, err := c.Epoch(t.Context()); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		api.Away(false)
		if _, err := c.Named(t.Context(), "pods"); err != nil {
			t.Errorf("it is back, but: %v", err)
		}
		if _, err := c.Epoch(t.Context()); err != nil {
			t.Errorf("it is back, but: %v", err)
		}
		// A kind that is known is found without the cluster.
		api.Away(true)
		if _, err := c.Named(t.Context(), "pods"); err != nil {
			t.Errorf("%v", err)
		}
	})
}

func TestReplicasAgreeOnTheEpoch(t *testing.T) {
	api := apitest.New()
	one, other := api.Connect(t), api.Connect(t)
	epoch := func(c *cluster.Cluster) string {
		e, err := c.Epoch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if epoch(one) != epoch(other) || len(epoch(one)) != 8 || strings.ToLower(epoch(one)) != epoch(one) {
		t.Errorf("%q, %q", epoch(one), epoch(other))
	}
	before := epoch(one)
	one.Restarted()
	if epoch(one) == before || epoch(other) != before {
		t.Errorf("after versions went back it is %q, was %q", epoch(one), before)
	}
}

func TestEpochSaysWhatItNeeds(t *testing.T) {
	for _, test := range []struct {
		answer *apitest.Fault
		says   string
	}{
		{apitest.Refuse(http.StatusForbidden), "must be able to get the namespace kube-system"},
		{&apitest.Fault{Body: `{"metadata":{}}`}, "without the uid of kube-system"},
		{&apitest.Fault{Body: `<html>`}, "without the uid of kube-system"},
	} {
		api := apitest.New()
		api.Intercept(func(*http.Request) *apitest.Fault { return test.answer })
		if _, err := api.Connect(t).Epoch(t.Context()); !errors.Is(err, cluster.ErrUnavailable) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v", err)
		}
	}
}

func TestConnectSaysWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", `{"apiVersion":"v1","kind":"Config","current-context":"here",
		"clusters":[{"name":"c","cluster":{"server":"https://c.test:6443"}}],
		"contexts":[{"name":"here","context":{"cluster":"c"}},{"name":"there","context":{"cluster":"none"}}]}`)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", dir)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "nowhere"))
	for _, test := range []struct {
		name string
		opts cluster.Options
		says []string // empty: it works
	}{
		{"good", cluster.Options{Kubeconfig: good}, nil},
		{"good, with a context", cluster.Options{Kubeconfig: good, Context: "here"}, nil},
		{"no file", cluster.Options{Kubeconfig: filepath.Join(dir, "missing")}, []string{filepath.Join(dir, "missing"), "no such file"}},
		{"a file of something else", cluster.Options{Kubeconfig: file("odd", "]")}, []string{"odd"}},
		{"an empty file", cluster.Options{Kubeconfig: file("empty", "")}, []string{"empty names no API server"}},
		{"no such context", cluster.Options{Kubeconfig: good, Context: "nowhere"}, []string{"nowhere", "does not exist"}},
		{"a context without its cluster", cluster.Options{Kubeconfig: good, Context: "there"}, []string{"good names no API server", "lacks the cluster"}},
		{"nothing", cluster.Options{}, []string{"no cluster is configured", "--kubeconfig"}},
	} {
		test.opts.Name = "lab"
		c, err := cluster.Connect(test.opts)
		switch {
		case len(test.says) == 0:
			if err != nil || c.Host() != "https://c.test:6443" || c.Name() != "lab" {
				t.Errorf("%s: %v", test.name, err)
			}
		case err == nil:
			t.Errorf("%s: no error", test.name)
		default:
			for _, words := range append(test.says, "cluster lab: ") {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%s: it does not say %q: %v", test.name, words, err)
				}
			}
		}
	}
}
