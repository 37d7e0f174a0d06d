package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
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
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, path, accept string) answer {
		t.Helper()
		return ask(t, client, config.Host+path, http.Header{"Accept": {accept}})
	}
}

func (g *gateway) asker(token string) asker {
	return func(t *testing.T, path, accept string) answer {
		t.Helper()
		header := bearer(token)
		header.Set("Accept", accept)
		return ask(t, http.DefaultClient, g.url+path, header)
	}
}

func ask(t *testing.T, client *http.Client, url string, header http.Header) answer {
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
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

const asJSON = "application/json"

// Requests are refused as the API server refuses them: with the same status, reason and causes. Where the contract
// differs, the case says how.
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
		{path: pods + "?limit=-1", instead: "400 BadRequest"}, // at the API server it means no limit
		{path: pods + "?timeoutSeconds=x"},
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
		{path: "/api/v1/namespaces/default/nodes"},
		{path: "/api/v1/namespaces/default/pods/absent"},
		{path: "/apis/batch/v1/namespaces/default/jobs/absent"},
		{path: "/api/v1/nodes/absent"},
		{path: "/api/v1/namespaces/absent"},
		{path: "/api/v1/namespaces/default?resourceVersion=4000000000"},
		{path: "/api/v1/namespaces/default?resourceVersion=x", instead: "400 BadRequest"}, // at the API server it is 500
		{path: "/api/v1/namespaces/default/pods/absent/nothing"},
		{path: "/api/v1/bindings", instead: "405 MethodNotAllowed"}, // it exists, but cannot be read
		{path: "/apis/nothing.example.org/v1"},                      // the API server answers without a Status
		{path: "/apis/nothing.example.org/v1/nothings"},
		{path: pods, accept: "application/xml"},
		{path: pods, accept: "application/json;as=Chair;g=meta.k8s.io;v=v1"},
		{path: pods, accept: "application/json;as=Table;g=meta.k8s.io;v=v9"},
		{path: pods + "?includeObject=Some", accept: "application/json;as=Table;g=meta.k8s.io;v=v1"},
		{path: "/api/v1/componentstatuses", instead: "405 MethodNotAllowed"}, // it cannot be watched, and so not cached
		{path: "/openapi/v3/apis/nothing.example.org/v1"},
	} {
		t.Run(c.path+" "+c.accept, func(t *testing.T) {
			if c.accept == "" {
				c.accept = asJSON
			}
			want, wantStatus := oracle(t, c.path, c.accept).refusal()
			if c.instead != "" {
				want = c.instead
			}
			got, gotStatus := g.asker(token)(t, c.path, c.accept).refusal()
			if got != want {
				t.Errorf("is answered\n%s, not\n%s", got, want)
			}
			if strings.HasPrefix(want, "404") && strings.Contains(wantStatus, "absent") && !strings.Contains(wantStatus, "nothing") && gotStatus != wantStatus {
				t.Errorf("says\n%s, not\n%s", gotStatus, wantStatus)
			}
		})
	}
}

// refusal returns the part of an answer by which clients decide, and the whole Status. If there is no Status, the
// reason is that of the code.
func (a answer) refusal() (brief, whole string) {
	var status struct {
		Kind, Reason, Message string
		Details               struct {
			Name, Group, Kind string
			Causes            []struct{ Reason, Field string }
			RetryAfterSeconds int
		}
	}
	if json.Unmarshal([]byte(a.body), &status) != nil && a.code == http.StatusNotFound {
		return "404 NotFound", a.body
	}
	if status.Kind != "Status" {
		return fmt.Sprintf("%d ", a.code), a.body
	}
	brief = fmt.Sprintf("%d %s", a.code, status.Reason)
	for _, cause := range status.Details.Causes {
		brief += " " + cause.Reason + " " + cause.Field
	}
	if status.Details.RetryAfterSeconds > 0 {
		brief += fmt.Sprintf(" after %d s", status.Details.RetryAfterSeconds)
	}
	return brief, fmt.Sprintf("%s %+v", status.Message, status.Details)
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

// comparableText returns an answer without the intended differences of the two servers: managed fields, and kind and
// apiVersion of a list's items, which only the gateway names. It also leaves out the list's version and token, which
// depend on the moment.
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
	if items, ok := answer["items"].([]any); ok {
		for _, item := range items {
			delete(item.(map[string]any), "kind")
			delete(item.(map[string]any), "apiVersion")
		}
	}
	text, err := json.MarshalIndent(answer, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
