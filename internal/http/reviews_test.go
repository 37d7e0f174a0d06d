package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/auth"
)

const (
	accessReviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	rulesReviews  = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
	selfReviews   = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
)

// clientOf is a typed client of the gateway, which sends and takes bodies of a media type.
func (g *gateway) clientOf(user, media string) *kubernetes.Clientset {
	g.t.Helper()
	client, err := kubernetes.NewForConfig(&clientrest.Config{Host: g.url, BearerToken: user, ContentConfig: clientrest.ContentConfig{ContentType: media}})
	if err != nil {
		g.t.Fatal(err)
	}
	return client
}

// What a review says is what the gateway does: yes, where a request is answered, and no, where it
// is refused or what is asked for is not there.
func TestReviewsSayWhatRequestsAreAnswered(t *testing.T) {
	g := newGateway(t, func(g *gateway, _ *Options) {
		g.serves = func(_, resource string) bool { return resource != "secrets" }
	})
	g.api.Put("pods", "a/web")
	users := map[string]auth.Scope{
		"all":     {All: true},
		"team":    {Namespaces: []string{"a"}},
		"names":   {Names: map[string][]string{"a": {"web"}}},
		"nothing": {},
	}
	type question struct{ group, version, resource, namespace, name, verb string }
	var questions []question
	for _, resource := range []question{
		{version: "v1", resource: "pods"}, {version: "v1", resource: "secrets"}, {version: "v1", resource: "bindings"}, {version: "v1", resource: "nodes"},
		{version: "v1", resource: "gadgets"}, {group: "batch", version: "v1", resource: "jobs"}, {group: "batch", version: "v9", resource: "jobs"},
		{group: "nowhere", version: "v1", resource: "pods"}, {version: "v1", resource: "jobs.batch"},
	} {
		for _, resource.namespace = range []string{"", "a", "b"} {
			for _, resource.verb = range []string{"list", "watch"} {
				questions = append(questions, resource)
			}
			if resource.resource == "pods" && resource.namespace != "" {
				resource.name, resource.verb = "web", "get"
				questions = append(questions, resource)
				resource.name = ""
			}
		}
	}
	for user, scope := range users {
		g.access.permit(user, scope)
		said := map[bool]int{}
		for _, q := range questions {
			if q.resource == "nodes" && q.namespace != "" {
				continue // a request is 404, and a review leaves the namespace out, as kubectl's has one
			}
			path := "/api/" + q.version
			if q.group != "" {
				path = "/apis/" + q.group + "/" + q.version
			}
			if q.namespace != "" {
				path += "/namespaces/" + q.namespace
			}
			path = strings.TrimSuffix(path+"/"+q.resource+"/"+q.name, "/")
			answered := g.get(path, "Authorization: Bearer "+user).code
			review, err := g.clientOf(user, runtime.ContentTypeJSON).AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: q.group, Version: q.version, Resource: q.resource, Namespace: q.namespace, Name: q.name, Verb: q.verb,
				}},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			visible := answered == 200 || answered == 404 && q.name != "" && q.group == "" && scope.Sees(q.namespace, q.name) // an object that does not exist
			if review.Status.Allowed != visible || review.Status.Allowed && review.Status.Denied || !review.Status.Allowed && review.Status.Reason == "" {
				t.Errorf("%s: %s of %s is answered with %d, but the review says %+v", user, q.verb, path, answered, review.Status)
			}
			said[review.Status.Allowed]++
		}
		if user != "nothing" && said[true] == 0 || user != "all" && said[false] == 0 {
			t.Errorf("%s: the questions show nothing: %v", user, said)
		}
	}
}

// What a review must not say: that something can be changed, or what the caller could find out by no request.
func TestReviewsPromiseNothingThatTheGatewayDoesNot(t *testing.T) {
	g := newGateway(t)
	g.access.permit("alice", auth.Scope{All: true})
	ask := func(attributes string) (status authorizationv1.SubjectAccessReviewStatus) {
		t.Helper()
		a := g.post(accessReviews, `{"spec":{`+attributes+`}}`)
		var review authorizationv1.SelfSubjectAccessReview
		if err := json.Unmarshal([]byte(a.body), &review); err != nil || a.code != 201 || a.header.Get("Cache-Control") != "no-store" ||
			review.Kind != "SelfSubjectAccessReview" || review.APIVersion != "authorization.k8s.io/v1" {
			t.Fatalf("%s: %d %v %s", attributes, a.code, a.header, a.body)
		}
		return review.Status
	}
	for _, no := range []string{
		`"resourceAttributes":{"verb":"create","resource":"pods","namespace":"a"}`,
		`"resourceAttributes":{"verb":"delete","resource":"pods","name":"x"}`,
		`"resourceAttributes":{"verb":"*","resource":"*","group":"*"}`,
		`"resourceAttributes":{"verb":"get","resource":"*","group":"*"}`,
		`"resourceAttributes":{"verb":"get","resource":"pods","subresource":"exec"}`,
		`"resourceAttributes":{"verb":"list","resource":"bindings"}`,
		`"resourceAttributes":{"verb":"list","resource":"gadgets"}`,
		`"resourceAttributes":{"verb":"list","resource":""}`,
		`"resourceAttributes":{}`,
		`"nonResourceAttributes":{"verb":"get","path":"/metrics"}`,
		`"nonResourceAttributes":{"verb":"post","path":"/api"}`,
		`"nonResourceAttributes":{"verb":"get","path":"/debug/pprof"}`,
		`"nonResourceAttributes":{"verb":"get","path":""}`,
	} {
		if status := ask(no); status.Allowed || status.Reason == "" {
			t.Errorf("%s: %+v", no, status)
		}
	}
	for _, yes := range []string{
		`"resourceAttributes":{"verb":"list","resource":"pods"}`,
		`"resourceAttributes":{"verb":"list","resource":"pods","version":"*"}`,
		`"resourceAttributes":{"verb":"create","group":"authorization.k8s.io","resource":"selfsubjectaccessreviews"}`,
		`"nonResourceAttributes":{"verb":"get","path":"/version"}`,
		`"nonResourceAttributes":{"verb":"get","path":"/readyz"}`,
	} {
		if status := ask(yes); !status.Allowed {
			t.Errorf("%s: %+v", yes, status)
		}
	}
	// A caller who may not read discovery cannot tell whether a kind exists that they may not see.
	g.access.permit("eve", auth.Scope{})
	g.access.set(func(a *fakeAuth) { a.strangers = []string{"eve"} })
	there := g.post(accessReviews, `{"spec":{"resourceAttributes":{"verb":"list","resource":"pods"}}}`, "Authorization: Bearer eve")
	absent := g.post(accessReviews, `{"spec":{"resourceAttributes":{"verb":"list","resource":"gadgets"}}}`, "Authorization: Bearer eve")
	if strings.ReplaceAll(there.body, "pods", "gadgets") != absent.body {
		t.Errorf("%s\n%s", there.body, absent.body)
	}
	g.access.set(func(a *fakeAuth) { a.undecided = true })
	if a := g.post(accessReviews, `{"spec":{"nonResourceAttributes":{"verb":"get","path":"/api"}}}`); a.code != 503 {
		t.Errorf("while nobody can decide: %d %s", a.code, a.body)
	}
}

// client-go's typed client understands each review in both of its media types, and is told who it is.
func TestReviewsInBothEncodings(t *testing.T) {
	g := newGateway(t)
	g.access.permit("alice", auth.Scope{Namespaces: []string{"a"}, Names: map[string][]string{"b": {"web"}}})
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		client := g.clientOf("alice", media)
		self, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil || self.Status.UserInfo.Username != "alice" {
			t.Errorf("%s: %+v, %v", media, self, err)
		}
		for namespace, want := range map[string]string{
			"a": "[get list watch] [pods] []",
			"b": "[get list watch] [pods] [web]",
			"c": "",
		} {
			rules, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{
				Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
			}, metav1.CreateOptions{})
			if err != nil || rules.Status.Incomplete {
				t.Fatalf("%s: %+v, %v", media, rules, err)
			}
			got, create := "", 0
			for _, rule := range rules.Status.ResourceRules {
				if slices.Contains(rule.Resources, "secrets/status") || slices.Contains(rule.Resources, "bindings") {
					t.Errorf("%s: told of what is not served: %v", namespace, rule)
				}
				if i := slices.Index(rule.Resources, "pods"); i >= 0 {
					got += fmt.Sprintf("%v [%s] %v", rule.Verbs, rule.Resources[i], rule.ResourceNames)
				}
				if slices.Equal(rule.Verbs, []string{"create"}) {
					create += len(rule.Resources)
				}
			}
			if got != want || create != 3 || len(rules.Status.NonResourceRules) == 0 {
				t.Errorf("%s: %q, %d reviews, %v", namespace, got, create, rules.Status.NonResourceRules)
			}
		}
	}
	g.access.permit("alice", auth.Scope{})
	g.access.set(func(a *fakeAuth) { a.undecided = true })
	a := g.post(rulesReviews, `{"spec":{"namespace":"a"}}`)
	if a.code != 201 || !strings.Contains(a.body, `"incomplete":true`) || !strings.Contains(a.body, `"evaluationError":`) {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func TestBadReviewsAreRefusedInWords(t *testing.T) {
	g := newGateway(t)
	for _, test := range []struct {
		path, body, header string
		code               int
		says               string
	}{
		{accessReviews, `{"spec":{}}`, "", 422, "exactly one of nonResourceAttributes or resourceAttributes must be specified"},
		{accessReviews, ``, "", 400, "no SelfSubjectAccessReview"},
		{accessReviews, `{`, "", 400, "no SelfSubjectAccessReview"},
		{accessReviews, `[]`, "", 400, "no SelfSubjectAccessReview"},
		{accessReviews, `{"kind":"SelfSubjectRulesReview","apiVersion":"authorization.k8s.io/v1"}`, "", 400, "no SelfSubjectAccessReview"},
		{accessReviews, `{"kind":"Pod","apiVersion":"v1"}`, "", 400, "no SelfSubjectAccessReview"},
		{accessReviews, `{"spec":{"resourceAttributes":{},"nonResourceAttributes":{}}}`, "", 422, "in combination"},
		{accessReviews, strings.Repeat(" ", 17<<10), "", 413, "larger than the 16384 bytes"},
		{accessReviews, `x=1`, "Content-Type: application/x-www-form-urlencoded", 415, "application/json"},
		{accessReviews, `spec: {}`, "Content-Type: application/yaml", 415, "application/json"},
		{accessReviews, `{}`, "Content-Type: */*", 415, "application/json"},
		{accessReviews, "k8s\x00\x0a", "Content-Type: application/vnd.kubernetes.protobuf", 400, "no SelfSubjectAccessReview"},
		{accessReviews, `{}`, "Accept: text/html", 406, "application/json"},
		{accessReviews, `{}`, "Authorization: ", 401, "credentials required"},
		{accessReviews, `{}`, "Impersonate-User: root", 400, "impersonates nobody"},
		{rulesReviews, `{"spec":{}}`, "", 400, "no namespace on request"},
		{"/clusters/none" + accessReviews, `{}`, "", 404, "no cluster"},
		{"/apis/authorization.k8s.io/v1/subjectaccessreviews", `{}`, "", 405, "only reads"},
		{"/apis/authorization.k8s.io/v1/namespaces/a/selfsubjectaccessreviews", `{}`, "", 405, "only reads"},
		{accessReviews + "/x", `{}`, "", 405, "only reads"},
		{"/apis/authorization.k8s.io/v1beta1/selfsubjectaccessreviews", `{}`, "", 405, "only reads"},
	} {
		var headers []string
		if test.header != "" {
			headers = append(headers, test.header)
		}
		a := g.post(test.path, test.body, headers...)
		var status metav1.Status
		if err := json.Unmarshal([]byte(a.body), &status); err != nil || a.code != test.code || !strings.Contains(status.Message, test.says) {
			t.Errorf("%s %.40q %s: %d %s", test.path, test.body, test.header, a.code, a.body)
		}
	}
	g.access.set(func(a *fakeAuth) { a.anonymous = true })
	if a := g.post(selfReviews, `{}`, "Authorization: "); a.code != 403 || !strings.Contains(a.body, "cannot create resource") {
		t.Errorf("a stranger: %d %s", a.code, a.body)
	}
	for path, methods := range map[string]string{accessReviews: "POST, OPTIONS", "/clusters/default" + rulesReviews: "POST, OPTIONS", "/apis/authorization.k8s.io/v1": "GET, HEAD, OPTIONS"} {
		if a := g.request(http.MethodOptions, path); a.header.Get("Allow") != methods {
			t.Errorf("%s: %v", path, a.header)
		}
	}
}

// Tools ask an API server whether it is well, and take no other word than ok for it.
func TestHealthIsToldAsByAnAPIServer(t *testing.T) {
	g := newGateway(t, cached(streamOptions(), "pods"))
	g.eventually("it is ready", func() bool { return g.get("/readyz").code == 200 })
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/clusters/default/readyz"} {
		if a := g.get(path); a.code != 200 || a.body != "ok" || g.request(http.MethodHead, path).code != 200 {
			t.Errorf("%s: %d %q", path, a.code, a.body)
		}
	}
	if a := g.get("/clusters/none/readyz"); a.code != 404 {
		t.Errorf("no such cluster: %d", a.code)
	}
	if a := g.get("/readyz", "Authorization: "); a.code != 401 {
		t.Errorf("a stranger: %d", a.code)
	}
	g.access.set(func(a *fakeAuth) { a.strangers = []string{"eve"} })
	if a := g.get("/livez", "Authorization: Bearer eve"); a.code != 403 {
		t.Errorf("one who may not: %d", a.code)
	}
	g.server.Drain(t.Context())
	if a := g.get("/readyz"); a.code != 503 || g.get("/livez").code != 200 {
		t.Errorf("while it drains: %d %s", a.code, a.body)
	}
}

// Whatever is posted, it is answered as a review or refused, and says nothing of the inside.
func FuzzReview(f *testing.F) {
	f.Add(accessReviews, []byte(`{"spec":{"resourceAttributes":{"verb":"list","resource":"pods","namespace":"a","name":"x","group":"batch","version":"v1"}}}`), false)
	f.Add(accessReviews, []byte(`{"spec":{"nonResourceAttributes":{"verb":"get","path":"/api"}}}`), false)
	f.Add(rulesReviews, []byte(`{"metadata":{"name":"x"},"spec":{"namespace":"a"}}`), false)
	f.Add(selfReviews, []byte("k8s\x00\n\x1d\n\x11authentication.k8s.io/v1"), true)
	g := newGateway(f)
	f.Fuzz(func(t *testing.T, path string, body []byte, protobuf bool) {
		if !slices.Contains([]string{accessReviews, rulesReviews, selfReviews}, path) {
			path = accessReviews
		}
		g.t = t
		media := runtime.ContentTypeJSON
		if protobuf {
			media = runtime.ContentTypeProtobuf
		}
		a := g.post(path, string(bytes.Clone(body)), "Content-Type: "+media)
		var said struct{ Kind string }
		if err := json.Unmarshal([]byte(a.body), &said); err != nil || !slices.Contains([]int{201, 400, 413, 422, 429}, a.code) || said.Kind == "" {
			t.Errorf("%q: %d %s", body, a.code, a.body)
		}
	})
}
