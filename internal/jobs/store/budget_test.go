package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// noise is so many bytes as they are kept; nothing makes them fewer.
func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(data) // it never fails
	return data
}

// onBudget is a database with a budget, and a log of it.
func onBudget(t *testing.T, address string, budget int64, of LogName) (*Store, Log) {
	t.Helper()
	s, err := New(Options{Address: address, KeepBudget: budget})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	log, err := s.Take(t.Context(), of, "default", "a", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return s, log
}

// endWith writes jobs of a namespace that ended, each with a spec of so many bytes, and tells of
// how many that was kept.
func endWith(t *testing.T, s *Store, log *Log, namespace, prefix string, jobList, bytes int) (kept int) {
	t.Helper()
	b := seen(log.Version+1, namespace, "o", numbered(prefix, jobList), jobs.Running, jobs.Succeeded)
	for _, job := range b.Jobs {
		b.Kept = append(b.Kept, Kept{UID: job.UID, Namespace: namespace, Kind: KeptSpec, At: job.Ended, Data: noise(bytes)})
	}
	*log = write(t, s, *log, b)
	for _, k := range b.Kept {
		stored, err := s.Kept(t.Context(), *log, k.UID, KeptSpec)
		if k.Over != errors.Is(err, ErrOverBudget) || !k.Over && (err != nil || len(stored.Data) != bytes) {
			t.Fatalf("%s: over: %t, %d bytes, %v", k.UID, k.Over, len(stored.Data), err)
		}
		if !k.Over {
			kept++
		}
	}
	return kept
}

// One tenant may have ever so many large jobs end, of whatever kinds, with long logs, and wait for
// restarts: what is kept of them is bounded by the day, and costs nobody else's.
func TestOneNamespaceCannotFillTheDatabaseWithWhatIsKept(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, address string) {
		const budget, each = 10_000, 1_000
		s, log := onBudget(t, address, budget, jobLog)
		is := func(when string, kept, want int) {
			t.Helper()
			if kept != want {
				t.Errorf("%s: %d are kept, not %d", when, kept, want)
			}
		}
		is("the first day", endWith(t, s, &log, "mallory", "a", 8, each), 8)
		is("another kind", func() int {
			other, err := s.Take(t.Context(), LogName{jobLog.Cluster, "jobsets.jobset.x-k8s.io"}, "default", "a", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return endWith(t, s, &other, "mallory", "set", 8, each)
		}(), 2)
		is("too much", endWith(t, s, &log, "mallory", "b", 8, each), 0)
		is("a small one", endWith(t, s, &log, "mallory", "c", 2, 1), 0)
		is("another tenant's", endWith(t, s, &log, "alice", "d", 10, each), 10)
		is("another cluster's", func() int {
			other, err := s.Take(t.Context(), LogName{"c2", jobLog.Resource}, "other", "a", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return endWith(t, s, &other, "mallory", "e", 10, each)
		}(), 10)

		again, log := onBudget(t, address, budget, jobLog)
		is("after a restart", endWith(t, again, &log, "mallory", "f", 8, each), 0)
		if err := again.Keep(t.Context(), log, Kept{UID: "f000", Namespace: "mallory", Kind: KeptLog, At: 7, Data: noise(each)}); !errors.Is(err, ErrOverBudget) {
			t.Errorf("a log of it: %v", err)
		}
		keeping, err := again.Keeps(t.Context(), log, []string{"a000", "f000"})
		if err != nil || !keeping.Has("a000", KeptSpec) || keeping.Has("f000", KeptSpec) || keeping.Has("f000", KeptLog) {
			t.Errorf("%v %v", keeping, err)
		}
		later(t, again, 12*time.Hour)
		is("half a day later", endWith(t, again, &log, "mallory", "g", 10, each), 0)
		later(t, again, 24*time.Hour)
		is("another day", endWith(t, again, &log, "mallory", "h", 6, each), 6)
		later(t, again, 20*time.Hour)
		is("less than a day later", endWith(t, again, &log, "mallory", "i", 20, each), 4)
		later(t, again, 48*time.Hour)
		if _, err := again.Expire(t.Context(), log, 0, 10); err != nil {
			t.Fatal(err)
		}
		var rows int
		if err := again.QueryRow(t.Context(), "SELECT COUNT(*) FROM kept_budgets WHERE log = ?", log.ID).Scan(&rows); err != nil || rows != 0 {
			t.Errorf("%d rows say nothing any more, %v", rows, err)
		}
	})
}

// later makes what was used up of budgets older, by whole spans.
func later(t *testing.T, s *Store, by time.Duration) {
	t.Helper()
	if err := s.Transact(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE kept_budgets SET span = span - ?", int64(by/budgetSpan))
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// Pods that end one after the other use up no more than half of their namespace's budget, under one
// row: how jobs end is kept all the same.
func TestLogsOfPodsLeaveRoomForHowJobsEnd(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, address string) {
		const budget, each = 10_000, 1_000
		s, log := onBudget(t, address, budget, jobLog)
		log = write(t, s, log, seen(5, "mallory", "o", []string{"u"}, jobs.Running, jobs.Failed))
		kept := 0
		for i := range 8 {
			err := s.Keep(t.Context(), log, Kept{UID: "u", Namespace: "mallory", Kind: KeptOfPod(fmt.Sprint("pod-", i)), At: jobs.Time(i), Data: noise(each)})
			if err == nil {
				kept++
			} else if !errors.Is(err, ErrOverBudget) {
				t.Fatal(err)
			}
		}
		var rows int
		if err := s.QueryRow(t.Context(), "SELECT COUNT(*) FROM kept_budgets WHERE namespace = 'mallory' AND bytes > 0").Scan(&rows); err != nil || kept != 5 || rows != 1 {
			t.Errorf("%d are kept, and %d rows count them, %v", kept, rows, err)
		}
		if err := s.Keep(t.Context(), log, Kept{UID: "u", Namespace: "mallory", Kind: KeptLog, At: 7, Data: noise(each)}); err != nil {
			t.Errorf("the job's own: %v", err)
		}
	})
}

// What was read of pods stays where there is no room for more, whether that is of the same pod, which is read again with
// its last words, or of others: that something was not kept takes nobody's place.
func TestWhatIsNotKeptOfPodsTakesNoLogsPlace(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, address string) {
		const budget, each = 10_000, 1_000
		s, log := onBudget(t, address, budget, jobLog)
		log = write(t, s, log, seen(5, "n", "o", []string{"u"}, jobs.Running, jobs.Failed))
		keep := func(pod string, at jobs.Time, size int) error {
			return s.Keep(t.Context(), log, Kept{UID: "u", Namespace: "n", Kind: KeptOfPod(pod), At: at, Data: noise(size)})
		}
		if err := keep("first", 1, each); err != nil {
			t.Fatal(err)
		}
		if err := keep("first", 2, 6*each); !errors.Is(err, ErrOverBudget) {
			t.Fatalf("it is read again: %v", err)
		}
		if err := keep("large", 3, 4*each); err != nil {
			t.Fatal(err)
		}
		for i := range MostPodLogs + 2 {
			if err := keep(fmt.Sprint("later-", i), jobs.Time(10+i), each); !errors.Is(err, ErrOverBudget) {
				t.Fatalf("later pod %d: %v", i, err)
			}
		}
		for pod, want := range map[string]int{"first": each, "large": 4 * each} {
			if k, err := s.Kept(t.Context(), log, "u", KeptOfPod(pod)); err != nil || len(k.Data) != want {
				t.Errorf("%d bytes are kept of the %s pod, %v", len(k.Data), pod, err)
			}
		}
		if n := rowsOfKept(t, s); n > MostPodLogs {
			t.Errorf("there are %d rows of one job's pods", n)
		}
	})
}

// A log is read several times, since more may have been written. It is paid for once, and what was
// read before stays where there is no room for more.
func TestALogThatIsReadAgainIsPaidForOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, address string) {
		s, log := onBudget(t, address, 1000, jobLog)
		log = write(t, s, log, seen(5, "n", "o", []string{"u", "v"}, jobs.Running, jobs.Failed))
		for i, test := range []struct {
			bytes int
			over  bool
			kept  int
		}{{600, false, 600}, {600, false, 600}, {900, false, 900}, {1001, true, 900}, {100, false, 100}} {
			err := s.Keep(t.Context(), log, Kept{UID: "u", Namespace: "n", Kind: KeptLog, At: 7, Data: noise(test.bytes)})
			k, failed := s.Kept(t.Context(), log, "u", KeptLog)
			if failed != nil || errors.Is(err, ErrOverBudget) != test.over || len(k.Data) != test.kept {
				t.Errorf("%d: %v; %d bytes, %v", i, err, len(k.Data), failed)
			}
		}
		if err := s.Keep(t.Context(), log, Kept{UID: "u", Namespace: "n", Kind: KeptLog, At: 8, Data: noise(500)}); !errors.Is(err, ErrOverBudget) {
			t.Error(err)
		}
		if _, err := s.Kept(t.Context(), log, "u", KeptLog); !errors.Is(err, ErrOverBudget) {
			t.Errorf("that of an earlier end is told of a later one: %v", err)
		}
	})
}

// Those who keep logs do so beside each other. What two of them use at once, both pay for.
func TestLogsThatAreKeptAtOnceAreAllPaidFor(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, address string) {
		s, log := onBudget(t, address, 20_000, jobLog)
		uids := numbered("u", 40)
		log = write(t, s, log, seen(5, "n", "o", uids, jobs.Running, jobs.Failed))
		errs := make(chan error, len(uids))
		for _, uid := range uids {
			go func() {
				errs <- s.Keep(t.Context(), log, Kept{UID: uid, Namespace: "n", Kind: KeptLog, At: 7, Data: noise(1000)})
			}()
		}
		over := 0
		for range uids {
			if err := <-errs; errors.Is(err, ErrOverBudget) {
				over++
			} else if err != nil {
				t.Error(err)
			}
		}
		if over != len(uids)/2 {
			t.Error(fmt.Sprint(over, " of ", len(uids), " had no room"))
		}
	})
}
