package app

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/kubecast/kubecast/"

// TestArrowsBetweenPackagesPointDown: the tables of docs/architecture.md name all packages of the
// gateway, from the top to the bottom, and what each may import of the others: only what stands
// below it, and nothing that it does not need. Tests may import whatever is below, and the packages
// that are for tests, which nothing else may.
func TestArrowsBetweenPackagesPointDown(t *testing.T) {
	name := regexp.MustCompile("`([a-z/]+)`")
	var order []string
	allowed := map[string][]string{} // nil for those that are for tests
	for row := range strings.Lines(section(t, "docs/architecture.md", "Packages")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		match := name.FindStringSubmatch(cells[0])
		if !strings.HasPrefix(row, "|") || match == nil {
			continue
		}
		order = append(order, match[1])
		if allowed[match[1]] = nil; len(cells) > 2 {
			allowed[match[1]] = []string{}
			for _, other := range name.FindAllStringSubmatch(cells[2], -1) {
				allowed[match[1]] = append(allowed[match[1]], other[1])
			}
		}
	}
	height := func(of string) int { return slices.Index(order, of) }
	isForTests := func(of string) bool { return allowed[of] == nil }

	imports, fromTests := importsOf(t)
	for _, of := range slices.Sorted(maps.Keys(imports)) {
		if height(of) < 0 {
			t.Errorf("%s is in no table of docs/architecture.md", of)
			continue
		}
		if isForTests(of) {
			continue
		}
		for other := range imports[of] {
			switch {
			case !slices.Contains(allowed[of], other):
				t.Errorf("%s imports %s, which docs/architecture.md does not let it", of, other)
			case isForTests(other):
				t.Errorf("%s imports %s, which is for tests", of, other)
			case height(other) < height(of):
				t.Errorf("%s imports %s, which stands above it", of, other)
			}
		}
		for _, other := range allowed[of] {
			if !imports[of][other] {
				t.Errorf("%s does not import %s, which docs/architecture.md lets it", of, other)
			}
		}
		for other := range fromTests[of] {
			if !isForTests(other) && height(other) < height(of) {
				t.Errorf("a test of %s imports %s, which stands above it", of, other)
			}
		}
	}
	for _, of := range order {
		if imports[of] == nil {
			t.Errorf("docs/architecture.md has a package %s, and the tree has not", of)
		}
	}
	if len(order) < 15 {
		t.Errorf("only %d packages were found in docs/architecture.md", len(order))
	}
}

// importsOf is what the packages of the gateway import of each other, and what their tests do beside. They are named as
// docs/architecture.md names them: without internal/.
func importsOf(t *testing.T) (code, tests map[string]map[string]bool) {
	t.Helper()
	code, tests = map[string]map[string]bool{}, map[string]map[string]bool{}
	short := func(path string) string { return strings.TrimPrefix(path, "internal/") }
	for name, text := range files(t, ".go") {
		top, _, _ := strings.Cut(name, "/")
		if !slices.Contains([]string{"cmd", "internal", "web"}, top) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		of, into := short(path.Dir(name)), code
		if strings.HasSuffix(name, "_test.go") {
			into = tests
		}
		if into[of] == nil {
			into[of] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if own, ok := strings.CutPrefix(imported, modulePath); ok && short(own) != of {
				into[of][short(own)] = true
			}
		}
	}
	return code, tests
}

// TestErrorsHaveOneKeyInTheLog, so that whoever looks for what went wrong looks in one place.
func TestErrorsHaveOneKeyInTheLog(t *testing.T) {
	levels := []string{"Debug", "Info", "Warn", "Error", "Log"}
	lines := 0
	for name, text := range files(t, ".go") {
		if !strings.HasPrefix(name, "internal/") && !strings.HasPrefix(name, "cmd/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if method, ok := call.Fun.(*ast.SelectorExpr); !ok || !slices.Contains(levels, method.Sel.Name) {
				return true
			}
			lines++
			for _, arg := range call.Args[min(1, len(call.Args)):] {
				if key, ok := arg.(*ast.BasicLit); ok && slices.Contains([]string{`"cause"`, `"err"`}, key.Value) {
					t.Errorf("%s: the key of an error is %s", set.Position(key.Pos()), key.Value)
				}
			}
			return true
		})
	}
	if lines < 50 {
		t.Errorf("only %d lines were found", lines)
	}
}
