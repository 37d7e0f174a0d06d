package store

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
)

// recipe is a block of commands in docs/history.md, below a heading; the test is skipped where one
// of its programs is not installed.
func recipe(t *testing.T, heading, with string, programs ...string) string {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	docs, err := os.ReadFile("../../../docs/history.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(docs), "## "+heading+"\n")
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		if strings.Contains(block[1], with) {
			return block[1]
		}
	}
	t.Fatalf("docs/history.md has no commands with %q below %q", with, heading)
	return ""
}

func follow(t *testing.T, commands, dir string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
}

// past is a file with a history that has all that is hard to copy: quotes, line ends, empty texts,
// and columns that are NULL.
func past(t *testing.T, dir string) (s *Store, log Log) {
	t.Helper()
	s = openAt(t, "sqlite://"+dir+"/history.db")
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := s.Take(t.Context(), LogName{"c0", "jobs.batch"}, "other", "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, other, seen(3, "n", "o", numbered("other", 20), jobs.Running))
	b := seen(7, "team-a", "ann", numbered("u", 500), jobs.Pending, jobs.Running, jobs.Failed)
	b.Transitions[0].Message, b.Transitions[1].Message, b.Transitions[2].Message = "", "NULL", "two\r\nlines, \"quoted\"\n\\.\n\\"
	b.Transitions[3].Owner, b.Jobs[0].Message = `a"b,c'd;e`, "-- \\g \t"
	b.Jobs[1].RanUntil = 0 // is NULL
	log = write(t, s, take(t, s, "a"), b)
	if err := s.Release(t.Context(), jobLog, "a"); err != nil {
		t.Fatal(err)
	}
	return s, log
}

// A backup that is made as the documentation says has one moment of the history, however much is written meanwhile.
func TestABackupHasOneMoment(t *testing.T) {
	commands, dir := recipe(t, "Backup", "VACUUM INTO", "sqlite3"), t.TempDir()
	s, log := past(t, dir)
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for at := log; ctx.Err() == nil; {
			next, err := s.Write(t.Context(), at, seen(at.Version+1, "n", "o", numbered("v", 10), jobs.Running))
			if err != nil {
				t.Error(err)
				return
			}
			at = next
		}
	})
	follow(t, commands, dir)
	stop()
	writing.Wait()
	copied := openAt(t, "sqlite://"+filepath.Join(dir, "copy.db"))
	found, err := copied.Find(t.Context(), jobLog)
	var rows, last uint64
	err = errors.Join(err, copied.reads.QueryRow("SELECT count(*), max(seq) FROM transitions WHERE log = ?", found.ID).Scan(&rows, &last))
	if err != nil || found.Seq < log.Seq || rows != found.Seq || last != found.Seq {
		t.Errorf("%+v has %d transitions up to %d, %v", found, rows, last, err)
	}
	var sound string
	if err := copied.reads.QueryRow("PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
		t.Errorf("%s, %v", sound, err)
	}
	write(t, copied, take(t, copied, "b"), seen(found.Version+1, "n", "o", []string{"next"}, jobs.Running))
}
