package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubecast/kubecast/internal/jobs"
)

func takePods(t testing.TB, s *Store) Log {
	t.Helper()
	log, err := s.Take(t.Context(), LogName{Cluster: jobLog.Cluster, Resource: RunsResource}, "default", "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// podOf is the run of a pod of a job.
func podOf(pod string, of int64, job string, created jobs.Time) *Run {
	return &Run{Of: of, Owner: "ann", Queue: "q", Run: &jobs.Run{
		ObjectID: jobs.ObjectID{UID: pod, Namespace: "n", Name: "pod-" + pod}, Job: jobs.Ref{Resource: "jobs.batch", Name: "name-" + job, UID: job},
		Created: created, Requests: map[string]string{"cpu": "2"},
	}}
}

func podUIDs(runs []*Run) (uids []string) {
	for _, r := range runs {
		uids = append(uids, r.UID)
	}
	return uids
}

// What is written of a pod is found again as it was, once, whatever is in it; a run whose job
// becomes known is nowhere else any more.
func TestRunsAreFoundAgainAndMoveToTheirJobs(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx, log, pods := t.Context(), take(t, s, "a"), takePods(t, s)
		code, signal := int64(137), int64(9)
		full := podOf("full", log.ID, "u", 1000)
		full.NamespaceUID, full.Version, full.Index, full.Node, full.Scheduled, full.Started, full.Ended = "ns", 1<<62, "worker-0", "gpu-07", 1001, 1002, 1003
		full.Restarts, full.Reason, full.Message, full.Container, full.ExitCode, full.Signal, full.Late = 3, jobs.OOMKilled, "ä'\"\\?$1", "main", &code, &signal, true
		full.EndVersion = 1<<62 - 1
		full.Devices = []jobs.Device{{Driver: "gpu.example.com", Pool: "p", Device: "0"}}
		bare, waits := podOf("bare", log.ID, "u", 1000), podOf("waits", 0, "later", 1000)
		bare.Requests = map[string]string{}
		pods = write(t, s, pods, Batch{To: 5, Runs: []*Run{full, bare, waits}})
		if pods.Seq != 3 || pods.Version != 5 {
			t.Fatalf("%+v", pods)
		}
		full.Seq, bare.Seq, waits.Seq, waits.Parked = 1, 2, 3, true
		living, err := s.LivingRuns(ctx, pods)
		byUID := func(a, b *Run) int { return strings.Compare(a.UID, b.UID) }
		slices.SortFunc(living, byUID)
		if diff := cmp.Diff([]*Run{bare, full, waits}, living); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
		after, err := s.RunsAfter(ctx, log, Filter{}, 0, 100, 100)
		if diff := cmp.Diff([]*Run{full, bare}, after); err != nil || diff != "" {
			t.Errorf("a run is shown whose job is not known: %v %s", err, diff)
		}
		again := podOf("waits", log.ID, "later", 1000)
		again.Parked, again.Gone = true, 2000
		pods = write(t, s, pods, Batch{To: 6, Runs: []*Run{again}, Gone: []Gone{{Pod: "bare", Of: log.ID, At: 2000}}})
		if living, err = s.LivingRuns(ctx, pods); err != nil || !slices.Equal(podUIDs(living), []string{"full"}) {
			t.Errorf("%v live, %v", podUIDs(living), err)
		}
		after, err = s.RunsAfter(ctx, log, Filter{}, 0, 100, 100)
		if err != nil || !slices.Equal(podUIDs(after), []string{"full", "bare", "waits"}) || after[2].Seq != 4 || after[1].Seq != 2 {
			t.Errorf("%v, %v", podUIDs(after), err)
		}
		var rows int
		if err := s.QueryRow(ctx, "SELECT COUNT(*) FROM runs").Scan(&rows); err != nil || rows != 3 {
			t.Errorf("%d rows, %v", rows, err)
		}
		if _, err := s.Write(ctx, Log{LogName: pods.LogName, ID: pods.ID, Version: 5, Seq: 3}, Batch{To: 9, Runs: []*Run{podOf("second", log.ID, "u", 1)}}); !errors.Is(err, ErrMoved) {
			t.Errorf("a second writer: %v", err)
		}
		there := seen(5, "n", "ann", []string{"u", "gone"}, jobs.Running)
		there.Jobs[1].State, there.Jobs[1].Deleted = jobs.Deleted, 900
		log = write(t, s, log, there)
		found, err := s.JobsOf(ctx, jobLog.Cluster, map[string][]string{"jobs.batch": {"u", "gone", "none"}, "jobsets.x": {"u"}})
		if want := map[jobs.Ref]OwningJob{
			{Resource: "jobs.batch", Name: "name-u", UID: "u"}:       {Of: log.ID, Namespace: "n", Owner: "ann", Queue: "q"},
			{Resource: "jobs.batch", Name: "name-gone", UID: "gone"}: {Of: log.ID, Namespace: "n", Owner: "ann", Queue: "q", Deleted: 900},
		}; err != nil || cmp.Diff(want, found) != "" {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// Of a run that is written again a database may write less than all; each of its fields is as it
// was written last, for itself and together with others.
func TestEachFieldOfARunIsAsItWasWrittenLast(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log, pods := take(t, s, "a"), takePods(t, s)
		r := podOf("pod", log.ID, "u", 1000)
		code, signal := int64(1), int64(15)
		for n, change := range []func(){
			func() {}, // the first time
			func() { r.NamespaceUID = "ns" }, func() { r.Name = "other" }, func() { r.Job.Name = "other" }, func() { r.Job.UID = "v" }, func() { r.Job.Resource = "jobsets.x" },
			func() { r.Version++ }, func() { r.EndVersion = 7 }, func() { r.Index = "1" }, func() { r.Node = "a" }, func() { r.Created++ }, func() { r.Scheduled = 1 }, func() { r.Started = 2 },
			func() { r.Ended = 3 }, func() { r.Restarts++ }, func() { r.Reason = jobs.Evicted }, func() { r.Message = "m" }, func() { r.Container = "c" },
			func() { r.ExitCode = &code }, func() { r.Signal = &signal }, func() { r.Requests = map[string]string{"cpu": "3"} },
			func() { r.Devices = []jobs.Device{{Driver: "d"}} }, func() { r.Owner = "bob" }, func() { r.Queue = "other" }, func() { r.Late = true }, func() { r.Gone = 9 },
			func() { r.Node, r.Queue = "b", "third" },
		} {
			change()
			pods = write(t, s, pods, Batch{To: pods.Version + 1, Runs: []*Run{r}})
			want := *r
			want.Seq = pods.Seq
			for _, f := range []Filter{{}, {Owners: []string{r.Owner}}, {Queues: []string{r.Queue}}, {UIDs: []string{r.Job.UID}}} {
				found, err := s.RunsAfter(t.Context(), log, f, 0, 100, 100)
				if diff := cmp.Diff([]*Run{&want}, found); err != nil || diff != "" {
					t.Fatalf("after change %d, by %+v: %v %s", n, f, err, diff)
				}
			}
		}
		if s.dialect.rewritesIndexes() {
			var said string
			if err := s.QueryRow(t.Context(), "PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
				t.Errorf("%s, %v", said, err)
			}
		}
	})
}

// Whoever makes pods can name jobs that there never were, ever so many, and later than anybody.
// After a restart the recorder looks for the jobs of others' pods all the same.
func TestInventedJobsOfOneNamespaceLeaveOthersTheirsAfterARestart(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.parked = 20
		pods := takePods(t, s)
		parked := func(namespace, uid string, created jobs.Time, gone jobs.Time) *Run {
			r := podOf(uid, 0, "job-of-"+uid, created)
			r.Namespace, r.Gone = namespace, gone
			return r
		}
		is := func(when string, want map[string]int, newest ...string) {
			t.Helper()
			found, err := s.LivingRuns(t.Context(), pods)
			if err != nil {
				t.Fatal(err)
			}
			of := map[string]int{}
			for _, r := range found {
				of[r.Namespace]++
				if i := slices.Index(newest, r.UID); i >= 0 {
					newest = slices.Delete(newest, i, i+1)
				}
				if r.Of != 0 || !r.Parked {
					t.Errorf("%s: %+v", when, r)
				}
			}
			if !maps.Equal(of, want) || len(newest) > 0 {
				t.Errorf("%s: %v, not %v; without %v", when, of, want, newest)
			}
		}
		b := Batch{To: 1}
		for i := range 3 {
			b.Runs = append(b.Runs, parked("alice", fmt.Sprint("a", i), jobs.Time(100+i), 900))
		}
		for i := range 12 {
			b.Runs = append(b.Runs, parked("bob", fmt.Sprintf("b%02d", i), jobs.Time(100+i), 900))
		}
		b.Runs = append(b.Runs, parked("alice", "lives", 50, 0))
		pods = write(t, s, pods, b)
		is("few", map[string]int{"alice": 4, "bob": 12})
		b = Batch{To: 2}
		for i := range 100 {
			b.Runs = append(b.Runs, parked("mallory", fmt.Sprintf("m%02d", i), jobs.Time(1000+i), 2000))
		}
		pods = write(t, s, pods, b)
		is("many", map[string]int{"alice": 4, "bob": 8, "mallory": 9}, "a0", "b11", "b04", "m99", "m91")
	})
}

// Whatever is asked for, and wherever a page begins, it has what is found by looking at each run;
// and in memory a filter means the same.
func TestPagesOfRunsHaveWhatLookingAtEachFinds(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.window = 30
		random, log, pods := rand.New(rand.NewPCG(5, 1)), take(t, s, "a"), takePods(t, s)
		all := map[string]*Run{}
		for batch := range 6 {
			b := Batch{To: uint64(batch + 1)}
			there := map[string]bool{}
			for range 250 {
				uid, job := fmt.Sprintf("p%d", random.IntN(1000)), fmt.Sprintf("u%d", random.IntN(300))
				if there[uid] {
					continue
				}
				there[uid] = true
				r := podOf(uid, log.ID, job, jobs.Time(random.IntN(5000)/50*50))
				if was := all[uid]; was != nil {
					r.Run, r.Owner, r.Queue = was.Run, was.Owner, was.Queue
				} else {
					r.Job.Name, r.Namespace, r.Owner, r.Queue = "n"+job, "rare", "robot", "q"
					if random.IntN(8) > 0 {
						r.Namespace, r.Queue = fmt.Sprintf("n%d", random.IntN(3)), ""
					}
					if random.IntN(4) == 0 {
						r.Owner = fmt.Sprintf("user%d", random.IntN(200))
					}
					r.NamespaceUID = []string{"", "living " + r.Namespace, "former " + r.Namespace}[random.IntN(3)]
				}
				all[uid], b.Runs = r, append(b.Runs, r)
			}
			pods = write(t, s, pods, b)
		}
		for i := range 80 {
			f := anyFilter(random)
			if f.States = nil; i%3 == 0 {
				f.Within, f.Living = []NamespacedName{{Namespace: "n0"}, {Namespace: "n1"}}, []Namespace{{"n0", "living n0", 2500}, {"n1", "other", 1000}}
			}
			var want []*Run
			for _, r := range all {
				if f.MatchesRun(r) {
					want = append(want, r)
				}
			}
			slices.SortFunc(want, func(a, b *Run) int {
				if a.Created != b.Created {
					return int(b.Created - a.Created)
				}
				return strings.Compare(b.UID, a.UID)
			})
			var got []*Run
			for after, limit := (RunAfter{}), 1+random.IntN(40); ; {
				page, err := s.Runs(t.Context(), log, f, after, limit)
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, page...); len(page) < limit {
					break
				}
				after = RunAfter{page[limit-1].Created, page[limit-1].UID}
			}
			if !slices.Equal(podUIDs(got), podUIDs(want)) {
				t.Fatalf("%+v: %d runs, not %d", f, len(got), len(want))
			}
			told, err := s.RunsAfter(t.Context(), log, f, 0, pods.Seq, 5000)
			if err != nil || len(told) != len(want) || !slices.IsSortedFunc(told, func(a, b *Run) int { return int(a.Seq) - int(b.Seq) }) {
				t.Fatalf("%+v: %d runs in order, not %d: %v", f, len(told), len(want), err)
			}
		}
	})
}

// Whatever number of pods a job had, they go with it, in pieces, and a position before the last
// that is removed is too old. Those of other jobs stay. Somebody writes meanwhile.
func TestManyPodsOfAJobAreRemovedInPieces(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx, log, pods := t.Context(), take(t, s, "a"), takePods(t, s)
		log = write(t, s, log, seen(5, "n", "o", []string{"big", "small"}, jobs.Running, jobs.Deleted))
		log = write(t, s, log, seen(6, "n", "o", []string{"stays"}, jobs.Running))
		var runs []*Run
		for i := range 2500 {
			runs = append(runs, podOf(fmt.Sprintf("big-%04d", i), log.ID, "big", jobs.Time(i)))
		}
		never := podOf("never", 0, "nobody", 1)
		never.Gone = 4000
		runs = append(runs, podOf("small-1", log.ID, "small", 1), never, podOf("parked", 0, "nobody", 1), podOf("stays-1", log.ID, "stays", 1))
		for part := range slices.Chunk(runs, 500) {
			pods = write(t, s, pods, Batch{To: pods.Version + 1, Runs: part})
		}
		writing, stop := context.WithCancel(ctx)
		var running sync.WaitGroup
		running.Go(func() {
			for i := 0; writing.Err() == nil; i++ {
				next, err := s.For(Recorder("pods")).Write(ctx, pods, Batch{To: pods.Version + 1, Runs: []*Run{podOf(fmt.Sprintf("more-%d", i), log.ID, []string{"big", "stays"}[i%2], 1), podOf(fmt.Sprintf("big-%04d", i%2500), log.ID, "big", 1)}})
				if err != nil {
					t.Error(err)
					return
				}
				pods = next
			}
		})
		total, calls := Removed{More: true}, 0
		for total.More && calls < 50 {
			n, err := s.Expire(ctx, log, 5000, 10)
			if err != nil {
				t.Error(err)
				break
			}
			if n.Runs > runsAtOnceRemoved {
				t.Errorf("%d runs at once", n.Runs)
			}
			total, calls = Removed{total.Jobs + n.Jobs, total.Transitions + n.Transitions, total.Runs + n.Runs, n.More}, calls+1
		}
		stop()
		running.Wait()
		if total.Jobs != 2 || total.Transitions != 4 || total.Runs < 2501 || calls < 3 {
			t.Errorf("%+v removed in %d calls", total, calls)
		}
		found, err := s.Find(ctx, pods.LogName)
		if err != nil || found.Expired == 0 || found.Expired > found.Seq || found.Seq != pods.Seq {
			t.Errorf("%+v, %v", found, err)
		}
		if n, err := s.Expire(ctx, pods, 5000, 10); err != nil || n != (Removed{Runs: 1}) {
			t.Errorf("of pods without a job %+v are removed, %v", n, err)
		}
		left, err := s.Runs(ctx, log, Filter{UIDs: []string{"stays"}}, RunAfter{}, 10)
		if err != nil || !slices.Contains(podUIDs(left), "stays-1") {
			t.Errorf("%v, %v", podUIDs(left), err)
		}
		for name, unused := range map[string]Log{"jobs": log, "pods": pods} {
			if err := s.Release(ctx, unused.LogName, "a"); err != nil {
				t.Fatal(err)
			}
			for calls = 0; calls < 20; calls++ {
				n, err := s.Forget(ctx, unused, jobs.At(time.Now().Add(time.Hour)), 10)
				if err != nil {
					t.Fatal(name, err)
				}
				if !n.More {
					break
				}
			}
		}
		var rows int
		if err := s.QueryRow(ctx, "SELECT COUNT(*) FROM runs").Scan(&rows); err != nil || rows != 0 {
			t.Errorf("%d rows are left of logs that are forgotten, %v", rows, err)
		}
	})
}

// Nobody records pods for as long as anything is kept, and then somebody does again: the numbers
// begin anew, so nothing may be left that has one of the old ones.
func TestALogOfPodsThatIsForgottenLeavesNoNumbersBehind(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx, log, former := t.Context(), take(t, s, "a"), takePods(t, s)
		log = write(t, s, log, seen(5, "n", "o", []string{"u"}, jobs.Running))
		for range 3 {
			var runs []*Run
			for range 500 {
				runs = append(runs, podOf(fmt.Sprintf("former-%d", former.Seq+uint64(len(runs))), log.ID, "u", 1))
			}
			former = write(t, s, former, Batch{To: former.Version + 1, Runs: runs})
		}
		if err := s.Release(ctx, former.LogName, "a"); err != nil {
			t.Fatal(err)
		}
		removed := Removed{More: true}
		for calls := 0; removed.More && calls < 20; calls++ {
			n, err := s.Forget(ctx, former, jobs.At(time.Now().Add(time.Hour)), 10)
			if err != nil || n.Runs > runsAtOnceRemoved {
				t.Fatal(n, err)
			}
			removed = Removed{Runs: removed.Runs + n.Runs, More: n.More}
		}
		if removed.Runs != 1500 {
			t.Errorf("%d runs are removed", removed.Runs)
		}
		pods := takePods(t, s)
		pods = write(t, s, pods, Batch{To: 1, Runs: []*Run{podOf("new", log.ID, "u", 1)}})
		told, err := s.RunsAfter(ctx, log, Filter{}, 0, pods.Seq, 100)
		if err != nil || !slices.Equal(podUIDs(told), []string{"new"}) {
			t.Errorf("up to number %d of another log, %v are told, %v", pods.Seq, podUIDs(told), err)
		}
		if found, err := s.Jobs(ctx, log, Filter{}, JobAfter{}, 10); err != nil || len(found) != 1 {
			t.Errorf("%d jobs are left, %v", len(found), err)
		}
	})
}

// A pod outlives its job, and changes just when that is removed: no run is left without its job,
// which nobody would ever remove.
func TestARunThatIsWrittenWhileItsJobIsRemovedGoesWithIt(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx, log, pods := t.Context(), take(t, s, "a"), takePods(t, s)
		log = write(t, s, log, seen(5, "n", "o", []string{"u"}, jobs.Running, jobs.Deleted))
		pods = write(t, s, pods, Batch{To: 5, Runs: []*Run{podOf("before", log.ID, "u", 1)}})
		var expiring sync.WaitGroup
		defer expiring.Wait()
		if err := s.For(Recorder("pods")).Transact(ctx, func(tx *Tx) error {
			if _, err := s.writeIn(ctx, tx, pods, Batch{To: 6, Runs: []*Run{podOf("meanwhile", log.ID, "u", 1)}}); err != nil {
				return err
			}
			looked := make(chan struct{})
			look := sync.OnceFunc(func() { close(looked) })
			retention := s.For(System("retention"))
			retention.asked = func(query string, _ []any) {
				if strings.Contains(query, "FROM runs") {
					look()
				}
			}
			expiring.Go(func() {
				if n, err := retention.Expire(ctx, log, 5000, 10); err != nil || n.Jobs != 1 {
					t.Errorf("%+v, %v", n, err)
				}
			})
			<-looked
			time.Sleep(200 * time.Millisecond) // it has read by then; if not, this test proves less
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		expiring.Wait()
		if left, err := s.Runs(t.Context(), log, Filter{}, RunAfter{}, 10); err != nil || len(left) != 0 {
			t.Errorf("%v are left, %v", podUIDs(left), err)
		}
	})
}
