package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// nextRelease makes a test's gateways know more migrations from then on, as later releases do. A
// contraction takes a column away.
func nextRelease(t *testing.T, contracts bool, statements ...string) {
	t.Helper()
	migrationsBefore, contractionsBefore := migrations, contractions
	t.Cleanup(func() { migrations, contractions = migrationsBefore, contractionsBefore })
	migrations = append(slices.Clone(migrations), statements)
	if contracts {
		contractions = append(slices.Clone(contractions), len(migrations))
	}
}

// released is a gateway of a release, which knows all migrations so far.
func released(t *testing.T, address, release string) *Store {
	t.Helper()
	s, err := New(Options{Address: address, Release: release})
	if err != nil {
		t.Fatal(err)
	}
	s.knows = len(migrations)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// recorded records jobs until the context ends, a few in each batch, and gives up the log after
// each tenth. It returns the names of what it wrote.
func recorded(ctx context.Context, s *Store, resource, holder string) (uids []string, err error) {
	name := LogName{Cluster: "c1", Resource: resource}
	for n := 0; ctx.Err() == nil; n++ {
		log, err := s.Take(ctx, name, "default", holder, time.Minute)
		if errors.Is(err, ErrHeld) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			return uids, err
		}
		uid := fmt.Sprintf("%s-%d", holder, n)
		written := context.WithoutCancel(ctx) // else it would not be known whether it was written
		if _, err := s.Write(written, log, seen(log.Version+1, "n", "o", []string{uid}, jobs.Submitted, jobs.Running, jobs.Succeeded)); err != nil {
			return uids, err
		}
		uids = append(uids, uid)
		if n%10 == 9 {
			if err := s.Release(written, name, holder); err != nil {
				return uids, err
			}
			time.Sleep(100 * time.Millisecond) // else those who wait for it would hardly ever meet the moment
		}
	}
	return uids, s.Release(context.WithoutCancel(ctx), name, holder)
}

// An update that only expands the schema, and its rollback, take nothing from a gateway of the
// release before: both record side by side, and in turn, while the schema is changed.
func TestGatewaysOfTwoReleasesRecordSideBySide(t *testing.T) {
	for name, address := range dbtest.Addresses {
		t.Run(name, func(t *testing.T) {
			at := address(t)
			before := released(t, at, "v1")
			if err := before.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			nextRelease(t, false, `ALTER TABLE jobs ADD COLUMN IF NOT EXISTS note $TEXT`, `CREATE TABLE IF NOT EXISTS notes (id BIGINT NOT NULL PRIMARY KEY) $OPTIONS`,
				`CREATE INDEX IF NOT EXISTS transitions_late ON transitions (log, late, seq) $UNLIKE`)
			after := released(t, at, "v2")
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var recording sync.WaitGroup
			var mu sync.Mutex
			wrote, all := map[string]int{}, []string{}
			run := func(s *Store, resource, holder string) {
				recording.Go(func() {
					uids, err := recorded(ctx, s, resource, holder)
					if err != nil && ctx.Err() == nil {
						t.Errorf("%s: %v", holder, err)
					}
					mu.Lock()
					defer mu.Unlock()
					wrote[resource] += len(uids)
					all = append(all, uids...)
				})
			}
			written := func(holder string, n int) {
				t.Helper()
				for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
					var jobs int
					if err := after.QueryRow(t.Context(), "SELECT COUNT(*) FROM jobs WHERE uid LIKE ?", holder+"-%").Scan(&jobs); err != nil {
						t.Fatal(err)
					}
					if jobs >= n {
						return
					}
					if time.Now().After(deadline) {
						t.Fatalf("%s has written %d jobs", holder, jobs)
					}
				}
			}
			run(before, "jobs.batch", "before")
			written("before", 5)
			if err := after.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			run(after, "jobs.batch", "after")
			run(after, "others.batch", "alone")
			written("after", 15)
			again := released(t, at, "v1") // a rollback: a gateway of the release before starts in the new schema
			again.knows = before.knows
			if err := again.Migrate(t.Context()); err != nil {
				t.Fatalf("rolled back: %v", err)
			}
			run(again, "jobs.batch", "again")
			written("again", 15)
			written("before", 30)
			stop()
			recording.Wait()
			for resource, n := range wrote {
				log, err := after.Find(t.Context(), LogName{Cluster: "c1", Resource: resource})
				if err != nil {
					t.Fatal(err)
				}
				transitions, err := after.TransitionsAfter(t.Context(), log, Filter{}, 0, 100_000, 100_000)
				if err != nil || len(transitions) != 3*n || int(log.Seq) != 3*n || int(log.Version) != n {
					t.Errorf("%s: %d transitions and %+v of %d jobs, %v", resource, len(transitions), log, n, err)
				}
				for i, tr := range transitions {
					if int(tr.Seq) != i+1 {
						t.Fatalf("%s: %d stands at %d", resource, tr.Seq, i+1)
					}
				}
			}
			if before.Refused() != nil || again.Refused() != nil {
				t.Error(before.Refused(), again.Refused())
			}
			to := released(t, dbtest.Addresses["SQLite"](t), "v2")
			if err := to.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := Copy(t.Context(), again, to, func(string, int) {}); !errors.Is(err, ErrNewer) {
				t.Errorf("a gateway copies what it does not know all of: %v", err)
			}
		})
	}
}

// Once a release takes away what an earlier one needs, gateways of the earlier one neither write
// nor read: also those that ran before, also one that is started. They say which release is needed.
// Those of releases in between go on if they need nothing of it.
func TestWhatCannotBeUsedAnyMoreIsRefusedByTheNameOfARelease(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		s.knows = len(migrations)
		nextRelease(t, false, `ALTER TABLE jobs ADD COLUMN IF NOT EXISTS note $TEXT`)
		between := *s
		between.database = &database{recorders: s.recorders, reads: s.reads, writes: s.writes, turns: s.turns, dialect: s.dialect, file: s.file, knows: len(migrations), release: "v2.0.0"}
		if err := between.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Take(t.Context(), log.LogName, "default", "a", time.Minute); err != nil || s.Refused() != nil {
			t.Errorf("an expansion: %v", err)
		}
		nextRelease(t, true, `CREATE TABLE IF NOT EXISTS instead (id BIGINT NOT NULL PRIMARY KEY) $OPTIONS`)
		next := between
		next.database = &database{recorders: s.recorders, reads: s.reads, writes: s.writes, turns: s.turns, dialect: s.dialect, file: s.file, knows: len(migrations), release: "v3.0.0"}
		if err := next.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, refused := range []*Store{s, &between} {
			_, err := refused.Take(t.Context(), log.LogName, "default", "a", time.Minute)
			for _, err := range []error{err, refused.Check(t.Context()), refused.Migrate(t.Context()), refused.Refused()} {
				if !errors.Is(err, ErrNewer) || CauseOf(err) != CauseSchema || !strings.Contains(err.Error(), "run release v3.0.0 or a later one") {
					t.Errorf("%v", err)
				}
			}
		}
		nextRelease(t, false, `ALTER TABLE jobs ADD COLUMN IF NOT EXISTS another $TEXT`)
		last := next
		last.database = &database{recorders: s.recorders, reads: s.reads, writes: s.writes, turns: s.turns, dialect: s.dialect, file: s.file, knows: len(migrations), release: "v3.1.0"}
		if err := errors.Join(last.Migrate(t.Context()), next.Check(t.Context())); err != nil {
			t.Error(err)
		}
		if err := between.Check(t.Context()); !errors.Is(err, ErrNewer) {
			t.Errorf("what was taken away does not come back: %v", err)
		}
		// A database that is restored to what a gateway can use is used again.
		if _, err := next.execute(t.Context(), "UPDATE history_schema SET readable_from = ? WHERE id = 1", between.knows); err != nil {
			t.Fatal(err)
		}
		if err := between.Check(t.Context()); err != nil || between.Refused() != nil {
			t.Error(err, between.Refused())
		}
	})
}

// A gateway of the release before reads a job, and writes all of it that it knows. What is not known
// of its times stays so.
func TestAGatewayOfBeforeForgetsNotThatATimeIsNotKnown(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		job, transition := jobs.Next(nil, jobs.Seen{
			ObjectID: jobs.ObjectID{UID: "u", Namespace: "n", Name: "j"}, Version: 1, Created: 1000, Observed: 900_000, Late: true,
			Said: jobs.Said{State: jobs.Running, Counts: jobs.Counts{Failures: 1}},
		})
		job.StoppedLate = true
		log = write(t, s, log, Batch{To: 1, Jobs: []*jobs.Job{job}, Transitions: []*jobs.Transition{transition}})
		known := slices.DeleteFunc(slices.Clone(jobColumns), func(column string) bool { return strings.HasSuffix(column, "_late") })
		again := *job
		again.BeganLate, again.StoppedLate = false, false // it knows of neither
		row, err := jobRow(log.ID, &again)
		if err != nil {
			t.Fatal(err)
		}
		for i := len(jobColumns) - 1; i >= 0; i-- {
			if !slices.Contains(known, jobColumns[i]) {
				row = slices.Delete(row, i, i+1)
			}
		}
		if err := s.Transact(t.Context(), func(tx *Tx) error {
			return tx.Insert(t.Context(), "jobs", known, [][]any{row}, known[:2], known[2:])
		}); err != nil {
			t.Fatal(err)
		}
		found, err := s.Jobs(t.Context(), log, Filter{}, JobAfter{}, 1)
		if err != nil || len(found) != 1 || found[0].Waited() != nil || found[0].Ran() != nil || found[0].Failures != 1 {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// What is no contraction lets gateways of before go on: it takes nothing away, and asks nothing of what they write.
func TestMigrationsOnlyExpandUnlessTheySaySo(t *testing.T) {
	expands := regexp.MustCompile(`(?s)^(CREATE TABLE IF NOT EXISTS .*|CREATE INDEX IF NOT EXISTS .*|ALTER TABLE \w+ ADD COLUMN IF NOT EXISTS \w+ \S+|INSERT INTO .*)$`)
	for i, statements := range migrations {
		for _, statement := range statements {
			if !expands.MatchString(statement) && (i+1 == contractions[0] || !slices.Contains(contractions, i+1)) {
				t.Errorf("version %d is no contraction, and says %s", i+1, statement)
			}
		}
	}
	for version, from := range map[int]int{14: 14, 15: 15, 16: 15, 40: 15} {
		if got := readableFrom(version); got != from {
			t.Errorf("gateways from %d use version %d", got, version)
		}
	}
}

// To look at a database makes none.
func TestLookingAtASchemaMakesNoFile(t *testing.T) {
	dir := t.TempDir()
	for _, opts := range []Options{{Address: "sqlite", StateDir: dir}, {Address: "sqlite://" + dir + "/other.db"}} {
		s, err := New(opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context()); !errors.Is(err, ErrOlder) {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Error(files, err)
	}
}
