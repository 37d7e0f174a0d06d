package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mustStatus checks that an answer is a Status as kubectl prints it, with a message that contains a text.
func (a answer) mustStatus(t *testing.T, code int, reason metav1.StatusReason, text string) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal([]byte(a.body), &status); err != nil {
		t.Errorf("%d %s: %v", a.code, a.body, err)
		return
	}
	if a.code != code || status.Kind != "Status" || status.APIVersion != "v1" || status.Status != metav1.StatusFailure ||
		int(status.Code) != code || status.Reason != reason || !strings.Contains(status.Message, text) {
		t.Errorf("answered %d %s, not %d %s with %q", a.code, a.body, code, reason, text)
	}
}

// The faults of a request are told by status and text, as a Status on Kubernetes' paths. Event streams get the same
// codes, since it does not help to repeat such a request.
func TestBadRequestsAreRefusedClearly(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	token := s.viewer(t)
	events := http.Header{"Accept": {"text/event-stream"}}
	const bad, pods = http.StatusBadRequest, "/api/v1/pods"
	for _, c := range []struct {
		path   string
		header http.Header
		code   int
		reason metav1.StatusReason
		text   string
	}{
		{pods + "?labelSelector=a%3D%3D%3Db", nil, bad, "BadRequest", "unable to parse requirement"}, // in the API server's own words
		{pods + "?labelSelector=in+(", events, bad, "BadRequest", "labelSelector"},
		{pods + "?fieldSelector=status.phase", nil, bad, "BadRequest", "invalid selector: 'status.phase'"},
		{pods + "?fieldSelector=a..b%3Dc", events, bad, "BadRequest", "fieldSelector"},
		{pods + "?limit=many", nil, bad, "BadRequest", "parsing \"many\": invalid syntax"}, // likewise
		{pods + "?limit=-1", nil, bad, "BadRequest", "limit"},
		{pods + "?continue=nonsense", nil, bad, "BadRequest", "continue"},
		{pods + "?resourceVersion=abc", nil, bad, "BadRequest", "resourceVersion"},
		{pods + "?resourceVersion=-1", events, bad, "BadRequest", "resourceVersion"},
		{pods + "?resourceVersion=99999999999999999999", events, bad, "BadRequest", "resourceVersion"},
		{pods + "?resourceVersionMatch=Exact", nil, http.StatusUnprocessableEntity, "Invalid", "resourceVersionMatch"},
		{pods + "?resourceVersion=1&resourceVersionMatch=Sometimes", nil, http.StatusUnprocessableEntity, "Invalid", "resourceVersionMatch"},
		{pods + "?sort=a..b", nil, bad, "BadRequest", "sort"},
		{pods + "?fields=a..b", nil, bad, "BadRequest", "fields"},
		{pods + "?countBy=.", nil, bad, "BadRequest", "countBy"},
		{pods + "?sendInitialEvents=perhaps", events, bad, "BadRequest", "sendInitialEvents"},
		{pods + "?heartbeat=often", events, bad, "BadRequest", "heartbeat"},
		{pods + "?labelselector=a", events, bad, "BadRequest", "labelselector"},
		{pods + "?labelSelector=a&labelSelector=b", events, bad, "BadRequest", "labelSelector"},
		{pods + "?access_token=secret", nil, bad, "BadRequest", "Authorization"},
		{"/api/v1/nothings", nil, http.StatusForbidden, "Forbidden", "nothings"}, // the permission is checked first
		{"/apis/batch/v1/nothings", nil, http.StatusNotFound, "NotFound", "could not find"},
		{"/apis/batch/v1/nothings", events, http.StatusNotFound, "NotFound", "could not find"},
		{"/apis/batch/v9/jobs", nil, http.StatusNotFound, "NotFound", "could not find"},
		{"/api/v1/namespaces/default/nodes", nil, http.StatusNotFound, "NotFound", "could not find"},
		{"/api/v1/namespaces/default/pods/absent", nil, http.StatusNotFound, "NotFound", `pods "absent" not found`},
		{"/clusters/elsewhere/api/v1/pods", nil, http.StatusNotFound, "NotFound", "cluster"},
		{pods, http.Header{"Accept": {"application/yaml"}}, http.StatusNotAcceptable, "NotAcceptable", "application/json"},
	} {
		header := bearer(token)
		for name, values := range c.header {
			header[name] = values
		}
		a, err := fetch(http.MethodGet, g.url+c.path, header)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(c.path, func(t *testing.T) { a.mustStatus(t, c.code, c.reason, c.text) })
	}
}

// The same on /stream, where errors are problems (RFC 9457).
func TestBadStreamRequestsAreRefusedClearly(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	for path, text := range map[string]string{
		"/stream":               "no watch",
		"/stream?pods=pods":     "pods",
		"/stream?pods=/healthz": "pods",
		"/stream?pods=https://elsewhere/api/v1/x":     "pods",
		"/stream?Pods=/api/v1/pods":                   "Pods",
		"/stream?watch=/api/v1/pods":                  "",
		"/stream?a=/api/v1/pods&a=/api/v1/pods":       "a",
		"/stream?a=/api/v1/pods%3FlabelSelector%3D((": "labelSelector",
		"/stream?a=/api/v1/pods%3Fnonsense%3D1":       "nonsense",
		"/stream?a=/api/v1/pods&heartbeat=never":      "heartbeat",
	} {
		header := bearer(s.viewer(t))
		header.Set("Accept", "text/event-stream")
		a, err := fetch(http.MethodGet, g.url+path, header)
		if err != nil {
			t.Fatal(err)
		}
		a.mustProblem(t, path, http.StatusBadRequest, text)
	}
	header := bearer(s.viewer(t))
	header.Set("Accept", "text/event-stream")
	a, err := fetch(http.MethodGet, g.url+"/stream?a=/apis/batch/v1/nothings", header)
	if err != nil {
		t.Fatal(err)
	}
	a.mustProblem(t, "a kind that does not exist", http.StatusNotFound, "")
	a, err = fetch(http.MethodGet, g.url+"/stream?a=/api/v1/pods", nil)
	if err != nil {
		t.Fatal(err)
	}
	a.mustProblem(t, "without a token", http.StatusUnauthorized, "")
}

func (a answer) mustProblem(t *testing.T, what string, code int, text string) {
	t.Helper()
	var problem struct {
		Status        int
		Title, Detail string
	}
	err := json.Unmarshal([]byte(a.body), &problem)
	if err != nil || a.code != code || problem.Status != code || problem.Title == "" || !strings.Contains(problem.Detail, text) ||
		a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: answered %d %q %s, not a problem with %q", what, a.code, a.header.Get("Content-Type"), a.body, text)
	}
}

// The gateway only reads.
func TestWritesAreRefused(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		a, err := fetch(method, g.url+"/api/v1/namespaces/default/pods/one", bearer(s.viewer(t)))
		if err != nil {
			t.Fatal(err)
		}
		a.mustStatus(t, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "only reads")
		if a.header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: Allow: %q", method, a.header.Get("Allow"))
		}
	}
}
