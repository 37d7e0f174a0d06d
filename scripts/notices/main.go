// Command notices prints the licenses of everything that is inside the gateway's binary: of the Go modules that it is
// made of, of Go itself, and of the packages that the portal is bundled from. `make docs` writes what `gateway licenses`
// prints with it. The working directory is the repository's root, and the portal's packages are installed.
//
// With -packages it lists the packages alone, as JSON: they are part of what a release is said to be made of.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// part is something with a license of its own.
type part struct{ name, version, dir string }

func main() {
	prints := notices
	if len(os.Args) == 2 && os.Args[1] == "-packages" {
		prints = list
	}
	text, err := prints()
	if err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}

// list is the packages of which the portal is bundled, by their names.
func list() (string, error) {
	found, err := packages()
	if err != nil {
		return "", err
	}
	slices.SortFunc(found, func(a, b part) int { return cmp.Compare(a.name, b.name) })
	listed := []map[string]string{}
	for _, p := range found {
		listed = append(listed, map[string]string{"name": p.name, "version": p.version})
	}
	text, err := json.MarshalIndent(listed, "", "  ")
	return string(text) + "\n", err
}

func notices() (string, error) {
	parts, err := modules()
	if err != nil {
		return "", err
	}
	bundled, err := packages()
	if err != nil {
		return "", err
	}
	slices.SortFunc(bundled, func(a, b part) int { return cmp.Compare(a.name, b.name) })
	used := map[string][]string{} // by the text of a license: what is under it
	var texts []string
	for _, p := range append(parts, bundled...) {
		files, err := textsIn(p.dir)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.name, err)
		}
		for _, text := range files {
			if used[text] == nil {
				texts = append(texts, text)
			}
			used[text] = append(used[text], strings.TrimSpace(p.name+" "+p.version))
		}
	}
	var all strings.Builder
	all.WriteString("Kubecast contains the following, under the licenses and with the notices that stand behind them.\n")
	for _, text := range texts {
		fmt.Fprintf(&all, "\n%s\n\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(used[text], "\n"), text)
	}
	return all.String(), nil
}

// modules are Go, and the modules of which packages are in the binary, by their names.
func modules() ([]part, error) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/gateway")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64") // what is released, wherever this runs
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	found := []part{{name: "Go", dir: strings.TrimSpace(string(root))}}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		if fields := strings.Split(line, "\t"); len(fields) == 3 {
			found = append(found, part{fields[0], fields[1], fields[2]})
		}
	}
	return found, nil
}

// lock is what of npm's lock file says what is installed, by its folder.
type lock struct {
	Packages map[string]struct {
		Version      string
		Resolved     string
		Link         bool
		Dependencies map[string]string
	}
}

// packages are those that the portal and the SDK need at run time, and those that these need.
func packages() (found []part, err error) {
	text, err := os.ReadFile("web/package-lock.json")
	if err != nil {
		return nil, err
	}
	var l lock
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var visit func(name string) error
	visit = func(name string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		folder := "node_modules/" + name
		of, ok := l.Packages[folder]
		if !ok {
			return fmt.Errorf("web/package-lock.json has no %s", name)
		}
		if of.Link { // our own
			of = l.Packages[of.Resolved]
		} else {
			found = append(found, part{name, of.Version, filepath.Join("web", folder)})
		}
		for needed := range of.Dependencies {
			if err := visit(needed); err != nil {
				return err
			}
		}
		return nil
	}
	for _, folder := range []string{"portal", "sdk"} {
		for name := range l.Packages[folder].Dependencies {
			if err := visit(name); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// textsIn are the texts of a folder that say for what it may be used.
func textsIn(dir string) (texts []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		if e.IsDir() || filepath.Ext(name) == ".go" || !slices.ContainsFunc([]string{"license", "licence", "notice", "copying", "patents"}, func(begin string) bool { return strings.HasPrefix(name, begin) }) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(text), "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " \t\r")
		}
		texts = append(texts, strings.Trim(strings.Join(lines, "\n"), "\n"))
	}
	if len(texts) == 0 {
		return nil, errors.New("has no license in " + dir)
	}
	return texts, nil
}
