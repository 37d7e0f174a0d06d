package e2e

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubecast/kubecast/e2e/harness"
)

// While the history's disk is full, also through a restart, all else goes on, what was recorded can
// be read, and the log names the file. Once there is room, the gateway records by itself what
// happened meanwhile, all of it in time.
func TestAFullDiskLosesNothingAndStopsNothingElse(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a disk that is small")
	}
	s := onStage(t)
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("a small disk cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(disk, "history.db")
	s.namespaces(t, "full")
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	g := s.startGateway(t, gatewayOptions{listen: harness.Address(t), config: fmt.Sprintf("history: {stateDir: %q}\n", disk)})
	r := &record{name: "SQLite", gateways: []*gateway{g}, db: db}
	r.mustBegin(t)

	random, token := seed(t), s.viewer(t)
	o := s.observe(t, "full")
	l := &lives{jobs: o.jobs, names: 40}
	live := func(lasts time.Duration) {
		finish := l.live(t, random)
		time.Sleep(lasts)
		finish()
	}
	live(500 * time.Millisecond)
	seen := o.seen(t)
	eventually(t, "all is recorded", func() error { return r.check(t, seen) })
	past := func() (told int, err error) {
		a := g.get(t, token, "/history/apis/batch/v1/namespaces/full/jobs?view=transitions&limit=1000")
		if a.code != http.StatusOK {
			return 0, fmt.Errorf("%d %s", a.code, a.body)
		}
		return strings.Count(a.body, `"seq":`), nil
	}
	before, err := past()
	if err != nil || before == 0 {
		t.Fatalf("%d transitions, %v", before, err)
	}

	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	goesOn := func(when string) {
		t.Helper()
		said := "the log says that " + file + " is full, " + when
		eventually(t, said, func() error {
			live(200 * time.Millisecond) // there may be some room within the file
			for _, line := range strings.Split(g.process.Stderr.String(), "\n") {
				if strings.Contains(line, "level=WARN") && strings.Contains(line, `error="full: `) && strings.Contains(line, file) {
					return nil
				}
			}
			return errors.New("it does not")
		})
		watch := openAs(t, g, token, "/apis/batch/v1/namespaces/full/jobs", nil)
		for watch.mustNext(t).event != "synced" {
		}
		name := "while-full-" + strings.ReplaceAll(when, " ", "-")
		s.kubectl(t, suspendedJob("full", name, "full"), "create", "-f", "-")
		for told := watch.mustNext(t); told.event != "added" || !strings.Contains(told.data, name); { // others still change
			told = watch.mustNext(t)
		}
		if told, err := past(); err != nil || told < before {
			t.Errorf("%s: %d transitions of %d can be read, %v", when, told, before, err)
		}
		if code, body := g.readyz(); code != http.StatusOK {
			t.Errorf("%s: %d %s", when, code, body)
		}
	}
	goesOn("as it fills")
	g.kill()
	g.restart(t)
	g.waitReady(t)
	goesOn("after a restart")

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	seen = o.seen(t)
	eventually(t, "all is recorded, in time, that happened while the disk was full", func() error { return r.check(t, seen) })
}
