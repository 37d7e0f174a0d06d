package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// alikeManifest defines a kind whose members come before and behind those that name the kind, and
// whose lists have a name of their own.
const alikeManifest = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sheep.alike.e2e.kubecast.io}
spec:
  group: alike.e2e.kubecast.io
  scope: Namespaced
  names: {plural: sheep, singular: onesheep, kind: Sheep, listKind: Flock}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// What the two servers answer is the same, byte for byte, but for what docs/clients.md names: see
// shown. Lists are asked of the API server at the version that the gateway's has, so that it does
// not matter what other tests do meanwhile.
func TestAnswersAreTheAPIServersByteForByte(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	oracle, gateway := s.oracle(t), g.asker(s.admin(t))
	s.kubectlObjects(t, "bytes")
	s.makeAlike(t, "bytes")

	kinds := append(s.builtInKinds(t), listedKind{path: "/apis/alike.e2e.kubecast.io/v1/sheep"})
	const as = "application/json;g=meta.k8s.io;v=v1;as="
	for _, kind := range kinds {
		t.Run(kind.path, func(t *testing.T) {
			for _, c := range []struct{ query, accept string }{
				{"", asJSON},
				{"limit=1", asJSON},
				{"limit=2&labelSelector=kubectl", asJSON},
				{"labelSelector=kubectl%3Dnobody", asJSON},
				{"limit=1&continue=", asJSON},
				{"limit=500", as + "PartialObjectMetadataList"},
				{"limit=2", as + "Table"},
				{"limit=2&includeObject=None", as + "Table"},
				{"limit=2&includeObject=Object", as + "Table"},
				{"labelSelector=kubectl%3Dnobody", as + "Table"},
			} {
				if strings.HasSuffix(kind.path, "/flowschemas") && strings.HasSuffix(c.accept, "Table") {
					continue // which come in another order there
				}
				agree(t, kind.path+"?"+c.query+" "+c.accept, func() error { // ages change
					got := gateway(t, kind.path+"?"+c.query, c.accept)
					version := gjson.Get(got.body, "metadata.resourceVersion").Str
					want := oracle(t, kind.path+"?resourceVersionMatch=Exact&resourceVersion="+version+"&"+strings.ReplaceAll(c.query, "&continue=", ""), c.accept)
					return alike(got, want, kind.secret)
				})
			}
			first := gjson.Get(gateway(t, kind.path+"?limit=1", asJSON).body, "items.0.metadata")
			if !first.Exists() {
				return
			}
			at := strings.LastIndexByte(kind.path, '/')
			object := kind.path
			if namespace := first.Get("namespace").Str; namespace != "" {
				object = kind.path[:at] + "/namespaces/" + namespace + kind.path[at:]
			}
			object += "/" + url.PathEscape(first.Get("name").Str)
			for _, accept := range []string{asJSON, as + "PartialObjectMetadata", as + "Table"} {
				agree(t, object+" "+accept, func() error {
					return alike(gateway(t, object, accept), oracle(t, object, accept), kind.secret)
				})
			}
		})
	}
}

// agree compares two answers until they are alike. What depends on the moment, such as ages, is at some time.
func agree(t *testing.T, what string, compare func() error) {
	t.Helper()
	var err error
	for range 20 {
		if err = compare(); err == nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Errorf("%s: %v", what, err)
}

type listedKind struct {
	path   string
	secret bool
}

// builtInKinds are those that can be listed and watched and that nobody has defined, with the paths of their lists.
func (s *stage) builtInKinds(t *testing.T) (kinds []listedKind) {
	t.Helper()
	defined := definedGroups(t, s)
	_, all, err := s.kube.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range all {
		of, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if defined.Has(of.Group) || !slices.Contains(resource.Verbs, "watch") || !slices.Contains(resource.Verbs, "list") {
				continue
			}
			prefix := "/apis/"
			if of.Group == "" {
				prefix = "/api/"
			}
			kinds = append(kinds, listedKind{prefix + list.GroupVersion + "/" + resource.Name, of.Group == "" && resource.Name == "secrets"})
		}
	}
	return kinds
}

// makeAlike defines a kind, and makes objects of it.
func (s *stage) makeAlike(t *testing.T, namespace string) {
	t.Helper()
	s.kubectl(t, alikeManifest, "apply", "-f", "-")
	t.Cleanup(func() { s.kubectl(t, "", "delete", "crd", "sheep.alike.e2e.kubecast.io") })
	s.kubectl(t, "", "wait", "--for=condition=Established", "crd", "sheep.alike.e2e.kubecast.io")
	sheep := s.dynamic.Resource(schema.GroupVersionResource{Group: "alike.e2e.kubecast.io", Version: "v1", Resource: "sheep"}).Namespace(namespace)
	for _, name := range []string{"dolly", "shaun"} {
		eventually(t, "the kind is served", func() error {
			_, err := sheep.Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "alike.e2e.kubecast.io/v1", "kind": "Sheep", "age": int64(3), "data": "<&>", "wool": []any{"white", nil, 1.5},
				"metadata": map[string]any{"name": name, "labels": map[string]any{"kubectl": namespace}},
			}}, metav1.CreateOptions{})
			return err
		})
	}
}

// alike says in what an answer of the gateway differs from that of the API server.
func alike(got, want answer, secret bool) error {
	if got.code != want.code || got.header.Get("Content-Type") != want.header.Get("Content-Type") {
		return fmt.Errorf("%d %q %s\nnot %d %q %s", got.code, got.header.Get("Content-Type"), got.body, want.code, want.header.Get("Content-Type"), want.body)
	}
	return sameText(withoutItsOwn(got.body), withoutItsOwn(shown(want.body, secret)))
}

func sameText(got, want string) error {
	if got == want {
		return nil
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	part := func(text string) string { return text[max(0, at-80):min(len(text), at+200)] }
	return fmt.Errorf("from byte %d on:\n…%s…\nnot\n…%s…", at, part(got), part(want))
}

var (
	someToken   = regexp.MustCompile(`"continue":"[^"]+"`)
	description = regexp.MustCompile(`"description":"(?:[^"\\]|\\.)*","priority"`)
)

// withoutItsOwn is an answer without its continue token, of which each server makes its own, and
// without the descriptions of a table's columns: see describeAlike.
func withoutItsOwn(body string) string {
	return description.ReplaceAllLiteralString(someToken.ReplaceAllLiteralString(body, `"continue":"(a token)"`), `"priority"`)
}

// shown is an answer of the API server without what the gateway shows nobody, each line by itself.
func shown(body string, secret bool) string {
	var b strings.Builder
	for line := range strings.Lines(body) {
		text, end := strings.TrimSuffix(line, "\n"), line[len(strings.TrimSuffix(line, "\n")):]
		if gjson.Valid(text) {
			text = string(appendShown(nil, gjson.Parse(text), "", secret))
		}
		b.WriteString(text + end)
	}
	return b.String()
}

func appendShown(dst []byte, value gjson.Result, of string, secret bool) []byte {
	if value.Type != gjson.JSON {
		if secret && (of == "data" || of == "annotations") && value.Type == gjson.String {
			return append(dst, `""`...)
		}
		return append(dst, value.Raw...)
	}
	return appendMembers(dst, value, func(dst []byte, key, member gjson.Result) []byte {
		inner := of
		if value.IsObject() {
			if key.Str == "managedFields" && of == "metadata" || key.Str == corev1.LastAppliedConfigAnnotation && of == "annotations" ||
				key.Str == "annotations" && onlyLastApplied(member) {
				return nil
			}
			if inner = key.Str; of == "data" {
				inner = of
			}
		}
		return appendShown(dst, member, inner, secret)
	})
}

// appendMembers appends an object or a list, each member as it is written, in its order. One for which nothing is
// returned is left out.
func appendMembers(dst []byte, value gjson.Result, write func(dst []byte, key, member gjson.Result) []byte) []byte {
	open, end := byte('{'), byte('}')
	if value.IsArray() {
		open, end = '[', ']'
	}
	dst = append(dst, open)
	first := true
	value.ForEach(func(key, member gjson.Result) bool {
		begun := dst
		if !first {
			begun = append(begun, ',')
		}
		if value.IsObject() {
			begun = append(append(begun, key.Raw...), ':')
		}
		if written := write(begun, key, member); written != nil {
			dst, first = written, false
		}
		return true
	})
	return append(dst, end)
}

func onlyLastApplied(annotations gjson.Result) bool {
	all := annotations.Map()
	return len(all) == 1 && all[corev1.LastAppliedConfigAnnotation].Exists()
}

// Watches in Kubernetes' own form are the API server's, byte for byte, in all forms and from each beginning.
func TestWatchesAreTheAPIServersByteForByte(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	oracle, gateway := s.oracle(t), g.asker(s.admin(t))
	s.namespaces(t, "frames")
	maps := s.kube.CoreV1().ConfigMaps("frames")
	const path = "/api/v1/namespaces/frames/configmaps"
	gateway(t, path, asJSON) // the kind is cached from here on
	begin := gjson.Get(oracle(t, path, asJSON).body, "metadata.resourceVersion").Str
	ctx := context.Background()
	for _, name := range []string{"a", "b"} {
		if _, err := maps.Create(ctx, configMap("frames", name, map[string]string{"app": name}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"n":"<2>"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Patch(ctx, "b", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"a"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	const as = "application/json;g=meta.k8s.io;v=v1;as="
	for _, query := range []string{
		"resourceVersion=" + begin,
		"resourceVersion=" + begin + "&labelSelector=app%3Da",
		"resourceVersion=" + begin + "&fieldSelector=metadata.name%3Db",
		"resourceVersion=" + begin + "&includeObject=None",
		"resourceVersion=" + begin + "&includeObject=Object",
		"resourceVersion=0",
		"",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&includeObject=None",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&includeObject=Object&labelSelector=app%3Dnothing",
	} {
		for _, accept := range []string{asJSON, as + "PartialObjectMetadata", as + "Table"} {
			ask := path + "?watch=true&timeoutSeconds=1&" + query
			agree(t, ask+" "+accept, func() error { // ages change
				got, want := gateway(t, ask, accept), oracle(t, ask, accept)
				if got.code != want.code || got.header.Get("Content-Type") != want.header.Get("Content-Type") {
					return fmt.Errorf("%d %q, not %d %q", got.code, got.header.Get("Content-Type"), want.code, want.header.Get("Content-Type"))
				}
				return sameText(momentless(got.body), momentless(shown(want.body, false)))
			})
		}
	}
}

// Bookmarks are written and printed as the API server does it, of each kind. Only the object itself
// has no more than its kind and metadata, where the API server also writes what its type has
// always.
func TestBookmarksAreTheAPIServersByteForByte(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	client, url := s.oracleClient(t)
	header := bearer(s.admin(t))
	manifest, group := crd("bookmarks")
	s.kubectl(t, manifest, "apply", "-f", "-")
	s.kubectl(t, "", "wait", "--for=condition=Established", "crd", "trainings."+group)
	const as = "application/json;g=meta.k8s.io;v=v1;as="
	for _, kind := range append(s.builtInKinds(t), listedKind{path: "/apis/" + group + "/v1alpha1/trainings"}) {
		for _, c := range []struct {
			query, accept string
			object        string // where the object itself is, if it is there
		}{
			{"", asJSON, "object"},
			{"", as + "PartialObjectMetadata", ""},
			{"&includeObject=None", as + "Table", ""},
			{"&includeObject=Metadata", as + "Table", ""},
			{"&includeObject=Object", as + "Table", "object.rows.0.object"},
		} {
			path := kind.path + "?watch=true&timeoutSeconds=10&labelSelector=kubectl%3Dnobody&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true" + c.query
			header.Set("Accept", c.accept)
			agree(t, path+" "+c.accept, func() error { // the kind may be new to one of them
				got, want := firstLine(t, http.DefaultClient, g.url+path, header), firstLine(t, client, url+path, http.Header{"Accept": {c.accept}})
				if !strings.Contains(want, metav1.InitialEventsAnnotationKey) {
					return fmt.Errorf("the API server answers %s", want)
				}
				return sameText(withShortObject(t, momentless(got), c.object), withShortObject(t, momentless(want), c.object))
			})
		}
	}
}

// withShortObject is a line with nothing of the object at a path but its kind and whether it ends
// the state; as it is without a path.
func withShortObject(t *testing.T, line, path string) string {
	t.Helper()
	object := gjson.Get(line, path)
	if path == "" || !object.IsObject() {
		return line
	}
	ends := object.Get("metadata.annotations").Map()[metav1.InitialEventsAnnotationKey].Str
	short := strings.Join([]string{object.Get("apiVersion").Str, object.Get("kind").Str, ends}, " ")
	return line[:object.Index] + short + line[object.Index+len(object.Raw):]
}

// firstLine is the beginning of an answer that goes on.
func firstLine(t *testing.T, client *http.Client, url string, header http.Header) string {
	t.Helper()
	response := answerOf(t, client, url, header)
	defer response.Body.Close()
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// momentless is the body of a watch without what depends on the moment: the versions of bookmarks,
// and ages in tables, which the API server keeps with the rest of an event.
func momentless(body string) string {
	return ageOfMap.ReplaceAllString(withoutBookmarks(withoutItsOwn(body)), `$1"(an age)"]`)
}

var ageOfMap = regexp.MustCompile(`("cells":\["[^"]*",\d+,)"[^"]*"\]`)

var bookmarkVersion = regexp.MustCompile(`"resourceVersion":"\d+"`)

// withoutBookmarks is the body of a watch with no other bookmarks than that behind the state, and
// without that one's version: when there are some depends on the moment.
func withoutBookmarks(body string) string {
	var b strings.Builder
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, `{"type":"BOOKMARK"`) {
			if !strings.Contains(line, metav1.InitialEventsAnnotationKey) {
				continue
			}
			line = bookmarkVersion.ReplaceAllLiteralString(line, `"resourceVersion":"(a version)"`)
		}
		b.WriteString(line)
	}
	return b.String()
}

// Discovery is the API server's, byte for byte, less what the gateway does not serve.
func TestDiscoveryIsTheAPIServersByteForByte(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	oracle, gateway := s.oracle(t), g.asker(s.admin(t))
	paths := []string{"/api", "/apis", "/version", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v2"}
	groups, err := s.kube.Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	defined := definedGroups(t, s)
	for _, group := range groups.Groups {
		if defined.Has(group.Name) {
			continue
		}
		if group.Name != "" {
			paths = append(paths, "/apis/"+group.Name)
		}
		for _, version := range group.Versions {
			if group.Name == "" {
				paths = append(paths, "/api/"+version.Version)
			} else {
				paths = append(paths, "/apis/"+version.GroupVersion)
			}
		}
	}
	for _, path := range paths {
		accepts := []string{asJSON}
		if path == "/api" || path == "/apis" {
			accepts = append(accepts, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		}
		for _, accept := range accepts {
			agree(t, path+" "+accept, func() error { // other tests define kinds
				got, want := gateway(t, path, accept), oracle(t, path, accept)
				media := want.header.Get("Content-Type")
				if path == "/openapi/v3" {
					media = asJSON // at the API server it is text
				}
				if want.code != got.code || got.header.Get("Content-Type") != media {
					return fmt.Errorf("%d %q, not %d %q", got.code, got.header.Get("Content-Type"), want.code, media)
				}
				return sameText(got.body, readOnly(want.body))
			})
		}
	}
}

// readOnly is a document of discovery without what writes.
func readOnly(body string) string {
	if kind := gjson.Get(body, "kind").Str; kind != "APIResourceList" && kind != "APIGroupDiscoveryList" {
		return body
	}
	return string(appendReadOnly(nil, gjson.Parse(body))) + body[len(strings.TrimSuffix(body, "\n")):]
}

func appendReadOnly(dst []byte, value gjson.Result) []byte {
	if value.Type != gjson.JSON {
		return append(dst, value.Raw...)
	}
	return appendMembers(dst, value, func(dst []byte, key, member gjson.Result) []byte {
		if key.Str == "subresources" && value.Get("resource").Str != "pods" {
			return nil
		}
		verbs := member.Get("verbs")
		name := member.Get("name").Str + member.Get("resource").Str + member.Get("subresource").Str
		review := strings.HasPrefix(name, "selfsubject")
		switch {
		case review:
		case name == "pods/log" || name == "log":
			member = gjson.Parse(strings.Replace(member.Raw, verbs.Raw, `["get"]`, 1))
		case member.Get("subresource").Exists(), strings.Contains(member.Get("name").Str, "/"):
			return nil
		case verbs.Exists():
			var left []string
			for _, verb := range verbs.Array() {
				if slices.Contains([]string{"get", "list", "watch"}, verb.Str) {
					left = append(left, verb.Str)
				}
			}
			if !slices.Contains(left, "list") || !slices.Contains(left, "watch") {
				return nil
			}
			text, err := json.Marshal(left)
			if err != nil {
				return nil
			}
			member = gjson.Parse(strings.Replace(member.Raw, verbs.Raw, string(text), 1))
		}
		return appendReadOnly(dst, member)
	})
}
