package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// facts are the observations of one client.
type facts struct {
	phases  map[string]tally  // what happened in each phase
	answers map[string]string // what it did with each probe's answer
	large   string
}

func newFacts() *facts { return &facts{phases: map[string]tally{}} }

const (
	tablePage  = "../docs/clients.md"
	tableBegin = "<!-- observed: written by go test ./clients -run TestClientMatrix -update -->\n"
	tableEnd   = "<!-- end of what was observed -->\n"
)

// checkTable compares the observations with the documentation, or writes them there.
func checkTable(t *testing.T, clients []client, observed map[string]*facts) {
	t.Helper()
	page, err := os.ReadFile(tablePage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableBegin)
	written, after, ends := strings.Cut(rest, tableEnd)
	if !ok || !ends {
		t.Fatalf("%s has no place for what was observed", tablePage)
	}
	tables, err := tablesOf(clients, observed)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("observed:\n%s", tables)
	switch {
	case tables == written:
	case *update:
		if err := os.WriteFile(tablePage, []byte(before+tableBegin+tables+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s says otherwise (go test ./clients -run TestClientMatrix -update writes it anew):\n%s", tablePage, written)
	}
}

func tablesOf(clients []client, observed map[string]*facts) (string, error) {
	versions, err := pinnedVersions()
	if err != nil {
		return "", err
	}
	gateway := [][]string{{"client", "stream ends as planned (age)", "gateway crashes", "gateway is drained", "position has expired", "sends its position in the", "event of 1 MiB", "asks for"}}
	others := [][]string{{"client", "204", "401", "403", "503", "nobody listens at first", "frame cut in half"}}
	for _, c := range clients {
		f := observed[c.key]
		name := strings.TrimSpace(c.name + " " + versions[c.key])
		gateway = append(gateway, []string{name, f.phase("age"), f.phase("kill"), f.phase("drain"), f.snapshot("expire"), f.answers["position"], f.large, f.answers["codings"]})
		row := []string{name}
		for _, status := range statuses {
			row = append(row, f.both(fmt.Sprintf("%s-%d", atConnect, status), fmt.Sprintf("%s-%d", afterward, status)))
		}
		others = append(others, append(row, f.answers[refused], f.both(torn, cut)))
	}
	return "\n" + markdown(gateway) + "\n" + markdown(others) + "\n", nil
}

// phase says in words whether the client came back by itself, and whether it had to begin anew.
func (f *facts) phase(name string) string {
	did := f.phases[name]
	words := f.snapshot(name)
	switch {
	case did.deaths > 0:
		return "gives up; called again: " + words
	case did.ended > 0:
		return "returns; called again: " + words
	}
	return words
}

// snapshot says only whether it had to begin anew.
func (f *facts) snapshot(name string) string {
	if did := f.phases[name]; len(did.resets) > 0 || did.synced > 0 {
		return "begins anew"
	}
	return "resumes"
}

// both says what the client did with two answers that most clients treat alike.
func (f *facts) both(one, other string) string {
	if f.answers[one] == f.answers[other] {
		return f.answers[one]
	}
	return fmt.Sprintf("%s (%s), %s (%s)", f.answers[one], one, f.answers[other], other)
}

func markdown(rows [][]string) string {
	var out strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			out.WriteString("|" + strings.Repeat(" --- |", len(row)) + "\n")
		}
	}
	return out.String()
}

var required = regexp.MustCompile(`(?m)^\t(?:github\.com/)?(\S+?)(?:/v\d+)? (v\S+)$`)

// pinnedVersions returns the versions of the clients, by key. Chromium's is the installed one.
func pinnedVersions() (map[string]string, error) {
	versions := map[string]string{}
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	text, err := os.ReadFile("package-lock.json")
	if err == nil {
		err = json.Unmarshal(text, &lock)
	}
	if err != nil {
		return nil, err
	}
	for path, p := range lock.Packages {
		if name, ok := strings.CutPrefix(path, "node_modules/"); ok {
			versions[name] = p.Version
		}
	}
	if text, err = os.ReadFile("golang/go.mod"); err != nil {
		return nil, err
	}
	for _, match := range required.FindAllStringSubmatch(string(text), -1) {
		versions[match[1]] = match[2]
	}
	return versions, nil
}
