package http

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"go.yaml.in/yaml/v3"

	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/historyapi"
)

type openAPIDocument struct {
	Paths      map[string]openAPIPath
	Components struct {
		Parameters map[string]openAPIParameter
	}
}

type openAPIPath struct {
	Servers    []struct{ URL string }
	Parameters []openAPIParameter
	Get, Post  openAPIOperation
	Put        openAPIOperation
}

type openAPIOperation struct {
	Summary    string
	Parameters []openAPIParameter
	Responses  map[string]any
}

type openAPIParameter struct {
	Ref  string `yaml:"$ref"`
	Name string
	In   string
}

func readOpenAPI(t *testing.T) (d openAPIDocument) {
	t.Helper()
	if err := yaml.Unmarshal(openAPI, &d); err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := yaml.Unmarshal(openAPI, &whole); err != nil {
		t.Fatal(err)
	}
	checkReferences(t, whole, whole)
	return d
}

func checkReferences(t *testing.T, whole map[string]any, value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			checkReferences(t, whole, element)
		}
	case map[string]any:
		if ref, ok := value["$ref"].(string); ok {
			var at any = whole
			for key := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
				members, _ := at.(map[string]any)
				at = members[key]
			}
			if at == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
		for _, member := range value {
			checkReferences(t, whole, member)
		}
	}
}

func (d openAPIDocument) parameters(t *testing.T, in string, parameters ...[]openAPIParameter) map[string]bool {
	names := map[string]bool{}
	for _, p := range slices.Concat(parameters...) {
		if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
			p = d.Components.Parameters[name]
		}
		if p.In == in {
			names[p.Name] = true
		}
	}
	return names
}

// Every route is described, and every described route exists.
func TestEveryRouteIsDescribed(t *testing.T) {
	g := newGateway(t)
	d := readOpenAPI(t)
	router := chi.NewRouter()
	g.server.route(router)
	described := map[string]bool{} // methods and patterns
	variables := regexp.MustCompile(`\{[^}]*\}`)
	for path, item := range d.Paths {
		method, operation := http.MethodGet, item.Get
		if item.Post.Summary != "" {
			method, operation = http.MethodPost, item.Post
		}
		if operation.Summary == "" || operation.Responses["200"] == nil && operation.Responses["201"] == nil && operation.Responses["204"] == nil && operation.Responses["303"] == nil {
			t.Errorf("%s: is not described", path)
		}
		var wanted []string
		for _, v := range variables.FindAllString(path, -1) {
			wanted = append(wanted, v[1:len(v)-1])
		}
		if got := slices.Sorted(maps.Keys(d.parameters(t, "path", item.Parameters))); !slices.Equal(got, slices.Sorted(slices.Values(wanted))) {
			t.Errorf("%s: its parameters are %v", path, got)
		}
		for _, base := range []string{"", "/clusters/east"} {
			if base != "" && len(item.Servers) < 2 {
				continue
			}
			address := base + variables.ReplaceAllString(path, "x")
			context := chi.NewRouteContext()
			pattern := router.Find(context, method, address)
			if pattern == "" || pattern == "/*" && path != "/{file}" {
				t.Errorf("%s: is not routed, but to %q", address, pattern)
			}
			described[method+" "+pattern] = true
			if item.Get.Summary != "" {
				described["GET "+pattern] = true
			}
			if item.Put.Summary != "" {
				described["PUT "+pattern] = true
			}
		}
	}
	err := chi.Walk(router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if !described[method+" "+pattern] && !described[method+" "+strings.TrimSuffix(pattern, "/")] {
			t.Errorf("%s %s: is not described in openapi.yaml", method, pattern)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if a := g.get("/openapi.yaml", "Authorization: "); a.code != 200 || a.body != string(openAPI) || a.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("%d %v", a.code, a.header)
	}
	if a := g.get("/openapi.yaml", "If-None-Match: "+openAPITag); a.code != 304 {
		t.Errorf("%d", a.code)
	}
}

// readParameters returns the names for which functions of a file ask a query: query.Get("name"), query.Has,
// get("name").
func readParameters(t *testing.T, file string, functions ...string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	found := 0
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || !slices.Contains(functions, function.Name.Name) {
			continue
		}
		found++
		ast.Inspect(function, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			callee := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				callee = f.Name
			case *ast.SelectorExpr:
				callee = f.Sel.Name
			}
			literal, ok := call.Args[0].(*ast.BasicLit)
			if !ok || callee != "Get" && callee != "Has" && callee != "get" {
				return true
			}
			if name, err := strconv.Unquote(literal.Value); err == nil {
				names[name] = true
			}
			return true
		})
	}
	if found != len(functions) {
		t.Fatalf("%s has not all of %v", file, functions)
	}
	return slices.Sorted(maps.Keys(names))
}

// Every parameter is described, and every described parameter is read.
func TestEveryParameterIsDescribed(t *testing.T) {
	d := readOpenAPI(t)
	ofLists := readParameters(t, "rest/list_request.go", "parseList", "limitOf", "askedVersionOf")
	ofLists = append(ofLists, readParameters(t, "reply/accept.go", "WantsWatch")...)
	ofLists = append(ofLists, readParameters(t, "objectstream/kubernetes_watch.go", "parseKubernetesWatch")...)
	ofViews := readParameters(t, "render/view.go", "ParseView")
	ofLists = append(ofLists, ofViews...)
	ofObjects := slices.Concat(readParameters(t, "rest/list_request.go", "versionOf"), ofViews, []string{"watch"})
	ofStreams := eventstream.Parameters()
	ofLists = append(ofLists, eventstream.LiveQueryParameters()...)
	if len(ofLists) < 10 || len(ofObjects) < 3 {
		t.Fatalf("this test does not find what the code reads: %v, %v", ofLists, ofObjects)
	}
	for path, want := range map[string][]string{
		"/api/{version}/{resource}":                                 slices.Concat(ofLists, ofStreams),
		"/apis/{group}/{version}/namespaces/{namespace}/{resource}": slices.Concat(ofLists, ofStreams),
		"/api/{version}/{resource}/{name}":                          ofObjects,
		"/history/apis/{group}/{version}/{resource}":                historyapi.Parameters(),
		"/stream": append([]string{"watches"}, ofStreams...),
	} {
		slices.Sort(want)
		want = slices.Compact(want)
		got := slices.Sorted(maps.Keys(d.parameters(t, "query", d.Paths[path].Get.Parameters)))
		if !slices.Equal(got, want) {
			t.Errorf("%s is described with\n%v, but the code reads\n%v", path, got, want)
		}
	}
}
