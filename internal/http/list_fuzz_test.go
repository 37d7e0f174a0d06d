package http

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/http/reply"
)

// patientRecorder takes deadlines, as connections do.
type patientRecorder struct{ *httptest.ResponseRecorder }

func (patientRecorder) SetWriteDeadline(time.Time) error { return nil }

// FuzzKubernetesRequest: whatever path, query and form a stranger asks for, the answer is JSON; if it is no success, it
// is a Status with the answer's own code, and never a 500. A fresh continue token is good.
func FuzzKubernetesRequest(f *testing.F) {
	const as = "application/json;g=meta.k8s.io;v=v1;as="
	const fresh = "eyJ2Ijo5LCJucyI6InRlYW0tYSIsIm4iOiJ3ZWItMSIsInMiOiItc3BlYy5wcmlvcml0eSJ9" // of version 9, behind team-a/web-1, by -spec.priority
	for _, seed := range [][3]string{
		{"api/v1/pods", "sort=-spec.priority,metadata.name&limit=2&search=WEB", ""},
		{"api/v1/pods", "sort=-spec.priority&continue=" + fresh, "*/*"},
		{"api/v1/namespaces/team-a/pods", "continue=eyJ2Ijo1LCJuIjoiYSJ9&limit=1", as + "Table"},
		{"api/v1/pods", "continue=eyJ2Ijo1LCJuIjoiYSIsInMiOiJhIiwiayI6W3siYyI6MiwibiI6MWUzMDh9XX0&sort=a", ""},
		{"api/v1/namespaces/team-a/pods/db", "fields=status.phase,a\\.b&includeObject=None", as + "PartialObjectMetadata"},
		{"api/v1/pods", "countBy=metadata.labels.app&limit=1&labelSelector=app%20in%20(a,b),!c", ""},
		{"clusters/default/apis/batch/v1/jobs", "resourceVersion=1&resourceVersionMatch=Exact", as + "PartialObjectMetadataList"},
		{"apis/batch/v1", "hash=x", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"},
		{"openapi/v3/apis/batch/v1", "hash=B1", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"},
		{"openapi/v3/..%2f..", "", ""}, {"api//", "watch", ""}, {"version", "%zz", ""}, {"clusters//api", "", ""}, {"api/v1/namespaces/a/pods/b/log", "limit=;", ""},
		{"api/v1/pods", "fieldSelector=a.b!=c,d==e&resourceVersion=0&pretty=true", "application/json;q=0.5,text/event-stream;q=0"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	g := newGateway(f, before(fivePods))
	for _, path := range []string{"/api/v1/pods", "/apis/batch/v1/jobs", "/version"} {
		g.get(path)
	}
	handler := g.server.Handler()
	send := func(path, query, accept string) *httptest.ResponseRecorder {
		patience := g.patience
		if strings.Contains(query, "resourceVersion") {
			patience = 50 * time.Millisecond // it may be one that never comes
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		r.URL = &url.URL{Path: "/" + path, RawQuery: query}
		r.Header.Set("Authorization", "Bearer alice")
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(patientRecorder{w}, r)
		return w
	}
	f.Fuzz(func(t *testing.T, path, query, accept string) {
		if !reply.OnKubernetesPath("/"+path) || reply.Negotiate(http.Header{"Accept": {accept}}) == reply.FormEvents {
			return
		}
		w := send(path, query, accept)
		body := w.Body.String()
		switch {
		case w.Code == http.StatusOK:
			if !json.Valid([]byte(body)) && !strings.Contains(w.Header().Get("Content-Type"), "protobuf") {
				t.Errorf("%s?%s as %s: %s", path, query, accept, body)
			}
			return
		case w.Code >= 300 && w.Code < 400: // chi's or none
			return
		}
		var status struct {
			Kind, Reason, Message string
			Code                  int
			Metadata              struct{ Continue string }
		}
		err := json.Unmarshal([]byte(body), &status)
		awaited := strings.Contains(query, "resourceVersion") && w.Code == http.StatusServiceUnavailable // given up by the test
		if err != nil || status.Kind != "Status" || status.Code != w.Code || status.Reason == "" || status.Message == "" || w.Code >= 500 && !awaited {
			t.Errorf("%s?%s as %s: %d %s; log: %s", path, query, accept, w.Code, body, g.log)
		}
		if fresh := status.Metadata.Continue; fresh != "" {
			values, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			values.Set("continue", fresh)
			if w := send(path, values.Encode(), accept); w.Code != http.StatusOK {
				t.Errorf("%s?%s as %s: the fresh token is answered with %d %s", path, values.Encode(), accept, w.Code, w.Body)
			}
		}
	})
}
