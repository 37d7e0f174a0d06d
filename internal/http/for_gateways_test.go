package http

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	authenticationapi "k8s.io/api/authentication/v1"
	authorizationapi "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
)

const (
	reviewsOfAccess = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	reviewsOfTokens = "/apis/authentication.k8s.io/v1/tokenreviews"
	pendingInWhole  = "/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/whole/pendingworkloads"

	reviewOfAccess = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"jane","resourceAttributes":{"verb":"get","resource":"pods"}}}`
	reviewOfToken  = `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":"secret"}}`
)

// changes are the requests that an API server gets that are no reading.
type changes struct {
	mu  sync.Mutex
	all []string
}

func (c *changes) seen(r *http.Request) *apitest.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method != http.MethodGet {
		c.all = append(c.all, r.Method+" "+r.URL.RequestURI())
	}
	if r.URL.Path == reviewsOfTokens {
		return &apitest.Fault{Body: `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true,"user":{"username":"jane"}}}`}
	}
	return nil
}

func (c *changes) take() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, c.all = c.all, nil
	return all
}

// core is a gateway of which alice is not an edge, and the user edge is.
func coreWithAnEdge(t *testing.T, more ...option) (*gateway, *changes) {
	t.Helper()
	at := &changes{}
	g := newGateway(t, append(more, options(func(o *Options) { o.Limits.Gateways = []string{"edge"} }), before(func(api *apitest.API) {
		api.Allow = func(spec authorizationapi.SubjectAccessReviewSpec) bool { return spec.User == "jane" }
		api.Queues = func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"kind":"PendingWorkloadsSummary","items":[{"metadata":{"name":"w","namespace":"team"},"localQueueName":"line","more":"hidden"}]}`)
		}
		api.Intercept(at.seen)
	}))...)
	for _, user := range []string{"alice", "edge"} {
		g.access.permit(user, auth.Scope{All: true})
	}
	return g, at
}

// Whoever is no gateway gets what was got before there were answers for gateways, whatever they may see, and the API server is asked nothing for them.
func TestNobodyButGatewaysIsAnsweredAboutOthers(t *testing.T) {
	g, at := coreWithAnEdge(t)
	for _, who := range []string{"Authorization: Bearer alice", "Authorization: ", "Authorization: Bearer bad"} {
		as := g.post("/apis/batch/v1/jobs", "{}", who)
		if as.code != http.StatusMethodNotAllowed {
			t.Fatal(as)
		}
		for path, body := range map[string]string{reviewsOfAccess: reviewOfAccess, reviewsOfTokens: reviewOfToken, "/clusters/default" + reviewsOfAccess: reviewOfAccess} {
			if a := g.post(path, body, who); a.code != as.code || a.body != as.body || a.header.Get("Allow") != as.header.Get("Allow") {
				t.Errorf("%s %s: %d %s", who, path, a.code, a.body)
			}
		}
	}
	for _, header := range []string{"Kubecast-History: x", "User-Agent: kubecast/1"} {
		if a := g.get(pendingInWhole, header); a.code != http.StatusNotFound || strings.Contains(a.body, "line") {
			t.Errorf("pending: %d %s", a.code, a.body)
		}
	}
	review := `{"spec":{"resourceAttributes":{"verb":"create","group":"authentication.k8s.io","resource":"tokenreviews"}}}`
	if a := g.post(accessReviews, review); a.code != 201 || strings.Contains(a.body, `"allowed":true`) {
		t.Errorf("a review of oneself: %d %s", a.code, a.body)
	}
	if asked := at.take(); len(asked) > 0 {
		t.Errorf("the API server was asked %q", asked)
	}
}

// An edge is answered reviews, and can write nothing: no other object, and nothing by what it sends along with a review.
func TestAnEdgeIsAnsweredReviewsAndWritesNothing(t *testing.T) {
	const edge = "Authorization: Bearer edge"
	g, at := coreWithAnEdge(t)
	c, err := cluster.Connect(cluster.Options{Name: "edge", Config: &clientrest.Config{Host: g.url, BearerToken: "edge"}})
	if err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]bool{"jane": true, "bob": false} {
		review := &authorizationapi.SubjectAccessReview{Spec: authorizationapi.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationapi.ResourceAttributes{Verb: "get", Resource: "pods"}}}
		if answer, err := c.Reviews().Create(t.Context(), review, metav1.CreateOptions{}); err != nil || answer.Status.Allowed != want {
			t.Errorf("%s: %v %v", user, answer, err)
		}
	}
	token := &authenticationapi.TokenReview{Spec: authenticationapi.TokenReviewSpec{Token: "secret"}}
	if answer, err := c.TokenReviews().Create(t.Context(), token, metav1.CreateOptions{}); err != nil || answer.Status.User.Username != "jane" {
		t.Errorf("%v %v", answer, err)
	}
	if order, err := c.PendingWorkloads(t.Context(), "whole"); err != nil || fmt.Sprint(order.Pending) != "[{team w line}]" {
		t.Errorf("%v %v", order, err)
	}
	for _, what := range []authorizationapi.ResourceAttributes{
		{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"}, {Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
		{Verb: "get", Group: "visibility.kueue.x-k8s.io", Resource: "clusterqueues", Subresource: "pendingworkloads"},
	} {
		if allowed, err := c.May(t.Context(), what); err != nil || !allowed {
			t.Errorf("%v: %v %v", what, allowed, err)
		}
	}
	at.take()
	if a := g.post(reviewsOfAccess+"?dryRun=All&fieldManager=x", strings.Replace(reviewOfAccess, `"spec"`, `"metadata":{"name":"x"},"status":{"allowed":true},"spec"`, 1), edge); a.code != 201 || strings.Contains(a.body, `"name":"x"`) {
		t.Errorf("%d %s", a.code, a.body)
	}
	if asked := at.take(); len(asked) != 1 || asked[0] != "POST "+reviewsOfAccess {
		t.Errorf("what was sent along was passed on: %q", asked)
	}
	for _, request := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/api/v1/namespaces/a/pods", "{}", 405}, {"POST", "/api/v1/namespaces/a/configmaps", "{}", 405}, {"POST", "/apis/batch/v1/jobs", "{}", 405},
		{"POST", "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews", reviewOfAccess, 405},
		{"POST", "/api/v1/namespaces/a/serviceaccounts/b/token", "{}", 405},
		{"POST", reviewsOfAccess + "/x", reviewOfAccess, 405}, {"POST", "/apis/authorization.k8s.io/v1beta1/subjectaccessreviews", reviewOfAccess, 405},
		{"POST", pendingInWhole, "{}", 405}, {"PUT", reviewsOfAccess, reviewOfAccess, 405}, {"PATCH", reviewsOfTokens, reviewOfToken, 405}, {"DELETE", "/api/v1/namespaces/a/pods/b", "", 405},
		{"POST", reviewsOfAccess, reviewOfToken, 400}, {"POST", reviewsOfTokens, `{"kind":"Pod","apiVersion":"v1"}`, 400}, {"POST", reviewsOfTokens, "{", 400},
		{"POST", reviewsOfTokens, `{"spec":{"token":"` + strings.Repeat("x", 20<<10) + `"}}`, 413},
	} {
		if a := g.send(request.method, request.path, request.body, edge); a.code != request.want {
			t.Errorf("%s %s: %d %s", request.method, request.path, a.code, a.body)
		}
	}
	if asked := at.take(); len(asked) > 0 {
		t.Errorf("the API server was asked %q", asked)
	}
	g.access.permit("edge", auth.Scope{})
	if a := g.get(pendingInWhole, edge); a.code != http.StatusForbidden {
		t.Errorf("an edge that may not read queues is answered %d %s", a.code, a.body)
	}
}

// The order of queues names Workloads of all namespaces, so the audit log says who read it, and who was refused.
func TestTheOrderThatAnEdgeReadsIsAudited(t *testing.T) {
	const edge = "Authorization: Bearer edge"
	file, logs := audited(t)
	g, _ := coreWithAnEdge(t, logs)
	g.get(pendingInWhole, edge)
	g.access.permit("edge", auth.Scope{})
	g.get(pendingInWhole, edge)
	file.end()
	lines := strings.Join(file.lines(), "\n")
	for _, want := range []string{
		`ResponseComplete get clusterqueues.visibility.kueue.x-k8s.io /whole "edge" 200 allow`,
		`ResponseComplete get clusterqueues.visibility.kueue.x-k8s.io /whole "edge" 403 forbid`,
	} {
		if strings.Count(lines, want) != 1 {
			t.Errorf("%q is not one line of\n%s", want, lines)
		}
	}
}

// What Kueue does not know, or is not there to say, is not found at a core either: a 503 would have the edge ask each of its
// cores, and count as one that answers nothing.
func TestAQueueOfWhichKueueKnowsNothingIsNotFound(t *testing.T) {
	g, _ := coreWithAnEdge(t)
	g.api.Intercept(func(r *http.Request) *apitest.Fault {
		if strings.Contains(r.URL.Path, "/none/") {
			return &apitest.Fault{Status: &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}}
		}
		return nil
	})
	for path, want := range map[string]int{strings.Replace(pendingInWhole, "whole", "none", 1): http.StatusNotFound, pendingInWhole: http.StatusOK} {
		if a := g.get(path, "Authorization: Bearer edge"); a.code != want {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
}

// A gateway that tells nobody of queues, or may not serve Workloads, whose names the order has, tells other gateways neither.
func TestAnEdgeIsToldNoMoreOfQueuesThanIsServed(t *testing.T) {
	const edge = "Authorization: Bearer edge"
	for name, change := range map[string]option{
		"no queues": options(func(o *Options) { o.NoQueues = true }),
		"no Workloads": func(g *gateway, _ *Options) {
			g.serves = func(_, resource string) bool { return resource != "workloads" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := coreWithAnEdge(t, change)
			if a := g.get(pendingInWhole, edge); a.code != http.StatusNotFound || strings.Contains(a.body, "line") {
				t.Errorf("%d %s", a.code, a.body)
			}
			review := `{"spec":{"resourceAttributes":{"verb":"get","group":"visibility.kueue.x-k8s.io","resource":"clusterqueues","subresource":"pendingworkloads"}}}`
			if a := g.post(accessReviews, review, edge); a.code != http.StatusCreated || strings.Contains(a.body, `"allowed":true`) {
				t.Errorf("a review of itself: %d %s", a.code, a.body)
			}
		})
	}
}
