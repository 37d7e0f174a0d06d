package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

var (
	testName     = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w+)\(`)
	metricName   = regexp.MustCompile(`\bkubecast_[a-z_]+[a-z]`)
)

// sources are the contents of files, by directory.
func sources(t *testing.T, suffix string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "node_modules" || name == "bin" || strings.HasPrefix(name, ".") && name != "..") && path != root {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, suffix) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		directory, err := filepath.Rel(root, filepath.Dir(path))
		found[filepath.ToSlash(directory)] += string(text) + "\n"
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTestsThatDocumentsNameExist: a promise of docs/security.md names at least one test, each test that it names is in the package
// where it says, and those that other documents name are somewhere.
func TestTestsThatDocumentsNameExist(t *testing.T) {
	tests := map[string][]string{} // by directory
	var all []string
	for directory, text := range sources(t, "_test.go") {
		for _, match := range testFunction.FindAllStringSubmatch(text, -1) {
			tests[directory] = append(tests[directory], match[1])
			all = append(all, match[1])
		}
	}
	browsers := strings.Join(slices.Collect(func(yield func(string) bool) {
		for directory, text := range sources(t, ".ts") {
			if strings.HasPrefix(directory, "web/e2e") && !yield(text) {
				return
			}
		}
	}), "\n")

	_, promises, found := strings.Cut(document(t, "docs/security.md"), "## What is promised\n")
	promises, _, ended := strings.Cut(promises, "\n## ")
	if !found || !ended {
		t.Fatal("docs/security.md has no promises")
	}
	place := regexp.MustCompile("`([a-z0-9/]+)`: ([^`]*)")
	title := regexp.MustCompile(`“([^”]+)”`)
	rows := 0
	for row := range strings.Lines(promises) {
		cells := strings.Split(strings.TrimSpace(row), " | ")
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| ---") || strings.HasPrefix(row, "| promise") {
			continue
		}
		rows++
		shownBy := cells[len(cells)-1]
		named := 0
		for _, match := range place.FindAllStringSubmatch(shownBy, -1) {
			directory := match[1]
			for _, name := range testName.FindAllString(match[2], -1) {
				named++
				if !slices.Contains(tests[directory], name) {
					t.Errorf("%s has no %s, which shall show: %s", directory, name, cells[0])
				}
			}
			for _, name := range title.FindAllStringSubmatch(match[2], -1) {
				named++
				if directory != "web/e2e" || !strings.Contains(browsers, name[1]) {
					t.Errorf("%s has no “%s”, which shall show: %s", directory, name[1], cells[0])
				}
			}
		}
		if named == 0 {
			t.Errorf("nothing shows: %s", cells[0])
		}
	}
	if rows < 50 {
		t.Errorf("only %d promises were found", rows)
	}

	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(documents, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range testName.FindAllString(string(text), -1) {
			if !slices.Contains(all, name) {
				t.Errorf("%s names %s, which does not exist", filepath.Base(path), name)
			}
		}
	}
}

// TestMetricsThatAlertsAndDocumentsNameExist: an alert on a metric that is called otherwise never rings.
func TestMetricsThatAlertsAndDocumentsNameExist(t *testing.T) {
	code := strings.Builder{}
	for directory, text := range sources(t, ".go") {
		if strings.HasPrefix(directory, "internal") {
			code.WriteString(text)
		}
	}
	for _, name := range []string{"deploy/prometheus.yaml", "docs/operations.md", "docs/security.md"} {
		for _, metric := range metricName.FindAllString(document(t, name), -1) {
			// Those of each kind of a cluster are named without what all begin with.
			if !strings.Contains(code.String(), `"`+metric+`"`) && !strings.Contains(code.String(), `"`+strings.TrimPrefix(metric, "kubecast_")+`"`) {
				t.Errorf("%s: there is no metric %s", name, metric)
			}
		}
	}
}
