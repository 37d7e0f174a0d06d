package http

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/sar"
	"github.com/kubecast/kubecast/internal/http/rest"
)

// With auth.anonymous, strangers are told what Kubernetes' own rules tell them: by default the
// version, and neither discovery nor OpenAPI documents, nor which clusters there are.
func TestStrangersAreToldNothingOfACluster(t *testing.T) {
	authenticator, err := auth.New(auth.Options{Anonymous: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, options(func(o *Options) { o.Authenticator = authenticator }), cached(streamOptions(), "pods"))
	g.access.permit("system:anonymous", auth.Scope{})
	g.access.set(func(a *fakeAuth) { a.strangers = []string{"system:anonymous"} })
	for _, path := range []string{
		"/api", "/api/", "/apis", "/api/v1", "/apis/example.org", "/apis/example.org/v1", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v2",
		"/version", "/clusters/default/apis", "/clusters/default/version", "/clusters",
	} {
		a := g.get(path, "Authorization: ")
		if a.code != 403 || !strings.Contains(a.body, "cannot get path") || strings.Contains(a.body, "pods") {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	if a := g.get("/auth/me", "Authorization: "); a.code != 200 || strings.Contains(a.body, "pods") {
		t.Errorf("/auth/me: %d %s", a.code, a.body)
	}
	if n := g.api.Served("documents"); n != 0 {
		t.Errorf("the API server was asked for %d documents", n)
	}
	g.access.set(func(a *fakeAuth) {
		for _, asked := range a.paths {
			if asked.Verb != "get" || asked.Cluster != "default" || !strings.HasPrefix(asked.Path, "/") || asked.Resource != "" {
				t.Errorf("asked for %+v", asked)
			}
		}
		a.strangers = nil
	})
	for _, path := range []string{"/api", "/apis", "/version", "/clusters"} {
		if a := g.get(path, "Authorization: "); a.code != 200 {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
}

// Callers are told which kinds others look at if they may look at these kinds themselves.
func TestKindsAreToldToThoseWhoMayListThem(t *testing.T) {
	g := newGateway(t)
	bob := auth.Scope{Names: map[string][]string{"a": {"x"}}}
	g.access.permit("bob", bob)
	g.access.permit("eve", auth.Scope{})
	g.get("/api/v1/namespaces/a/secrets/x", "Authorization: Bearer bob")
	for _, path := range []string{"/clusters", "/auth/me"} {
		if a := g.get(path, "Authorization: Bearer eve"); a.code != 200 || strings.Contains(a.body, "secrets") || !strings.Contains(a.body, `"default"`) {
			t.Errorf("eve: %s: %d %s", path, a.code, a.body)
		}
		if a := g.get(path, "Authorization: Bearer bob"); a.code != 200 || !strings.Contains(a.body, "secrets") {
			t.Errorf("bob: %s: %d %s", path, a.code, a.body)
		}
	}
	// While nobody can say who may see what, the cluster's state is told to who is signed in, and no kinds.
	g.access.set(func(a *fakeAuth) { a.undecided = true })
	if a := g.get("/clusters", "Authorization: Bearer bob"); a.code != 200 || !strings.Contains(a.body, `"name":"default"`) || strings.Contains(a.body, "secrets") {
		t.Errorf("undecided: %d %s", a.code, a.body)
	}
}

// A kind that somebody makes up costs no question where they might see it, and one request is not a thousand questions.
func TestMadeUpKindsAreNotAskedAbout(t *testing.T) {
	var names fixedNames
	for i := range 250 {
		names = append(names, fmt.Sprintf("ns-%03d", i))
	}
	reviewer := &countingReviewer{}
	reviews := sar.New(names, sar.Options{})
	g := newGateway(t, options(func(o *Options) { o.Authorizer = reviews }))
	defer reviews.Add("default", reviewer)()
	cost := func(path string) int64 {
		before := reviewer.asked.Load()
		g.get(path)
		return reviewer.asked.Load() - before
	}
	for _, path := range []string{"/api/v1/madeup", "/apis/none.example.org/v1/things", "/api/v1/madeup?watch=true", "/api/v1/madeup/x"} {
		if n := cost(path); n > 2 {
			t.Errorf("%s: %d questions", path, n)
		}
	}
	var kinds []string
	for i := range rest.MaxMyKinds {
		kinds = append(kinds, fmt.Sprintf("x%d", i))
	}
	if n := cost("/auth/me?kinds=" + strings.Join(kinds, ",")); n > int64(2*rest.MaxMyKinds) {
		t.Errorf("%d questions for kinds that do not exist", n)
	}
	kinds = nil
	for i := range rest.MaxMyKinds {
		kinds = append(kinds, []string{"pods", "nodes", "secrets", "jobs.batch", "widgets.example.org"}[i%5])
	}
	if n := cost("/auth/me?kinds=" + strings.Join(kinds, ",")); n > rest.MaxQuestions {
		t.Errorf("%d questions of one request", n)
	}
	var me rest.Me
	a := g.get("/auth/me?kinds=madeup,pods")
	if err := json.Unmarshal([]byte(a.body), &me); err != nil || len(me.Clusters) != 1 || len(me.Clusters[0].Watch) != 2 {
		t.Fatalf("%v %s", err, a.body)
	}
	if w := me.Clusters[0].Watch; w[0].Unknown || w[0].All || len(w[0].Namespaces) != 0 || !slices.Equal(w[1].Namespaces, []string{"ns-007"}) {
		t.Errorf("%+v", w)
	}
}

// A user who is to lose a permission cannot put that off by asking so much that the question about
// their stream has to wait.
func TestRevocationIsNotPutOffByAskingForMuch(t *testing.T) {
	var names fixedNames
	for i := range 250 {
		names = append(names, fmt.Sprintf("ns-%03d", i))
	}
	reviewer := &countingReviewer{takes: 5 * time.Millisecond}
	reviews := sar.New(names, sar.Options{CacheAllow: 5 * time.Second}) // denials are not remembered, so there is much to ask
	inBubble(t, func(t *testing.T, g *gateway) {
		defer reviews.Add("default", reviewer)()
		g.api.Put("pods", "ns-007/web")
		s := g.stream("/api/v1/pods", "Authorization: Bearer bob")
		s.until("synced")
		ctx, cancel := context.WithCancel(context.Background())
		var asking sync.WaitGroup
		for i := range 50 {
			asking.Go(func() {
				mine := auth.Identity{Username: "bob"}
				for n := 0; ctx.Err() == nil; n++ {
					_, _ = reviews.Scope(ctx, mine, auth.Request{Cluster: "default", Verb: "list", Resource: fmt.Sprintf("x%dy%d", i, n)})
				}
			})
		}
		pass(8 * time.Second)
		reviewer.revoked.Store(true)
		began := time.Now()
		left := s.end()
		if took := time.Since(began); took > 12*time.Second || left[len(left)-1].String() != "goodbye revoked" {
			t.Errorf("after %v: %q", took, left[len(left)-1].raw)
		}
		cancel()
		asking.Wait()
	}, options(func(o *Options) { o.Authorizer, o.Reauthorize = reviews, 5*time.Second }))
}

type fixedNames []string

func (n fixedNames) Names(string) ([]string, bool) { return n, true }
func (n fixedNames) Changes(func()) (stop func())  { return func() {} }

// countingReviewer lets everybody read discovery, and see pods in one namespace.
type countingReviewer struct {
	asked   atomic.Int64
	takes   time.Duration
	revoked atomic.Bool
}

func (r *countingReviewer) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.asked.Add(1)
	if r.takes > 0 {
		pass(r.takes)
	}
	a := review.Spec.ResourceAttributes
	review.Status.Allowed = a == nil || a.Namespace == "ns-007" && a.Resource == "pods" && !r.revoked.Load()
	return review, nil
}
