package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// asker sends a GET to one of the two servers.
type asker func(t *testing.T, path, accept string) answer

// oracle asks the API server.
func (s *stage) oracle(t *testing.T) asker {
	t.Helper()
	client, url := s.oracleClient(t)
	return func(t *testing.T, path, accept string) answer {
		t.Helper()
		return ask(t, client, url+path, http.Header{"Accept": {accept}})
	}
}

func (s *stage) oracleClient(t *testing.T) (client *http.Client, url string) {
	t.Helper()
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	if client, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	return client, config.Host
}

func (g *gateway) asker(token string) asker {
	return func(t *testing.T, path, accept string) answer {
		t.Helper()
		header := bearer(token)
		header.Set("Accept", accept)
		return ask(t, http.DefaultClient, g.url+path, header)
	}
}

// answerOf asks for something. The caller closes the answer.
func answerOf(t *testing.T, client *http.Client, url string, header http.Header) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func ask(t *testing.T, client *http.Client, url string, header http.Header) answer {
	t.Helper()
	response := answerOf(t, client, url, header)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

const asJSON = "application/json"

// Requests are refused as the API server refuses them, byte for byte. Where the contract differs, the case says how.
func TestRefusalsAreTheAPIServers(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	token, oracle := s.admin(t), s.oracle(t)
	const pods = "/api/v1/pods"
	for _, c := range []struct{ path, accept, instead string }{
		{path: pods + "?labelSelector=%3D"},
		{path: pods + "?labelSelector=a%20in%20b"},
		{path: pods + "?fieldSelector=a"},
		{path: pods + "?fieldSelector=spec.made.up%3Da", instead: "200 "}, // any path can be selected by
		{path: pods + "?limit=x"},
		{path: pods + "?limit=99999999999999999999"},
		{path: pods + "?limit=1.5"},
		{path: pods + "?watch=1&timeoutSeconds=1&limit=x"},
		{path: pods + "?watch=1&timeoutSeconds=x"},
		{path: pods + "?watch=1&timeoutSeconds=1&sendInitialEvents=true"},
		{path: pods + "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=Exact"},
		{path: pods + "?watch=1&timeoutSeconds=1&resourceVersionMatch=Exact"},
		{path: pods + "?watch=1&timeoutSeconds=1&labelSelector=%3D"},
		{path: pods + "?watch=1&timeoutSeconds=1&fieldSelector=a"},
		{path: pods + "?watch=1&timeoutSeconds=1&resourceVersion=x", instead: "400 BadRequest"}, // at the API server it is 500
		{path: pods + "?labelSelector=a%3D%3D%3Db"},
		{path: pods + "?labelSelector=-a%3Db"},
		{path: pods + "?labelSelector=a%20notin%20(b%2C"},
		{path: pods + "?limit=-1", instead: "400 BadRequest"}, // at the API server it means no limit
		{path: pods + "?timeoutSeconds=x"},
		{path: pods + "?timeout=x"},
		{path: pods + "?timeout=5"},
		{path: "/api/v1/namespaces/default?timeout=x"},
		{path: "/version?timeout=x"},
		{path: "/apis/batch/v1?timeout=1"},
		{path: pods + "?watch=1&timeoutSeconds=1&timeout=x&limit=x"},
		{path: pods + "?resourceVersion=x"},
		{path: pods + "?resourceVersion=-5"},
		{path: pods + "?resourceVersion=18446744073709551616"},
		{path: pods + "?resourceVersionMatch=Exact"},
		{path: pods + "?resourceVersionMatch=Newest&resourceVersion=1"},
		{path: pods + "?resourceVersionMatch=Exact&resourceVersion=0"},
		{path: pods + "?resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x"},
		{path: pods + "?continue=garbage"},
		{path: pods + "?continue=%25"},
		{path: pods + "?continue=e30"},
		{path: pods + "?continue=garbage&resourceVersion=5"},
		{path: pods + "?sendInitialEvents=true"},
		{path: pods + "?resourceVersion=4000000000"},
		{path: pods + "?resourceVersion=4000000000&resourceVersionMatch=NotOlderThan"},
		{path: pods + "?resourceVersion=4000000000&resourceVersionMatch=Exact"},
		{path: "/api/v1/nothings"},
		{path: "/api/v2"},
		{path: "/api/v2/pods"},
		{path: "/apis/batch/v1/nothings"},
		{path: "/apis/batch/v9/jobs"},
		{path: "/api/v1/pods/x"},
		{path: "/apis/batch/v1/jobs/x"},
		{path: "/api/v1/namespaces/absent/pods/x"},
		{path: "/api/v1/namespaces/default/nodes"},
		{path: "/api/v1/namespaces/default/pods/absent"},
		{path: "/apis/batch/v1/namespaces/default/jobs/absent"},
		{path: "/api/v1/nodes/absent"},
		{path: "/api/v1/namespaces/absent"},
		{path: "/api/v1/namespaces/default?resourceVersion=4000000000"},
		{path: "/api/v1/namespaces/default?resourceVersion=x", instead: "400 BadRequest"}, // at the API server it is 500
		{path: "/api/v1/namespaces/default/pods/absent/nothing", instead: "404 NotFound"}, // it says that there are no subresources
		{path: "/api/v1/bindings", instead: "405 MethodNotAllowed"},                       // it exists, but cannot be read
		{path: "/apis/nothing.example.org/v1", instead: "404 NotFound"},                   // the API server answers without a Status
		{path: "/apis/nothing.example.org/v1/nothings", instead: "404 NotFound"},
		{path: pods, accept: "application/xml", instead: "406 NotAcceptable"}, // it names the forms that there are
		{path: pods, accept: "application/json;as=Chair;g=meta.k8s.io;v=v1", instead: "406 NotAcceptable"},
		{path: pods, accept: "application/json;as=Table;g=meta.k8s.io;v=v9", instead: "406 NotAcceptable"},
		{path: pods + "?includeObject=Some", accept: "application/json;as=Table;g=meta.k8s.io;v=v1"},
		{path: "/api/v1/componentstatuses", instead: "405 MethodNotAllowed"}, // it cannot be watched, and so not cached
		{path: "/openapi/v3/apis/nothing.example.org/v1", instead: "404 NotFound"},
	} {
		t.Run(c.path+" "+c.accept, func(t *testing.T) {
			if c.accept == "" {
				c.accept = asJSON
			}
			got, want := g.asker(token)(t, c.path, c.accept), oracle(t, c.path, c.accept)
			if c.instead != "" {
				if brief := got.refusal(); brief != c.instead {
					t.Errorf("is answered\n%s, not\n%s", brief, c.instead)
				}
				return
			}
			got.body, want.body = currentVersion.ReplaceAllLiteralString(got.body, "current: N"), currentVersion.ReplaceAllLiteralString(want.body, "current: N")
			var onOneLine bytes.Buffer // in forms that no Status has, the API server writes it indented
			if err := json.Compact(&onOneLine, []byte(want.body)); err != nil {
				t.Fatal(err)
			}
			want.body = onOneLine.String() + "\n"
			if err := alike(got, want, false); err != nil {
				t.Error(err)
			}
		})
	}
}

// currentVersion is what depends on the moment in the text of a refusal.
var currentVersion = regexp.MustCompile(`current: \d+`)

// refusal returns the part of an answer by which clients decide.
func (a answer) refusal() string {
	var status struct {
		Kind, Reason string
	}
	if json.Unmarshal([]byte(a.body), &status) != nil || status.Kind != "Status" {
		return fmt.Sprintf("%d ", a.code)
	}
	return fmt.Sprintf("%d %s", a.code, status.Reason)
}

// A list in chunks is the same, chunk by chunk: the items, the number of those that are left, and the version. A
// version that is asked for later is still the same (as in Kubernetes' conformance test of chunks).
func TestChunksAreTheAPIServers(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	token, oracle := s.admin(t), s.oracle(t)
	gateway := g.asker(token)
	s.kubectlObjects(t, "chunks", "chunks-b", "chunks-c")
	for _, path := range []string{
		"/api/v1/namespaces/chunks/configmaps",
		"/api/v1/namespaces/chunks/pods",
		"/api/v1/pods?labelSelector=kubectl%3Dchunks",
		"/api/v1/namespaces/chunks/pods?fieldSelector=metadata.name!%3Dweb",
		"/apis/batch/v1/jobs?labelSelector=kubectl%3Dchunks",
		"/api/v1/namespaces/nowhere/pods",
	} {
		for _, limit := range []int{1, 2, 3, 4, 500} {
			eventually(t, "all is cached", func() error {
				_, a := chunks(t, gateway, path, limit)
				_, b := chunks(t, oracle, path, limit)
				if !reflect.DeepEqual(a, b) {
					return fmt.Errorf("%s by %d:\n%+v\nnot\n%+v", path, limit, a, b)
				}
				return nil
			})
			if versions, _ := chunks(t, gateway, path, limit); len(slices.Compact(versions)) != 1 {
				t.Errorf("%s by %d: the chunks are of versions %v", path, limit, versions)
			}
		}
	}
}

// chunk is the part of a chunk that is compared.
type chunk struct {
	Names     []string
	Remaining int64
	More      bool
}

func chunks(t *testing.T, ask asker, path string, limit int) (versions []string, all []chunk) {
	t.Helper()
	next := ""
	for {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		a := ask(t, fmt.Sprintf("%s%slimit=%d&continue=%s", path, separator, limit, next), asJSON)
		var list struct {
			Metadata struct {
				ResourceVersion, Continue string
				RemainingItemCount        int64
			}
			Items []struct {
				Metadata struct{ Namespace, Name string }
			}
		}
		if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, a.code, a.body)
		}
		c := chunk{Remaining: list.Metadata.RemainingItemCount, More: list.Metadata.Continue != ""}
		for _, item := range list.Items {
			c.Names = append(c.Names, item.Metadata.Namespace+"/"+item.Metadata.Name)
		}
		versions, all = append(versions, list.Metadata.ResourceVersion), append(all, c)
		next = list.Metadata.Continue
		// After the last item that a selector matches, the API server may promise another chunk: it has not looked
		// yet whether any of the remaining items, such as another test's pods, matches.
		if n := len(all) - 1; next == "" && n > 0 && len(c.Names) == 0 {
			all = all[:n]
			all[n-1].More = false
		}
		if next == "" {
			return versions, all
		}
	}
}

// In whatever form a client asks, both servers give the same answer.
func TestFormsAreTheAPIServers(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	oracle, gateway := s.oracle(t), g.asker(s.admin(t))
	s.kubectlObjects(t, "forms")
	const as = "application/json;g=meta.k8s.io;v=v1;as="
	for _, c := range []struct{ path, accept string }{
		{"/api/v1/namespaces/forms/pods", as + "PartialObjectMetadataList"},
		{"/api/v1/namespaces/forms/pods", "application/vnd.kubernetes.protobuf;g=meta.k8s.io;v=v1;as=None," + as + "PartialObjectMetadataList,application/json"},
		{"/api/v1/namespaces/forms/pods/web", as + "PartialObjectMetadata"},
		{"/apis/batch/v1/namespaces/forms/jobs/train", as + "PartialObjectMetadata"},
		{"/api/v1/namespaces/forms/pods", as + "Table"},
		{"/api/v1/namespaces/forms/pods?includeObject=None", as + "Table"},
		{"/api/v1/namespaces/forms/pods?includeObject=Metadata&limit=2", as + "Table"},
		{"/api/v1/namespaces/forms/pods/web", as + "Table"},
		{"/apis/batch/v1/namespaces/forms/jobs", as + "Table"},
		{"/api/v1/namespaces/forms/configmaps", "application/json;g=meta.k8s.io;v=v1beta1;as=Table"},
		{"/api/v1/namespaces/forms/pods", "*/*"},
		{"/api/v1/namespaces/forms/pods/web", ""},
	} {
		eventually(t, c.path+" as "+c.accept, func() error { // ages change
			want, got := oracle(t, c.path, c.accept), gateway(t, c.path, c.accept)
			if got.code != want.code || got.header.Get("Content-Type") != want.header.Get("Content-Type") {
				return fmt.Errorf("%d %q, not %d %q", got.code, got.header.Get("Content-Type"), want.code, want.header.Get("Content-Type"))
			}
			a, b := comparableText(t, got.body), comparableText(t, want.body)
			if !reflect.DeepEqual(a, b) {
				return fmt.Errorf("\n%s\nis not\n%s", a, b)
			}
			return nil
		})
	}
}

// comparableText returns an answer without managed fields, which only the API server shows, and
// without the list's version and token, which depend on the moment.
func comparableText(t *testing.T, body string) string {
	t.Helper()
	var answer map[string]any
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if metadata, ok := answer["metadata"].(map[string]any); ok && strings.HasSuffix(fmt.Sprint(answer["kind"]), "List") || answer["kind"] == "Table" {
		delete(metadata, "resourceVersion")
		delete(metadata, "continue")
	}
	var clean func(any)
	clean = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, element := range value {
				clean(element)
			}
		case map[string]any:
			delete(value, "managedFields")
			for _, member := range value {
				clean(member)
			}
		}
	}
	clean(answer)
	text, err := json.MarshalIndent(answer, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
