package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// old is a directory with a database as the gateway of commit 4a9e9a8 made it: its schema of
// version 8 for each sort of database, and what it wrote of jobs in all states. Those in team-b are
// from still earlier ones, which kept less.
const (
	old        = "testdata/schema-8"
	oldVersion = 8
	oldNow     = jobs.Time(1_790_010_000_000) // after all of it
)

// restored is a database as it was left by the old gateway.
func restored(t *testing.T, name, address string) *Store {
	t.Helper()
	s := openAt(t, address)
	for _, file := range []string{strings.ToLower(name) + ".sql", "rows.sql"} {
		text, err := os.ReadFile(filepath.Join(old, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range strings.Split(string(text), ";\n") {
			if statement = strings.TrimSpace(statement); statement == "" {
				continue
			}
			if _, err := s.writes.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v: %s", file, err, statement)
			}
		}
	}
	return s
}

// oldRows are the rows of the tables and columns that the old gateway had.
func oldRows(t *testing.T, s *Store) map[string][][]any {
	t.Helper()
	all := migrations
	migrations = migrations[:oldVersion]
	defer func() { migrations = all }()
	return everything(t, s)
}

// A database that an earlier gateway has written is brought up to date: it has what it had, what
// could not be known is not known, and it is gone on with and can be moved.
func TestADatabaseOfAnEarlierGatewayIsGoneOnWith(t *testing.T) {
	for name, address := range dbtest.Addresses {
		t.Run(name, func(t *testing.T) {
			s, to := restored(t, name, address(t)), migrated(t, dbtest.Addresses["SQLite"](t))
			if err := s.Check(t.Context()); !errors.Is(err, ErrOlder) {
				t.Errorf("it is of this version: %v", err)
			}
			if err := Copy(t.Context(), s, to, func(string, int) {}); !errors.Is(err, ErrOlder) {
				t.Errorf("it is copied as it is: %v", err)
			}
			before := oldRows(t, s)
			if err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if after := oldRows(t, s); !reflect.DeepEqual(before, after) || len(before["jobs"]) != 26 || len(before["outbox"]) != 1 {
				t.Errorf("there was %v, and is %v", before, after)
			}
			isWhatItWas(t, s)
			isGoneOnWith(t, s)
			if err := Copy(t.Context(), s, to, func(string, int) {}); err != nil {
				t.Fatal(err)
			}
			if had, has := everything(t, s), everything(t, to); !reflect.DeepEqual(had, has) {
				t.Errorf("it was moved as %v, not %v", has, had)
			}
		})
	}
}

// isWhatItWas checks that jobs are in the states in which they were left, and that nothing is made
// up of what was not kept of them.
func isWhatItWas(t *testing.T, s *Store) {
	t.Helper()
	log, err := s.Find(t.Context(), jobLog)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Jobs(t.Context(), log, Filter{}, JobAfter{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range all {
		want := jobs.State(strings.ToUpper(j.Name[:1]) + j.Name[1:])
		if j.Name == "again" {
			want = jobs.Running
		}
		if j.State != want || j.Owner != "ann" || j.Queue != "default" || j.Requests["cpu"] != "4" || j.Since < j.Created || (j.Started != 0) != (j.Spent[jobs.Running] != 0 || want == jobs.Running) ||
			(j.Deleted != 0) != (want == jobs.Deleted) || want.Ended() && j.Ended != j.Since {
			t.Errorf("%s is told as %+v", j.UID, j)
		}
		if j.Cause != nil || j.Progress != (jobs.Progress{}) || j.Parent != (jobs.Ref{}) || (j.NamespaceUID == "") != (j.Namespace == "team-b") || j.Namespace == "team-b" && (j.Counts != jobs.Counts{} || j.Reasons != nil || j.RanUntil != 0) {
			t.Errorf("of %s more is told than was known: %+v", j.UID, j)
		}
	}
	transitions, err := s.Transitions(t.Context(), log, Filter{}, 0, 200)
	if err != nil || len(transitions) != int(log.Seq) || slices.ContainsFunc(transitions, func(t *jobs.Transition) bool { return t.Cause != nil }) || len(all) != 22 {
		t.Errorf("%d jobs with %d of %d transitions, some with causes? %v", len(all), len(transitions), log.Seq, err)
	}
	// Nobody recorded pods, so what the jobs used is not known but by what they asked for, also if
	// somebody records pods from now on.
	pods := takePods(t, s)
	for range 2 {
		if uses, err := s.Uses(t.Context(), log, all, oldNow); len(uses) != 0 || err != nil {
			t.Errorf("hours are made up: %v, %v", uses, err)
		}
		if runs, err := s.Runs(t.Context(), log, Filter{}, RunAfter{}, 10); len(runs) != 0 || err != nil {
			t.Errorf("runs are made up: %v, %v", runs, err)
		}
		var want, got jobs.Amounts
		for _, j := range all {
			ran := j.Spent[jobs.Running]
			if j.State == jobs.Running {
				ran += time.Duration(oldNow-j.Since) * time.Millisecond
			}
			want.CPUs, want.GPUs = want.CPUs+4*ran.Hours(), want.GPUs+ran.Hours()
		}
		ends := 0
		span := jobs.Span{Until: oldNow}
		usage := jobs.NewUsage(span)
		if err := s.Lives(t.Context(), log, Filter{}, ByResource, span, oldNow, func(batch []jobs.Lived) error {
			for _, l := range batch {
				usage.Add(l)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, used := range usage.Sum() {
			got.CPUs, got.GPUs = got.CPUs+used.Hours.CPUs, got.GPUs+used.Hours.GPUs
		}
		if err := s.Ends(t.Context(), log, Filter{}, func(batch []*jobs.Transition) error {
			ends += len(batch)
			return nil
		}); err != nil || ends != 8 {
			t.Errorf("%d ends, %v", ends, err)
		}
		if fmt.Sprintf("%.6f", got) != fmt.Sprintf("%.6f", want) || want.CPUs == 0 {
			t.Errorf("usage is %+v, not %+v", got, want)
		}
		if err := s.Began(t.Context(), pods, oldNow-1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Release(t.Context(), pods.LogName, "a"); err != nil {
		t.Fatal(err)
	}
}

// isGoneOnWith checks that the log goes on with the next number, that jobs go on where they were,
// and have what is known of them now.
func isGoneOnWith(t *testing.T, s *Store) {
	t.Helper()
	log, pods := take(t, s, "a"), takePods(t, s)
	living, err := s.Living(t.Context(), log)
	if err != nil || len(living) != 20 {
		t.Fatal(len(living), err)
	}
	was := living[slices.IndexFunc(living, func(j *jobs.Job) bool { return j.UID == "job-running-team-b" })]
	next, transition := jobs.Next(was, jobs.Seen{
		ObjectID: was.ObjectID, Version: log.Version + 1, Created: was.Created, Observed: oldNow, Said: jobs.Said{State: jobs.Failed, Owner: was.Owner, Progress: jobs.Progress{Done: 2, Of: 3}},
	})
	next.Cause = &jobs.Cause{Text: "main was OOM-killed", Reason: jobs.OOMKilled}
	transition.Cause = next.Cause
	run := podOf("pod", log.ID, was.UID, oldNow-7_200_000)
	run.Scheduled, run.Ended, run.Reason = oldNow-3_600_000, oldNow, jobs.OOMKilled
	before := log.Seq
	log = write(t, s, log, Batch{To: log.Version + 1, Jobs: []*jobs.Job{next}, Transitions: []*jobs.Transition{transition}})
	pods = write(t, s, pods, Batch{To: pods.Version + 1, Runs: []*Run{run}})
	found, err := s.Jobs(t.Context(), log, Filter{Causes: []string{jobs.OOMKilled}}, JobAfter{}, 10)
	if err != nil || len(found) != 1 || found[0].State != jobs.Failed || found[0].Attempt != was.Attempt || found[0].Started != was.Started || found[0].Spent[jobs.Running] != time.Duration(oldNow-was.Since)*time.Millisecond ||
		found[0].Progress.Of != 3 || log.Seq != before+1 || transition.Seq != log.Seq {
		t.Fatalf("it is gone on with as %+v, %+v; %v", found, log, err)
	}
	if uses, err := s.Uses(t.Context(), log, found, oldNow); err != nil || uses[was.UID].Hours.CPUs != 2 || uses[was.UID].Failures != 1 {
		t.Errorf("it used %+v; %v", uses, err)
	}
	for _, l := range []Log{log, pods} {
		if err := s.Release(t.Context(), l.LogName, "a"); err != nil {
			t.Fatal(err)
		}
	}
}
