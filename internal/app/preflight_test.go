package app

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/config"
)

// asked are questions of a preflight, as "verb resource.group/subresource namespace/name".
type asked struct {
	mu     sync.Mutex
	all    map[string]bool
	denied string
}

func (a *asked) allow(r authorizationv1.ResourceAttributes) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	question := r.Verb + " " + r.Resource
	if r.Subresource != "" {
		question += "/" + r.Subresource
	}
	if r.Group != "" {
		question += "." + r.Group
	}
	if r.Name != "" {
		question = strings.TrimSuffix(question+" "+r.Namespace+"/"+r.Name, " ")
	}
	a.all[question] = true
	return question != a.denied
}

// documented are the rights that docs/operations.md names, by what they are for, of a gateway that
// is to serve pods and jobs.
var documented = map[string][]string{
	"": {
		"get pods", "list pods", "watch pods", "get jobs.batch", "list jobs.batch", "watch jobs.batch", "get namespaces /kube-system", "list apiservices.apiregistration.k8s.io",
		"get pods/log", "list nodes.metrics.k8s.io", "list pods.metrics.k8s.io", "get namespaces", "list namespaces",
		"get customresourcedefinitions.apiextensions.k8s.io", "list customresourcedefinitions.apiextensions.k8s.io", "watch customresourcedefinitions.apiextensions.k8s.io",
	},
	"queues": {
		"get localqueues.kueue.x-k8s.io", "list localqueues.kueue.x-k8s.io", "watch localqueues.kueue.x-k8s.io",
		"get clusterqueues.kueue.x-k8s.io", "list clusterqueues.kueue.x-k8s.io", "watch clusterqueues.kueue.x-k8s.io",
		"get workloads.kueue.x-k8s.io", "list workloads.kueue.x-k8s.io", "watch workloads.kueue.x-k8s.io",
		"get clusterqueues/pendingworkloads.visibility.kueue.x-k8s.io",
		"get queues.scheduling.volcano.sh", "list queues.scheduling.volcano.sh", "watch queues.scheduling.volcano.sh",
		"get podgroups.scheduling.volcano.sh", "list podgroups.scheduling.volcano.sh", "watch podgroups.scheduling.volcano.sh",
		"get priorityclasses.scheduling.k8s.io", "list priorityclasses.scheduling.k8s.io", "watch priorityclasses.scheduling.k8s.io",
	},
	config.AuthorizerRBAC: {
		"get roles.rbac.authorization.k8s.io", "list roles.rbac.authorization.k8s.io", "watch roles.rbac.authorization.k8s.io",
		"get clusterroles.rbac.authorization.k8s.io", "list clusterroles.rbac.authorization.k8s.io", "watch clusterroles.rbac.authorization.k8s.io",
		"get rolebindings.rbac.authorization.k8s.io", "list rolebindings.rbac.authorization.k8s.io", "watch rolebindings.rbac.authorization.k8s.io",
		"get clusterrolebindings.rbac.authorization.k8s.io", "list clusterrolebindings.rbac.authorization.k8s.io", "watch clusterrolebindings.rbac.authorization.k8s.io",
	},
	config.AuthorizerSAR: {"create subjectaccessreviews.authorization.k8s.io", "watch namespaces", "create tokenreviews.authentication.k8s.io", "list configmaps kubecast/revoked", "watch configmaps kubecast/revoked",
		"patch configmaps kubecast/revoked"},
	config.AuthorizerPolicy: {"watch namespaces"},
}

// Whatever right is taken away of those that are documented, preflight names it with what it is for, and no other.
func TestPreflightNamesTheRightThatIsMissing(t *testing.T) {
	for _, mode := range []string{config.AuthorizerRBAC, config.AuthorizerSAR, config.AuthorizerPolicy} {
		t.Run(mode, func(t *testing.T) {
			api, url := apitest.Start(t)
			cfg, _ := configuration(t, url)
			needed := documented[""]
			if mode != config.AuthorizerPolicy { // that cluster has no Kueue and no Volcano, and nothing of it is needed
				serveKueue(api)
				serveVolcano(api)
				needed = slices.Concat(needed, documented["queues"])
			}
			cfg.Authorizer.Mode = mode
			switch mode {
			case config.AuthorizerSAR:
				cfg.Auth.ServiceAccounts.Audiences, cfg.Auth.Revocations.ConfigMap = []string{"kubecast"}, "kubecast/revoked"
				letSignIn(t, &cfg) // sessions that a provider ends are written to the ConfigMap
			case config.AuthorizerPolicy:
				cfg.Authorizer.Policies = []string{"true"}
			}
			cfg.Kinds.Allow = []config.KindPattern{}
			for _, kind := range []string{"pods", "jobs.batch", "nodes.metrics.k8s.io", "pods.metrics.k8s.io", "localqueues.kueue.x-k8s.io", "clusterqueues.kueue.x-k8s.io", "workloads.kueue.x-k8s.io",
				"queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh", "priorityclasses.scheduling.k8s.io"} {
				resource, group, _ := strings.Cut(kind, ".")
				cfg.Kinds.Allow = append(cfg.Kinds.Allow, config.KindPattern{Resource: resource, Group: group})
			}
			questions := &asked{all: map[string]bool{}}
			api.AllowSelf = questions.allow
			preflight := func(denied string) (string, error) {
				questions.denied = denied
				var out bytes.Buffer
				err := Preflight(t.Context(), Options{Config: cfg, Version: "test"}, &out)
				return out.String(), err
			}
			if out, err := preflight(""); err != nil || !strings.HasSuffix(out, "nothing is missing\n") || !strings.Contains(out, "cluster default at "+url+" v1.36.3\n") {
				t.Fatalf("%v: %s", err, out)
			}
			want := slices.Concat(needed, documented[mode])
			slices.Sort(want)
			if got := slices.Sorted(maps.Keys(questions.all)); !slices.Equal(got, slices.Compact(want)) {
				t.Errorf("it asks for %q, and documented are %q", got, want)
			}
			for _, right := range want {
				out, err := preflight(right)
				verb, what, _ := strings.Cut(right, " ")
				named := fmt.Sprintf("\n  missing: %s on %s (", verb, strings.Replace(what, " /", " ", 1))
				if err == nil || !strings.Contains(out, named) || strings.Count(out, "missing: ") != 1 {
					t.Errorf("without %s: %v: %s", right, err, out)
				}
			}
		})
	}
}

// Kinds that are named are wanted: what is missing of them is named, and the places in Kueue's queues with its ClusterQueues. Of what a
// pattern matches, it may be meant that nobody is served.
func TestPreflightNamesRightsOfKindsThatAreNamed(t *testing.T) {
	queues := cluster.Kind{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "clusterqueues", Kind: "ClusterQueue", Watchable: true}
	api := apitest.New(append(slices.Clone(apitest.Usual), queues)...)
	server := httptest.NewServer(api)
	t.Cleanup(func() { api.Close(); server.CloseClientConnections(); server.Close() })
	cfg, _ := configuration(t, server.URL)
	of := func(text string) (pattern config.KindPattern) {
		if err := pattern.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return pattern
	}
	cfg.Kinds.Allow = []config.KindPattern{of("pods"), of("jobs.batch"), of("nodes"), of("clusterqueues.kueue.x-k8s.io"), of("*.example.org"), of("absent.example.net")}
	questions := &asked{all: map[string]bool{}}
	api.AllowSelf = questions.allow
	for denied, want := range map[string]string{
		"get nodes":                          "missing: get on nodes (kinds.allow)",
		"watch clusterqueues.kueue.x-k8s.io": "missing: watch on clusterqueues.kueue.x-k8s.io (queues.enabled)",
		"get clusterqueues/pendingworkloads.visibility.kueue.x-k8s.io": "missing: get on clusterqueues/pendingworkloads.visibility.kueue.x-k8s.io (places in queues)",
		"list widgets.example.org":                                     "may not list and watch it: widgets.example.org",
		"get widgets.example.org":                                      "nothing is missing",
		"list absent.example.net":                                      "nothing is missing",
	} {
		questions.denied = denied
		var out bytes.Buffer
		err := Preflight(t.Context(), Options{Config: cfg, Version: "test"}, &out)
		if !strings.Contains(out.String(), want) || (err != nil) != strings.HasPrefix(want, "missing") || strings.Count(out.String(), "missing: ") > 1 ||
			!strings.Contains(out.String(), "not there: absent.example.net\n") {
			t.Errorf("without %s: %v: %s", denied, err, out.String())
		}
	}
}

// serveVolcano has an API serve Volcano's kinds of queues.
func serveVolcano(api *apitest.API) {
	for _, kind := range []cluster.Kind{
		{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "queues", Kind: "Queue"},
		{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups", Kind: "PodGroup", Namespaced: true},
		{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses", Kind: "PriorityClass"},
	} {
		kind.Watchable = true
		api.Serve(kind, true)
	}
}

// serveKueue has an API server serve Kueue's kinds.
func serveKueue(api *apitest.API) {
	for _, kind := range []cluster.Kind{{Resource: "localqueues", Kind: "LocalQueue", Namespaced: true}, {Resource: "clusterqueues", Kind: "ClusterQueue"}, {Resource: "workloads", Kind: "Workload", Namespaced: true}} {
		kind.Group, kind.Version, kind.Watchable = "kueue.x-k8s.io", "v1beta2", true
		api.Serve(kind, true)
	}
}

// letSignIn lets users sign in at an issuer.
func letSignIn(t *testing.T, cfg *config.Config) {
	t.Helper()
	secret, cookie := filepath.Join(t.TempDir(), "secret"), filepath.Join(t.TempDir(), "cookie")
	if err := errors.Join(os.WriteFile(secret, []byte("s"), 0o600), os.WriteFile(cookie, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600)); err != nil {
		t.Fatal(err)
	}
	cfg.Auth.CookieKeyFile = cookie
	cfg.Auth.OIDCLogin = config.OIDCLogin{ClientID: "kubecast", ClientSecretFile: secret, RedirectURL: "https://h/auth/callback", Issuer: cfg.Auth.JWT[0].Issuer}
}

// Tokens are refused, and times in the history are wrong, where clocks differ: preflight says whose, and by how much.
func TestPreflightNamesAClockThatDiffers(t *testing.T) {
	_, url := apitest.Start(t)
	behind, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	for ahead, want := range map[time.Duration]string{ // dates are whole seconds
		3 * time.Minute:  "API server's is (2m59s|3m0s) ahead",
		-2 * time.Minute: "API server's is (1m59s|2m0s) behind",
		2 * time.Second:  "",
	} {
		proxy := httputil.NewSingleHostReverseProxy(behind)
		proxy.ModifyResponse = func(r *http.Response) error {
			r.Header.Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
			return nil
		}
		server := httptest.NewServer(proxy)
		cfg, _ := configuration(t, server.URL)
		var out bytes.Buffer
		err := Preflight(t.Context(), Options{Config: cfg, Version: "test"}, &out)
		server.Close()
		if want == "" {
			if err != nil {
				t.Errorf("%v: %v: %s", ahead, err, out.String())
			}
		} else if err == nil || !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%v: %v: %s", ahead, err, out.String())
		}
	}
}

// What cannot be reached is named, too, and no password with it.
func TestPreflightNamesWhatCannotBeReached(t *testing.T) {
	_, url := apitest.Start(t)
	cfg, _ := configuration(t, url)
	cfg.Clusters = append(cfg.Clusters, config.Cluster{Name: "gone", Kubeconfig: apitest.Kubeconfig(t, "http://127.0.0.1:1")})
	cfg.History.Database, cfg.History.StateDir = "postgres://u:secret-word@127.0.0.1:1/d?connect_timeout=1", ""
	var out bytes.Buffer
	err := Preflight(t.Context(), Options{Config: cfg, Version: "test"}, &out)
	if err == nil || !strings.Contains(out.String(), "cluster gone at http://127.0.0.1:1 \n  missing: an answer: ") || !strings.Contains(out.String(), "database postgres://u@127.0.0.1:1/d\n  missing: a database that can be used (away): ") ||
		strings.Contains(out.String(), "secret-word") || !strings.Contains(err.Error(), "2 things are missing") {
		t.Errorf("%v: %s", err, out.String())
	}
}
