package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// What is written is found again as it was, whatever is in it.
func TestWhatIsWrittenIsFoundAgain(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		if log.Version != 0 || log.Seq != 0 {
			t.Fatalf("a new log stands at %+v", log)
		}
		b := seen(7, "team-a", "ann", numbered("u", 123), jobs.Pending, jobs.Running, jobs.Failed)
		b.Jobs[0].Requests = map[string]string{} // of a custom resource, whose names are anybody's
		for _, name := range numbered(strings.Repeat("<", 250), 64) {
			b.Jobs[0].Requests[name] = "1"
		}
		code, signal := int64(137), int64(9)
		cause := &jobs.Cause{Text: "ä'\"\\?$1<b>", Reason: jobs.OOMKilled, Container: "main", ExitCode: &code, Signal: &signal, Pod: "p", Node: "n", Pods: 3}
		b.Jobs[0].Cause, b.Transitions[2].Cause, b.Jobs[1].Cause = cause, cause, &jobs.Cause{}
		next := write(t, s, log, b)
		found, err := s.Find(t.Context(), jobLog)
		if err != nil || found != next || next.Version != 7 || next.Seq != 369 {
			t.Fatalf("%+v, %+v, %v", found, next, err)
		}
		living, err := s.Living(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		byUID := func(a, b *jobs.Job) int { return strings.Compare(a.UID, b.UID) }
		slices.SortFunc(living, byUID)
		if diff := cmp.Diff(b.Jobs, living); diff != "" {
			t.Error(diff)
		}
		transitions, err := s.TransitionsAfter(t.Context(), next, Filter{}, 0, 1000, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b.Transitions, transitions); diff != "" {
			t.Error(diff)
		}
		for i, tr := range transitions {
			if tr.Seq != uint64(i+1) {
				t.Fatalf("number %d stands at place %d", tr.Seq, i)
			}
		}
		// Written again, a job is replaced; once deleted, it lives no more.
		again := seen(9, "team-a", "ann", []string{"u000"}, jobs.Pending, jobs.Running, jobs.Deleted)
		again.Transitions = again.Transitions[2:]
		next = write(t, s, next, again)
		if living, err = s.Living(t.Context(), next); err != nil || len(living) != 122 {
			t.Errorf("%d jobs live, %v", len(living), err)
		}
	})
}

// Of several who write the same stretch, one does: nothing is written twice, and numbers have no gaps.
func TestOfSeveralWritersOneWrites(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		const writers, rounds = 4, 12
		var running sync.WaitGroup
		var mu sync.Mutex
		wrote := map[uint64]int{}
		for w := range writers {
			running.Go(func() {
				mine := log
				for round := uint64(1); round <= rounds; {
					// Half of the rounds move no version, as the second of two deletions in one revision does.
					next, err := s.Write(t.Context(), mine, seen((round+1)/2, "n", "o", []string{fmt.Sprintf("%d-%d", round, w)}, jobs.Running))
					switch {
					case err == nil:
						mu.Lock()
						wrote[round]++
						mu.Unlock()
						mine = next
					case CauseOf(err) == CauseOther || ctxDone(t.Context()):
						t.Errorf("%v", err)
						return
					default: // moved; or a deadlock or a lock that could not be had, which are the database's to decide
						if mine, err = s.Find(t.Context(), jobLog); err != nil {
							t.Error(err)
							return
						}
					}
					round = mine.Seq + 1
				}
			})
		}
		running.Wait()
		all, err := s.TransitionsAfter(t.Context(), log, Filter{}, 0, 1000, 1000)
		if err != nil || len(all) != rounds {
			t.Fatalf("%d transitions, %v", len(all), err)
		}
		for i, tr := range all {
			if tr.Seq != uint64(i+1) || !strings.HasPrefix(tr.UID, fmt.Sprintf("%d-", i+1)) {
				t.Errorf("place %d: %+v", i, tr)
			}
			if wrote[tr.Seq] != 1 {
				t.Errorf("number %d was written %d times", tr.Seq, wrote[tr.Seq])
			}
		}
	})
}

func ctxDone(ctx context.Context) bool { return ctx.Err() != nil }

// A writer that found the log elsewhere writes nothing of its batch.
func TestWhoComesTooLateWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		next := write(t, s, log, seen(5, "n", "o", []string{"u1"}, jobs.Running))
		for name, from := range map[string]Log{"version": {ID: log.ID, Version: 4, Seq: next.Seq}, "number": {ID: log.ID, Version: 5, Seq: 0}} {
			if _, err := s.Write(t.Context(), from, seen(6, "n", "o", []string{"u2"}, jobs.Running)); !errors.Is(err, ErrMoved) || CauseOf(err) != CauseMoved {
				t.Errorf("from another %s: %v", name, err)
			}
		}
		if all, err := s.Jobs(t.Context(), log, Filter{}, JobAfter{}, 10); err != nil || len(all) != 1 {
			t.Errorf("%d jobs, %v", len(all), err)
		}
		if found, err := s.Find(t.Context(), jobLog); err != nil || found != next {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// A lease is one holder's until it is released or ends; it can be renewed.
func TestALeaseIsOneHolders(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		take(t, s, "a")
		take(t, s, "a")
		if _, err := s.Take(t.Context(), jobLog, "default", "b", time.Minute); !errors.Is(err, ErrHeld) {
			t.Errorf("while it is another's: %v", err)
		}
		if err := s.Release(t.Context(), jobLog, "b"); err != nil { // which is not b's to give up
			t.Error(err)
		}
		if _, err := s.Take(t.Context(), jobLog, "default", "b", time.Minute); !errors.Is(err, ErrHeld) {
			t.Errorf("after a release by who does not hold it: %v", err)
		}
		if err := s.Release(t.Context(), jobLog, "a"); err != nil {
			t.Error(err)
		}
		if _, err := s.Take(t.Context(), jobLog, "default", "b", -time.Second); err != nil { // which ends at once
			t.Errorf("after the release: %v", err)
		}
		take(t, s, "a")
		if _, err := s.Find(t.Context(), LogName{"c2", "jobs.batch"}); !errors.Is(err, ErrNoLog) {
			t.Errorf("a log that nobody began: %v", err)
		}
	})
}

// Replicas that start at once bring up the schema once.
func TestReplicasThatStartAtOnceMigrateOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, address string) {
		first := openAt(t, address)
		if err := first.Check(t.Context()); !errors.Is(err, ErrOlder) || CauseOf(err) != CauseSchema {
			t.Errorf("an empty database: %v", err)
		}
		var starting sync.WaitGroup
		for range 5 {
			s := openAt(t, address)
			starting.Go(func() {
				if err := s.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		starting.Wait()
		if err := first.Check(t.Context()); err != nil {
			t.Error(err)
		}
		// What broke off in the middle is begun again.
		for _, statement := range []string{"UPDATE history_schema SET version = 0", "DROP TABLE transitions", "DROP INDEX jobs_queue"} {
			if strings.HasPrefix(statement, "DROP INDEX") && strings.HasPrefix(address, "mysql:") {
				statement += " ON jobs"
			}
			if _, err := first.writes.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(first.Migrate(t.Context()), first.Check(t.Context())); err != nil {
			t.Errorf("after a migration that broke off: %v", err)
		}
		if _, err := first.writes.ExecContext(t.Context(), "UPDATE history_schema SET version = 99, readable_from = 98, changed_by = 'v9'"); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{"Migrate": first.Migrate(t.Context()), "Check": first.Check(t.Context())} {
			if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), fmt.Sprintf("version 99, for gateways that know 98 or more, and this one knows %d: run release v9", len(migrations))) {
				t.Errorf("%s of a newer schema: %v", what, err)
			}
		}
	})
}

// Pages go on where they ended, whatever was written since, and each filter finds what it should and nothing else.
func TestPagesAndFilters(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		log = write(t, s, log, seen(5, "team-a", "ann", numbered("a", 30), jobs.Running))
		log = write(t, s, log, seen(6, "team-b", "ann ", numbered("b", 30), jobs.Running, jobs.Failed))
		log = write(t, s, log, seen(7, "Team-b", "Ann", numbered("c", 30), jobs.Pending))
		var all []string
		for after := (JobAfter{}); ; {
			page, err := s.Jobs(t.Context(), log, Filter{}, after, 7)
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range page {
				all = append(all, j.UID)
			}
			if len(page) < 7 {
				break
			}
			after = JobAfter{page[6].Created, page[6].UID}
			if len(all) == 14 {
				newer := seen(8, "team-a", "ann", []string{"d"}, jobs.Running)
				newer.Jobs[0].Created, newer.Jobs[0].Since = 1_000_000, 1_000_000
				log = write(t, s, log, newer)
			}
		}
		distinct := slices.Compact(slices.Sorted(slices.Values(all)))
		if len(all) != 90 || len(distinct) != 90 || slices.Contains(all, "d") {
			t.Errorf("%d jobs on all pages, %d of them distinct", len(all), len(distinct))
		}
		for name, test := range map[string]struct {
			filter            Filter
			jobs, transitions int
		}{
			"all":           {Filter{}, 91, 121},
			"nothing":       {Filter{Within: []NamespacedName{}}, 0, 0},
			"a namespace":   {Filter{Within: []NamespacedName{{"team-b", ""}}}, 30, 60},
			"two":           {Filter{Within: []NamespacedName{{"team-b", ""}, {"team-a", ""}}}, 61, 91},
			"names":         {Filter{Within: []NamespacedName{{"team-b", "name-b001"}, {"team-a", "name-b002"}, {"Team-b", ""}}}, 31, 32},
			"a name in any": {Filter{Within: []NamespacedName{{"*", "name-c001"}}}, 1, 1},
			"everything":    {Filter{Within: []NamespacedName{{"*", ""}, {"x", "y"}}}, 91, 121},
			"an owner":      {Filter{Owners: []string{"ann"}}, 31, 31}, // neither Ann nor one with a space
			"owners":        {Filter{Owners: []string{"ann", "Ann"}}, 61, 61},
			"a state":       {Filter{States: []jobs.State{jobs.Running}}, 31, 61},
			"states":        {Filter{States: []jobs.State{jobs.Failed, jobs.Pending}}, 60, 60},
			"a uid":         {Filter{UIDs: []string{"b003"}}, 1, 2},
			"a queue":       {Filter{Queues: []string{"Q"}}, 0, 0},
			"a time":        {Filter{Since: 2000, Until: 2050}, 15, 21},
			"a quote":       {Filter{Owners: []string{`' OR 1=1 --`}}, 0, 0},
		} {
			found, err := s.Jobs(t.Context(), log, test.filter, JobAfter{}, 1000)
			transitions, err2 := s.Transitions(t.Context(), log, test.filter, 0, 1000)
			if err != nil || err2 != nil || len(found) != test.jobs || len(transitions) != test.transitions {
				t.Errorf("%s: %d jobs and %d transitions, %v %v; not %d and %d", name, len(found), len(transitions), err, err2, test.jobs, test.transitions)
			}
			if !slices.IsSortedFunc(transitions, func(a, b *jobs.Transition) int { return int(b.Seq) - int(a.Seq) }) {
				t.Errorf("%s: the newest is not first", name)
			}
		}
		if page, err := s.Transitions(t.Context(), log, Filter{}, 100, 5); err != nil || len(page) != 5 || page[0].Seq != 99 || page[4].Seq != 95 {
			t.Errorf("%v, %v", page, err)
		}
	})
}

// What was deleted long ago is removed in small pieces, and what position that makes too old is
// remembered; what still is in the cluster stays.
func TestWhatWasDeletedLongAgoIsRemoved(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		log = write(t, s, log, seen(5, "n", "o", numbered("gone", 25), jobs.Running, jobs.Deleted))
		log = write(t, s, log, seen(6, "n", "o", numbered("ended", 5), jobs.Running, jobs.Succeeded))
		later := seen(7, "n", "o", []string{"later"}, jobs.Running, jobs.Deleted)
		later.Jobs[0].Deleted = 10_000
		log = write(t, s, log, later)
		for _, want := range []int{10, 10, 5, 0} {
			if n, err := s.Expire(t.Context(), log, 5_000, 10); n.Jobs != want || n.Transitions != 2*want || n.More != (want == 10) || err != nil {
				t.Fatalf("%+v removed, %v, not %d jobs", n, err, want)
			}
		}
		found, err := s.Find(t.Context(), jobLog)
		if want := log; err != nil {
			t.Fatal(err)
		} else if want.Expired = 50; found != want {
			t.Errorf("%+v, not %+v", found, want)
		}
		left, err := s.Jobs(t.Context(), log, Filter{}, JobAfter{}, 100)
		transitions, err2 := s.Transitions(t.Context(), log, Filter{}, 0, 100)
		if err != nil || err2 != nil || len(left) != 6 || len(transitions) != 12 {
			t.Errorf("%d jobs, %d transitions, %v %v", len(left), len(transitions), err, err2)
		}
		write(t, s, log, seen(8, "n", "o", []string{"next"}, jobs.Running)) // which retention does not disturb
	})
}

// An address that cannot be meant is refused before anything is connected to, without telling a password.
func TestAddressesThatCannotBeMeant(t *testing.T) {
	dir := t.TempDir()
	noCertificate := filepath.Join(dir, "ca")
	if err := os.WriteFile(noCertificate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, opts := range map[string]Options{
		"needs a state directory": {Address: "sqlite"},
		"three slashes":           {Address: "sqlite://path/file"},
		`scheme "oracle"`:         {Address: "oracle://x"},
		`scheme ""`:               {Address: "nonsense"},
		"one of them is too many": {Address: "postgres://u:secret@h/d", PasswordFile: "f"},
		"takes no passwordFile":   {Address: "sqlite:///f", PasswordFile: "f"},
		"a host and a database":   {Address: "mysql://u@h"},
		"the parameter x=y":       {Address: "mysql://u:secret@h/d?x=y"},
		"no such file":            {Address: "mysql://u@h/d?ca=" + dir + "/none"},
		"holds no certificate":    {Address: "mysql://u@h/d?ca=" + noCertificate},
		"is no address":           {Address: "postgres://u:secret@h:port%zz/d"},
		"cannot parse":            {Address: "postgres://u:secret@h/d?sslmode=perhaps"},
	} {
		s, err := New(opts)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, not %s", opts.Address, err, want)
		}
		if s != nil {
			t.Errorf("%s: is opened", opts.Address)
		}
	}
}

// What is wrong in the world is told by a cause, and heals when it is put right.
func TestWhatIsWrongWithADatabaseIsTold(t *testing.T) {
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	say := func(text string) {
		if err := os.WriteFile(password, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("MariaDB's password", func(t *testing.T) {
		dbtest.Maria.Database(t)
		dbtest.Maria.Exec(t, "CREATE DATABASE secrets")
		dbtest.Maria.Exec(t, "CREATE USER 'kc'@'%' IDENTIFIED BY 'right'")
		dbtest.Maria.Exec(t, "GRANT ALL ON secrets.* TO 'kc'@'%'")
		s, err := New(Options{Address: dbtest.Maria.Address("secrets", "kc", ""), PasswordFile: password})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		say("wrong")
		if err := s.Migrate(t.Context()); CauseOf(err) != CausePassword {
			t.Errorf("%v is taken for %s", err, CauseOf(err))
		}
		say("right\n")
		if err := s.Migrate(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		address := dbtest.PostgreSQL.Database(t)
		s := openAt(t, address)
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		readOnly := openAt(t, address+"&default_transaction_read_only=on")
		if _, err := readOnly.Take(t.Context(), jobLog, "p", "h", time.Minute); CauseOf(err) != CauseReadOnly {
			t.Errorf("%v is taken for %s", err, CauseOf(err))
		}
		stranger := openAt(t, strings.Replace(address, "root@", "nobody@", 1))
		if err := stranger.Check(t.Context()); CauseOf(err) != CausePassword {
			t.Errorf("%v is taken for %s", err, CauseOf(err))
		}
		log := take(t, s, "a")
		dbtest.PostgreSQL.Kill()
		if _, err := s.Write(t.Context(), log, seen(5, "n", "o", []string{"u"}, jobs.Running)); err == nil || CauseOf(err) != CauseAway {
			t.Errorf("%v is taken for %s", err, CauseOf(err))
		}
		if err := dbtest.PostgreSQL.Up(); err != nil {
			t.Fatal(err)
		}
		var err error
		for range 10 { // as many as connections may have been kept
			if _, err = s.Write(t.Context(), log, seen(5, "n", "o", []string{"u"}, jobs.Running)); err == nil {
				break
			}
		}
		if err != nil {
			t.Errorf("after it came back: %v", err)
		}
	})
	t.Run("SQLite", func(t *testing.T) {
		if err := openAt(t, "sqlite://"+dir+"/none/file").Migrate(t.Context()); err == nil || CauseOf(err) != CauseAway {
			t.Errorf("%v is taken for %s", err, CauseOf(err))
		}
		s := openAt(t, "sqlite://"+dir+"/full")
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := take(t, s, "a")
		s.writes.SetMaxOpenConns(1) // or the pragma is another connection's
		if _, err := s.writes.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil {
			t.Fatal(err)
		}
		b := seen(5, "n", "o", numbered("u", 2000), jobs.Running)
		if _, err := s.Write(t.Context(), log, b); CauseOf(err) != CauseFull {
			t.Errorf("%v is taken for %s", err, CauseOf(err))
		}
		if _, err := s.writes.ExecContext(t.Context(), "PRAGMA max_page_count = 1000000"); err != nil {
			t.Fatal(err)
		}
		write(t, s, log, b)
	})
}

// What nobody records any more is forgotten little by little, and what somebody records or has recorded lately is not.
func TestALogThatNobodyRecordsIsForgotten(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		other, err := s.Take(t.Context(), LogName{"c2", "jobs.batch"}, "other", "a", 2*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		write(t, s, other, seen(5, "n", "o", []string{"u001"}, jobs.Running))
		log := write(t, s, take(t, s, "a"), seen(5, "n", "o", numbered("u", 7), jobs.Running, jobs.Deleted))
		hence := func(d time.Duration) jobs.Time { return jobs.At(time.Now().Add(d)) }
		for when, since := range map[string]jobs.Time{"written to": hence(-time.Hour), "held": hence(30 * time.Second)} {
			unused, err := s.Unused(t.Context(), since)
			if err != nil || len(unused) != 0 {
				t.Errorf("%s: %v, %v", when, unused, err)
			}
			if n, err := s.Forget(t.Context(), log, since, 100); err != nil || n != (Removed{}) {
				t.Errorf("%s: %+v are forgotten, %v", when, n, err)
			}
		}
		since := hence(time.Hour)
		unused, err := s.Unused(t.Context(), since)
		if err != nil || len(unused) != 1 || unused[0].LogName != jobLog || unused[0].People != "default" {
			t.Fatalf("%+v, %v", unused, err)
		}
		for _, want := range []int{3, 3, 1, 0} {
			if n, err := s.Forget(t.Context(), unused[0].Log, since, 3); err != nil || n.Jobs != want || n.Transitions != 2*want || n.More != (want == 3) {
				t.Errorf("%+v are forgotten, not %d jobs: %v", n, want, err)
			}
		}
		if _, err := s.Find(t.Context(), jobLog); !errors.Is(err, ErrNoLog) {
			t.Errorf("%v", err)
		}
		if left, err := s.Jobs(t.Context(), other, Filter{}, JobAfter{}, 10); err != nil || len(left) != 1 {
			t.Errorf("%d jobs of another log are left, %v", len(left), err)
		}
		if log, err := s.Take(t.Context(), jobLog, "default", "a", time.Minute); err != nil || log.Seq != 0 {
			t.Errorf("who begins anew finds %+v, %v", log, err)
		}
	})
}

// PostgreSQL gets a column as an array if it can, and NULL for one of nothing else. Of a column of
// other types, rows come as they are.
func TestRowsOfAnyTypesAreInserted(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		if err := s.Transact(t.Context(), func(tx *Tx) error {
			if _, err := tx.Exec(t.Context(), "CREATE TABLE anything (id INTEGER PRIMARY KEY, said VARCHAR(20), many BIGINT, share FLOAT)"); err != nil {
				return err
			}
			id := 0
			for _, row := range [][]any{{"a", nil, nil}, {nil, int64(5), nil}, {nil, nil, 0.5}, {"b", 6, 1.5}} {
				var rows [][]any
				for range 2 {
					id++
					rows = append(rows, append([]any{id}, row...))
				}
				if err := tx.Insert(t.Context(), "anything", []string{"id", "said", "many", "share"}, append(rows, rows[0]), []string{"id"}, nil); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		var rows, texts, sum int
		var shares float64
		if err := s.QueryRow(t.Context(), "SELECT COUNT(*), COUNT(said), SUM(many), SUM(share) FROM anything").Scan(&rows, &texts, &sum, &shares); err != nil {
			t.Fatal(err)
		}
		if rows != 8 || texts != 4 || sum != 22 || shares != 4 {
			t.Errorf("%d rows, %d texts, %d, %g", rows, texts, sum, shares)
		}
	})
}
