package app

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/kubecast/kubecast/"

// TestArrowsBetweenPackagesPointDown: the tables of docs/architecture.md name all packages of the gateway, from the top to
// the bottom, and what each may import of the others: only what stands below it, and nothing that it does not need. Tests
// may import whatever is below, and the packages that are for tests, which nothing else may.
func TestArrowsBetweenPackagesPointDown(t *testing.T) {
	_, section, _ := strings.Cut(document(t, "docs/architecture.md"), "\n## Packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	name := regexp.MustCompile("`([a-z/]+)`")
	var order []string
	allowed := map[string][]string{} // nil for those that are for tests
	for row := range strings.Lines(section) {
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
	for _, directory := range []string{"cmd", "internal", "web"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "testdata"):
				return fs.SkipDir
			case !strings.HasSuffix(path, ".go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			from, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			of := short(filepath.ToSlash(from))
			into := code
			if strings.HasSuffix(path, "_test.go") {
				into = tests
			}
			if into[of] == nil {
				into[of] = map[string]bool{}
			}
			for _, spec := range file.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				if own, ok := strings.CutPrefix(imported, modulePath); ok && short(own) != of {
					into[of][short(own)] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return code, tests
}
