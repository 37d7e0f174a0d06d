package e2e

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/e2e/harness"
)

// previousRelease builds the gateway of the release before this one, without the portal. Which one that is, a tag or
// a commit, stands in testdata/previous-release.
var previousRelease = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile("testdata/previous-release")
	if err != nil {
		return "", err
	}
	revision := strings.TrimSpace(string(text))
	fail := func(err error, out []byte) (string, error) {
		return "", fmt.Errorf("building the gateway of %s, which needs the whole history of the repository: %w\n%s", revision, err, out)
	}
	// The same folder each time, so that what is compiled is found again the next time.
	dir := filepath.Join(os.TempDir(), "kubecast-e2e-previous", revision)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err, nil)
	}
	archive := exec.Command("git", "archive", revision, "go.mod", "go.sum", "cmd", "internal", "web/portal/dist", "web/*.go")
	archive.Dir = ".."
	var said bytes.Buffer
	archive.Stderr = &said
	files, err := archive.Output()
	if err != nil {
		return fail(err, said.Bytes())
	}
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(files)
	if out, err := unpack.CombinedOutput(); err != nil {
		return fail(err, out)
	}
	program := filepath.Join(harness.Dir(), "previous-gateway")
	build := exec.Command("go", "build", "-o", program, "./cmd/gateway")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return fail(err, out)
	}
	return program, nil
})

// spanOfTransitions is how many have a row of spans.
const spanOfTransitions = 1000

// A release is updated to this one, and rolled back, while jobs live: one replica after the other, so that both
// releases record in one database, and by crashes. Each transition is recorded once and told once, to readers, to
// owners and to webhooks, as where one release is killed. What this release has written the release before leaves as it is.
func TestAnUpdateAndItsRollbackRecordEachTransitionOnce(t *testing.T) {
	t.Parallel()
	s := onFaultStage(t)
	previous, err := previousRelease()
	if err != nil {
		t.Fatal(err)
	}
	s.namespaces(t, "recorded", "updated")
	random := seed(t)
	records := s.startRecording(t, random, previous)
	o := s.observe(t, "recorded")
	allTold := s.follow(t, random, records)
	l := &lives{jobs: o.jobs, names: 40}
	finish := l.live(t, random)
	if _, err := s.kube.BatchV1().Jobs("updated").Create(t.Context(), shortJob("with-pods"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{s.gateway, previous} {
		for i := range 2 { // the second replicas only when all first ones are replaced
			for _, r := range records {
				if i >= len(r.gateways) {
					continue
				}
				r.gateways[i].replace(t, program, random.IntN(2) == 0)
				r.goesOn(t, o)
			}
		}
	}
	for _, r := range records {
		for _, g := range r.gateways {
			g.replace(t, s.gateway, false)
		}
		advancing(t, "there is enough for a span in "+r.name, r.counts(transitionsOfLives), func() error {
			n, err := r.counts(transitionsOfLives)()
			if err == nil && n < spanOfTransitions {
				err = fmt.Errorf("%d transitions", n)
			}
			return err
		})
	}
	finish()
	seen := o.seen(t)
	for _, r := range records {
		r.hasAll(t, seen)
		eventually(t, "pods are recorded in "+r.name, func() error {
			var n int
			err := r.db.QueryRow("SELECT COUNT(*) FROM runs WHERE ended > 0").Scan(&n)
			if err == nil && n < 2 {
				err = fmt.Errorf("%d", n)
			}
			return err
		})
	}
	allTold()

	for _, r := range records {
		for _, g := range r.gateways {
			g.end() // so that nothing is written any more
		}
		was := r.tables(t)
		for _, g := range r.gateways {
			g.replace(t, previous, false)
		}
		r.mustBegin(t)
		if is := r.tables(t); !reflect.DeepEqual(is, was) {
			for table := range was {
				for i := range min(len(is[table]), len(was[table])) {
					if is[table][i] != was[table][i] {
						t.Fatalf("%s: the release before has made of %s's %s\n%s", r.name, table, was[table][i], is[table][i])
					}
				}
				if len(is[table]) != len(was[table]) {
					t.Errorf("%s: the release before has made %d rows of %d of %s", r.name, len(is[table]), len(was[table]), table)
				}
			}
		}
	}
	finish = l.live(t, random)
	for _, r := range records {
		r.goesOn(t, o)
	}
	finish()
	seen = o.seen(t)
	for _, r := range records {
		r.hasAll(t, seen)
	}
}

// replace runs another program in a gateway's place, after it was asked to end, or has crashed.
func (g *gateway) replace(t *testing.T, program string, crashed bool) {
	t.Helper()
	if crashed {
		g.kill()
	} else {
		g.end()
		g.logs = append(g.logs, g.process.Stderr.String(), "--- ended ---\n")
	}
	g.program = program
	g.restart(t)
}

// goesOn waits until what has happened by now is recorded.
func (r *record) goesOn(t *testing.T, o *observer) {
	t.Helper()
	known := o.known()
	advancing(t, "most is recorded in "+r.name, r.counts(transitionsOfLives), func() error { return r.reaches(known) })
}

// hasAll waits until all that was seen is recorded, and has arrived at webhooks.
func (r *record) hasAll(t *testing.T, seen map[string][]stateAt) {
	t.Helper()
	advancing(t, "all is recorded in "+r.name, r.counts(transitionsOfLives), func() error { return r.check(t, seen) })
	advancing(t, "all of "+r.name+" arrived at its webhooks", r.hooks.count, r.checkHooks)
}

// tables are the rows of the tables that say what happened, by the tables' names. The others say who records, and what has still to be sent.
func (r *record) tables(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range []string{"transitions", "jobs", "runs", "inbox", "inbox_heads", "kept", "kept_budgets", "secrets", "totals", "spans"} {
		all[table] = r.rows(t, table)
		if len(all[table]) == 0 {
			t.Errorf("%s: nothing is in %s, so this says nothing about it", r.name, table)
		}
	}
	return all
}

// rows are all rows of a table, in some order that depends on nothing else.
func (r *record) rows(t *testing.T, table string) (all []string) {
	t.Helper()
	rows, err := r.db.Query("SELECT * FROM " + table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, places := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			t.Fatal(err)
		}
		var row strings.Builder
		for i, column := range columns {
			fmt.Fprintf(&row, "%s=%s ", column, values[i])
		}
		all = append(all, row.String())
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}
