package app

import (
	"io/fs"
	"os"
	"path"
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

// files are the contents of the repository's text files of some suffixes, by path.
func files(t *testing.T, suffixes ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "node_modules" || name == "bin" || name == "dist" || strings.HasPrefix(name, ".") && name != "..") && path != root {
			return fs.SkipDir
		}
		if entry.IsDir() || !slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(path, suffix) }) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		found[filepath.ToSlash(relative)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// sources are the contents of files, by directory.
func sources(t *testing.T, suffix string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, text := range files(t, suffix) {
		found[path.Dir(name)] += text + "\n"
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

// section is the text under a heading of the second level.
func section(t *testing.T, name, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(document(t, name), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", name, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// Each promise of docs/security.md names at least one test, and each test is in the package where that document says.
// Tests that other documents name exist somewhere.
func TestTestsThatDocumentsNameExist(t *testing.T) {
	tests := map[string][]string{} // by directory
	var all []string
	for directory, text := range sources(t, "_test.go") {
		for _, match := range testFunction.FindAllStringSubmatch(text, -1) {
			tests[directory] = append(tests[directory], match[1])
			all = append(all, match[1])
		}
	}
	scripts := map[string]string{} // by directory
	for directory, text := range sources(t, ".ts") {
		for ; strings.HasPrefix(directory, "web/"); directory = filepath.Dir(directory) {
			scripts[directory] += text
		}
	}

	place := regexp.MustCompile("^`([a-z0-9/]+)`(?:: (.*))?$")
	title := regexp.MustCompile(`“([^”]+)”`)
	rows := 0
	for row := range strings.Lines(section(t, "docs/security.md", "What is promised")) {
		cells := strings.Split(strings.TrimSpace(row), " | ")
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| ---") || strings.HasPrefix(row, "| promise") {
			continue
		}
		rows++
		shownBy := cells[len(cells)-1]
		named := 0
		for part := range strings.SplitSeq(strings.TrimSuffix(shownBy, " |"), ";") {
			match := place.FindStringSubmatch(strings.TrimSpace(part))
			if match == nil {
				t.Errorf("%q is no place, which shall show: %s", part, cells[0])
				continue
			}
			directory := match[1]
			if info, err := os.Stat(filepath.Join(root, directory)); err != nil || !info.IsDir() {
				t.Errorf("there is no %s, which shall show: %s", directory, cells[0])
			}
			for _, name := range testName.FindAllString(match[2], -1) {
				named++
				if !slices.Contains(tests[directory], name) {
					t.Errorf("%s has no %s, which shall show: %s", directory, name, cells[0])
				}
			}
			for _, name := range title.FindAllStringSubmatch(match[2], -1) {
				named++
				if !strings.Contains(scripts[directory], "test('"+name[1]+"'") {
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
	decisions, err := filepath.Glob(filepath.Join(root, "docs", "decisions", "*.md"))
	if err != nil || len(decisions) == 0 {
		t.Fatal("there are no decisions", err)
	}
	for _, name := range slices.Concat(documents, decisions, []string{filepath.Join(root, "README.md")}) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range testName.FindAllString(string(text), -1) {
			if !slices.Contains(all, test) {
				t.Errorf("%s names %s, which does not exist", filepath.Base(name), test)
			}
		}
	}
}

// histogramPart is how the series of a histogram of times end.
var histogramPart = regexp.MustCompile(`_seconds_(bucket|count|sum)$`)

// An alert on a metric that does not exist under that name never fires.
func TestMetricsThatAlertsAndDocumentsNameExist(t *testing.T) {
	code := strings.Builder{}
	for directory, text := range sources(t, ".go") {
		if strings.HasPrefix(directory, "internal") {
			code.WriteString(text)
		}
	}
	for _, name := range []string{"deploy/prometheus.yaml", "docs/operations.md", "docs/security.md", "docs/history.md", "docs/notifications.md", "docs/logs.md", "docs/runbooks.md"} {
		for _, metric := range metricName.FindAllString(document(t, name), -1) {
			metric = histogramPart.ReplaceAllString(metric, "_seconds")
			// Those of each kind of a cluster are named without what all begin with.
			if !strings.Contains(code.String(), `"`+metric+`"`) && !strings.Contains(code.String(), `"`+strings.TrimPrefix(metric, "kubecast_")+`"`) {
				t.Errorf("%s: there is no metric %s", name, metric)
			}
		}
	}
}

var (
	// citation is a document, and what of it is meant: docs/wire.md, "Event ids"; docs/wire.md, rule 8.
	citation = regexp.MustCompile(`[\w./-]*\b[\w-]+\.md\b(?:, (?:"([^"\n]+)"|rule (\d+)))?`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// citations are those of a text. Most lines have none, which is soon seen, and which the expression takes long to see.
func citations(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, ".md") {
			all = append(all, citation.FindAllStringSubmatch(line, -1)...)
		}
	}
	return all
}

// A comment or a document must cite only what is in the repository, and in the cited document.
func TestDocumentsThatAreCitedExist(t *testing.T) {
	documents := files(t, ".md")
	found := 0
	for name, text := range files(t, ".md", ".go", ".ts", ".tsx", ".mjs", ".js", ".css", ".yaml", ".sh", "Makefile", "Dockerfile") {
		for _, match := range citations(text) {
			cited, _, _ := strings.Cut(match[0], ",")
			cited = strings.TrimPrefix(cited, "//github.com/kubecast/kubecast/blob/main/")
			at := ""
			for _, candidate := range []string{path.Join(path.Dir(name), cited), path.Clean(cited), path.Join("docs", cited)} {
				if _, ok := documents[candidate]; ok {
					at = candidate
				}
			}
			found++
			switch headings := heading.FindAllStringSubmatch(documents[at], -1); {
			case at == "":
				t.Errorf("%s cites %s, which is not in the repository", name, cited)
			case match[1] != "" && !slices.ContainsFunc(headings, func(h []string) bool { return h[1] == match[1] }):
				t.Errorf("%s cites %q of %s, which has no such heading", name, match[1], cited)
			case match[2] != "" && !strings.Contains(documents[at], "\n"+match[2]+". "):
				t.Errorf("%s cites rule %s of %s, which has none", name, match[2], cited)
			}
		}
	}
	for name, text := range documents {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, fragment, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, ":") {
				continue // elsewhere
			}
			found++
			if target == "" {
				target = path.Base(name)
			}
			at := path.Join(path.Dir(name), target)
			if _, err := os.Stat(filepath.Join(root, at)); err != nil {
				t.Errorf("%s has a link to %s, which is not there", name, match[1])
			}
			if fragment != "" && !slices.ContainsFunc(heading.FindAllStringSubmatch(documents[at], -1), func(h []string) bool {
				return fragment == strings.ReplaceAll(strings.ToLower(regexp.MustCompile(`[^\w -]`).ReplaceAllString(h[1], "")), " ", "-")
			}) {
				t.Errorf("%s has a link to %s, and there is no such heading", name, match[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d citations were found", found)
	}
}

// Each rule of docs/wire.md names a test.
func TestRulesOfTheWireAreShown(t *testing.T) {
	rules := regexp.MustCompile(`(?m)^\d+\. `).Split(section(t, "docs/wire.md", "The rules of event streams"), -1)[1:]
	if len(rules) < 12 {
		t.Errorf("only %d rules were found", len(rules))
	}
	for i, rule := range rules {
		if !testName.MatchString(rule) {
			t.Errorf("nothing shows rule %d: %s", i+1, rule)
		}
	}
}
