package auth

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page about security names a test for each promise. Each of these tests must exist.
func TestSecurityPageNamesTestsThatExist(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, promises, _ := strings.Cut(string(page), "## What is promised\n")
	promises, _, _ = strings.Cut(promises, "\n## ")
	name := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+|“[^”]+”`)
	rows := 0
	for row := range strings.Lines(promises) {
		cells := strings.Split(row, "|")
		if len(cells) != 4 || strings.Contains(row, "---") || strings.TrimSpace(cells[1]) == "promise" {
			continue
		}
		rows++
		promise, shown := strings.TrimSpace(cells[1]), 0
		for _, part := range strings.Split(cells[2], ";") {
			dir, tests, found := strings.Cut(strings.TrimSpace(part), "`: ")
			if !found { // a program shows it
				dir = strings.Trim(dir, "`")
				if info, err := os.Stat(filepath.Join(root, dir)); err != nil || !info.IsDir() {
					t.Errorf("%s: there is no %q", promise, dir)
				}
				continue
			}
			source := sources(t, filepath.Join(root, strings.TrimPrefix(dir, "`")))
			for _, test := range name.FindAllString(tests, -1) {
				shown++
				declaration := "func " + test + "("
				if text, quoted := strings.CutPrefix(test, "“"); quoted {
					declaration = "test('" + strings.TrimSuffix(text, "”") + "'"
				}
				if !strings.Contains(source, declaration) {
					t.Errorf("%s: there is no %s in %s", promise, test, strings.TrimPrefix(dir, "`"))
				}
			}
		}
		if shown == 0 {
			t.Errorf("nothing shows: %s", promise)
		}
	}
	if rows < 40 {
		t.Errorf("only %d promises are found", rows)
	}
}

// sources returns the tests of a folder.
func sources(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"*_test.go", "*.test.ts"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(data)
		}
	}
	return all.String()
}
