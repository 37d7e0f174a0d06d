package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubecast/kubecast/internal/jobs"
)

// podWorld are random jobs with pods, and what a database is told of them.
type podWorld struct {
	t         *testing.T
	s         *Store
	random    *rand.Rand
	log, pods Log
	jobs      []*jobs.Job
	runs      map[string]*Run // by pod, as they were written last
}

const worldNow = 1000 * second

// newPodWorld are random jobs, some of which were there before anybody recorded pods.
func newPodWorld(t *testing.T, s *Store, seed uint64) *podWorld {
	w := &podWorld{t: t, s: s, random: rand.New(rand.NewPCG(seed, 5)), runs: map[string]*Run{}}
	_, b := randomLives(w.random, 80, 900)
	w.log, w.jobs = write(t, s, take(t, s, "a"), b), b.Jobs
	w.pods = takePods(t, s)
	if err := s.Began(t.Context(), w.pods, 300*second); err != nil {
		t.Fatal(err)
	}
	return w
}

// live writes changes of random pods: they begin, wait for their jobs, are bound, end, or begin
// anew as those of a restored cluster.
func (w *podWorld) live() {
	b, there := Batch{To: w.pods.Version + 1}, map[string]bool{}
	for range 60 {
		job := w.jobs[w.random.IntN(len(w.jobs)*3/4)] // some have no pods
		uid := fmt.Sprintf("%s-%d", job.UID, w.random.IntN(12))
		if there[uid] {
			continue
		}
		there[uid] = true
		was, run := w.runs[uid], &jobs.Run{
			ObjectID: jobs.ObjectID{UID: uid, Namespace: job.Namespace, Name: uid}, Job: jobs.Ref{Resource: jobLog.Resource, Name: job.Name, UID: job.UID},
			Created:  job.Created + jobs.Time(w.random.IntN(50)*second),
			Requests: map[string]string{"cpu": []string{"250m", "2", "many"}[w.random.IntN(3)], "memory": "3Gi", "x.example/gpu": fmt.Sprint(w.random.IntN(2))},
		}
		if job.UID == "u3" || job.UID == "u4" {
			run.Devices = []jobs.Device{{Driver: "gpu.example.org", Pool: "p", Device: fmt.Sprint(w.random.IntN(3))}, {Driver: "net.example.org", Pool: "p", Device: "0"}}
		}
		if was != nil && w.random.IntN(8) > 0 {
			again := *was.Run
			run = &again
		}
		if run.Scheduled == 0 && w.random.IntN(3) > 0 {
			run.Scheduled = min(run.Created+jobs.Time(w.random.IntN(300)*second), worldNow)
		}
		if run.Ended == 0 && w.random.IntN(3) == 0 {
			run.Ended = max(run.Created, run.Scheduled) + jobs.Time(w.random.IntN(300)*second)
			run.Reason = []string{jobs.Completed, jobs.OOMKilled, jobs.Preempted, jobs.Removed}[w.random.IntN(4)]
		}
		next := &Run{Of: w.log.ID, Run: run}
		if was == nil && w.random.IntN(4) == 0 {
			next.Of = 0
		}
		if was != nil && was.Of == 0 {
			next.Parked = true
		}
		w.runs[uid], b.Runs = next, append(b.Runs, next)
	}
	w.pods = write(w.t, w.s, w.pods, b)
}

// of are the runs of a job that is known to them.
func (w *podWorld) of(uid string) (runs []*jobs.Run) {
	for _, pod := range slices.Sorted(maps.Keys(w.runs)) {
		if r := w.runs[pod]; r.Of != 0 && r.Job.UID == uid {
			runs = append(runs, r.Run)
		}
	}
	return runs
}

// isKnown reports whether all is known of a job: it was made after somebody began to record.
func (w *podWorld) isKnown(job *jobs.Job) bool {
	return job.Created >= 300*second || len(w.of(job.UID)) > 0
}

func (w *podWorld) check(when string) {
	w.t.Helper()
	got, err := w.s.Uses(w.t.Context(), w.log, w.jobs, worldNow)
	if err != nil {
		w.t.Fatal(err)
	}
	want := map[string]jobs.Use{}
	for _, job := range w.jobs {
		if runs := w.of(job.UID); w.isKnown(job) {
			want[job.UID] = jobs.Use{Tally: jobs.TallyOf(runs), Hours: jobs.HoursOf(jobs.HoldsOf(runs, worldNow)), Runs: int64(len(runs))}
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 1e-12)); diff != "" {
		w.t.Fatalf("%s: %s", when, diff)
	}
}

// What a job used is what its runs held, however these were written; what cannot be known is not there.
func TestWhatAJobUsedIsWhatItsRunsHeld(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		w := newPodWorld(t, s, 1)
		w.check("before any pod")
		for n := range 15 {
			w.live()
			w.check(fmt.Sprintf("after %d batches", n+1))
		}
		gone := w.random.Perm(len(w.jobs))[:5]
		for _, i := range gone { // nothing is left of those that are removed
			if _, err := s.writes.ExecContext(t.Context(), s.dialect.bind("UPDATE jobs SET deleted = 5 WHERE uid = ?"), w.jobs[i].UID); err != nil {
				t.Fatal(err)
			}
		}
		for more := true; more; {
			removed, err := s.Expire(t.Context(), w.log, 10, 100)
			if more = removed.More; err != nil {
				t.Fatal(err)
			}
		}
		for _, i := range gone {
			for _, table := range []string{"runs", "totals"} {
				var n int
				if err := s.QueryRow(t.Context(), "SELECT COUNT(*) FROM "+table+" WHERE log = ? AND uid = ?", w.log.ID, w.jobs[i].UID).Scan(&n); err != nil || n != 0 {
					t.Errorf("%d rows are left in %s, %v", n, table, err)
				}
			}
		}
		// Nobody records pods for so long that these are forgotten. Then somebody does again, and
		// the pods that are still there count once.
		if err := s.Release(t.Context(), w.pods.LogName, "a"); err != nil {
			t.Fatal(err)
		}
		for more := true; more; {
			removed, err := s.Forget(t.Context(), w.pods, jobs.At(time.Now().Add(time.Hour)), 100)
			if more = removed.More; err != nil {
				t.Fatal(err)
			}
		}
		left := w.jobs[:0:0]
		for i, job := range w.jobs {
			if !slices.Contains(gone, i) {
				left = append(left, job)
			}
		}
		w.jobs, w.runs, w.pods = left, map[string]*Run{}, takePods(t, s)
		if err := s.Began(t.Context(), w.pods, 300*second); err != nil {
			t.Fatal(err)
		}
		w.live()
		w.check("after all was forgotten")
	})
}

// Of a job without runs it is known that it had none only if somebody recorded runs for all of its life.
func TestNobodyInventsThatAJobHadNoPods(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		now := jobs.At(time.Now())
		lives := func(uid string, from, end jobs.Time) *jobs.Job {
			return &jobs.Job{ObjectID: jobs.ObjectID{UID: uid}, Created: from, Ended: end}
		}
		part := lives("part", now-1000, 0) // its pods are counted with the topmost job
		part.Parent = jobs.Ref{Resource: "trainjobs.trainer.kubeflow.org", Name: "train", UID: "train"}
		all := []*jobs.Job{lives("before", now-9000, 0), lives("since", now-1000, 0), lives("ended", now-1000, now-500), part}
		known := func(want ...string) {
			t.Helper()
			uses, err := s.Uses(t.Context(), log, all, now)
			if got := slices.Sorted(maps.Keys(uses)); err != nil || !slices.Equal(got, want) {
				t.Errorf("known are %v, not %v; %v", got, want, err)
			}
		}
		known()
		pods := takePods(t, s)
		known()
		if err := s.Began(t.Context(), pods, now-2000); err != nil {
			t.Fatal(err)
		}
		known("ended", "since")
		if _, err := s.writes.ExecContext(t.Context(), s.dialect.bind("UPDATE logs SET lease = 0, moved = ? WHERE id = ?"), int64(now-200), pods.ID); err != nil {
			t.Fatal(err)
		}
		known("ended") // nobody has looked for 200 ms
		if pods = takePods(t, s); pods.ID == 0 {
			t.Fatal(pods)
		}
		known("ended", "since") // it went on where it was
		if err := s.Began(t.Context(), pods, now-100); err != nil {
			t.Fatal(err)
		}
		known() // it did not
	})
}

// The runs of a log of pods that nobody records any more are removed little by little. Meanwhile
// nobody takes those that were removed for none.
func TestRunsThatAreForgottenAreNotTakenForNone(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		const hour = jobs.Time(3_600_000)
		now := jobs.At(time.Now())
		log, pods := take(t, s, "a"), takePods(t, s)
		if err := s.Began(t.Context(), pods, now-10*hour); err != nil {
			t.Fatal(err)
		}
		var all []*jobs.Job
		b := Batch{To: pods.Version + 1}
		for _, uid := range numbered("u", runsAtOnceRemoved+1) {
			all = append(all, &jobs.Job{ObjectID: jobs.ObjectID{UID: uid}, Created: now - 9*hour, Ended: now - 8*hour})
			b.Runs = append(b.Runs, podOf("pod of "+uid, log.ID, uid, now-9*hour))
		}
		pods = write(t, s, pods, b)
		if _, err := s.writes.ExecContext(t.Context(), s.dialect.bind("UPDATE logs SET lease = 0, moved = ? WHERE id = ?"), int64(now-hour), pods.ID); err != nil {
			t.Fatal(err)
		}
		known := func(want int) {
			t.Helper()
			uses, err := s.Uses(t.Context(), log, all, now)
			none := 0
			for _, use := range uses {
				if use.Runs == 0 {
					none++
				}
			}
			if err != nil || len(uses) != want || none > 0 {
				t.Errorf("of %d jobs it is known what they used, not of %d, and %d of them had no pod; %v", len(uses), want, none, err)
			}
		}
		known(len(all))
		if removed, err := s.Forget(t.Context(), pods, now, 10); err != nil || removed.Runs != runsAtOnceRemoved || !removed.More {
			t.Fatal(removed, err)
		}
		known(1)
	})
}

// Nobody records pods any more, so nobody writes that they ended. They count until somebody last
// looked, and not for ever.
func TestPodsThatNobodyRecordsAnyMoreDoNotCountForEver(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		const hour = jobs.Time(3_600_000)
		now := jobs.At(time.Now())
		log, pods := take(t, s, "a"), takePods(t, s)
		log = write(t, s, log, seen(7, "n", "o", []string{"train"}, jobs.Pending, jobs.Running))
		if err := s.Began(t.Context(), pods, now-10*hour); err != nil {
			t.Fatal(err)
		}
		run := podOf("one", log.ID, "train", now-3*hour)
		run.Scheduled = now - 2*hour
		write(t, s, pods, Batch{To: pods.Version + 1, Runs: []*Run{run}})
		all, err := s.Jobs(t.Context(), log, Filter{}, JobAfter{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		used := func(at jobs.Time, want float64) {
			t.Helper()
			uses, err := s.Uses(t.Context(), log, all, at)
			if got := uses["train"].Hours.CPUs; err != nil || got != want {
				t.Errorf("%v CPU hours are told, not %v; %v", got, want, err)
			}
		}
		used(now, 4)
		used(now+hour, 6)
		if _, err := s.writes.ExecContext(t.Context(), s.dialect.bind("UPDATE logs SET lease = 0, moved = ? WHERE id = ?"), int64(now-hour), pods.ID); err != nil {
			t.Fatal(err)
		}
		used(now, 2)
		used(now+24*hour, 2)
	})
}

// A page of jobs of which each had ever so many pods asks as much as one of jobs that had none.
func TestAPageOfLargeJobsReadsNoneOfTheirRuns(t *testing.T) {
	s := openAt(t, "sqlite://"+t.TempDir()+"/h.db")
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	const largeJob = 5_000
	log, pods := take(t, s, "a"), takePods(t, s)
	log = write(t, s, log, seen(7, "n", "o", []string{"large", "small"}, jobs.Pending, jobs.Running))
	var runs []*Run
	for i := range largeJob {
		r := podOf(fmt.Sprintf("large-%05d", i), log.ID, "large", 2000)
		if r.Scheduled, r.Ended, r.Reason = 10_000, 10_000+3600, jobs.Errored; i%2 == 0 {
			r.Ended = 0
		}
		runs = append(runs, r)
	}
	for part := range slices.Chunk(runs, 2000) {
		pods = write(t, s, pods, Batch{To: pods.Version + 1, Runs: part})
	}
	all, err := s.Jobs(t.Context(), log, Filter{}, JobAfter{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	s.asked = func(query string, args []any) {
		asked++
		rows, err := s.reads.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
		if err := scanEach(rows, err, func(scan Scan) error {
			var id, parent, unused int
			var step string
			err := scan(&id, &parent, &unused, &step)
			if strings.Contains(step, "runs") || strings.HasPrefix(step, "SCAN") || strings.Contains(step, "SEARCH") && !strings.Contains(step, "uid=?") && !strings.Contains(step, "logs") {
				t.Errorf("%s of %s", step, query)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	uses, err := s.Uses(t.Context(), log, all, 13_600)
	if use := uses["large"]; err != nil || use.Failures != largeJob/2 || use.Runs != largeJob || use.Hours.CPUs != 2*largeJob/1000 || asked != 2 {
		t.Errorf("%+v by %d questions, %v", use, asked, err)
	}
}

// Usage is what pods held, clipped to the span and to each step, by whatever it is summed up and
// however jobs are filtered; jobs of which nobody recorded the pods count while they were Running.
// Its parts sum up to the whole.
func TestUsageIsWhatPodsHeldInEachStep(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		w := newPodWorld(t, s, 2)
		for range 25 {
			w.live()
		}
		// One job has more pods than are read at once.
		many := Batch{To: w.pods.Version + 1}
		for i := range usageRows + 200 {
			r := podOf(fmt.Sprintf("many-%d", i), w.log.ID, w.jobs[5].UID, w.jobs[5].Created+jobs.Time(i/10)*second)
			r.Scheduled, r.Ended = r.Created+second, r.Created+2*second+jobs.Time(i)
			w.runs[r.UID], many.Runs = r, append(many.Runs, r)
		}
		w.pods = write(t, s, w.pods, many)
		held := map[string][]jobs.Hold{}
		for _, job := range w.jobs {
			if w.isKnown(job) {
				held[job.UID] = jobs.HoldsOf(w.of(job.UID), worldNow)
			} else { // nobody knows more than its states
				held[job.UID] = w.ranFor(job.UID)
			}
		}
		keys := map[By]func(*jobs.Job) string{
			ByNamespace: func(j *jobs.Job) string { return j.Namespace }, ByOwner: func(j *jobs.Job) string { return j.Owner }, ByQueue: func(j *jobs.Job) string { return j.Queue },
			ByResource: func(*jobs.Job) string { return jobLog.Resource }, ByState: func(j *jobs.Job) string { return string(j.State) },
		}
		for _, span := range []jobs.Span{
			{Until: worldNow}, {From: second, Until: worldNow, Step: time.Minute}, {From: 100 * second, Until: 533 * second, Step: 50 * time.Second},
			{From: 450 * second, Until: 451 * second, Step: time.Hour}, {From: 700 * second, Until: 2 * worldNow},
		} {
			for by, key := range keys {
				want := jobs.NewUsage(span)
				for _, job := range w.jobs {
					unknown := !w.isKnown(job) && job.Started == 0 && max(job.Ended, job.Deleted) != 0 && job.Waited() == nil
					want.Add(jobs.Lived{Key: key(job), Created: job.Created, Holds: held[job.UID], Unknown: unknown})
				}
				got, parts := jobs.NewUsage(span), jobs.Amounts{}
				if err := s.Lives(t.Context(), w.log, Filter{}, by, span, worldNow, func(batch []jobs.Lived) error {
					for _, l := range batch {
						got.Add(l)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				sums := got.Sum()
				if diff := cmp.Diff(want.Sum(), sums, cmpopts.IgnoreFields(jobs.Used{}, "Waited", "Ran"), cmpopts.EquateApprox(1e-9, 1e-9)); diff != "" {
					t.Fatalf("by %s in %+v: %s", by, span, diff)
				}
				for _, used := range sums {
					parts.CPUs, parts.Memory, parts.GPUs = parts.CPUs+used.Hours.CPUs, parts.Memory+used.Hours.Memory, parts.GPUs+used.Hours.GPUs
				}
				var whole []jobs.Hold
				for _, holds := range held {
					for _, h := range holds {
						if h.From, h.To = max(h.From, span.From), min(h.To, span.Until); h.From < h.To {
							whole = append(whole, h)
						}
					}
				}
				if diff := cmp.Diff(jobs.HoursOf(whole), parts, cmpopts.EquateApprox(1e-9, 1e-9)); diff != "" {
					t.Errorf("by %s in %+v the parts are not the whole: %s", by, span, diff)
				}
			}
		}
	})
}

// ranFor is what a job requested while it was Running, by its transitions.
func (w *podWorld) ranFor(uid string) (holds []jobs.Hold) {
	w.t.Helper()
	transitions, err := w.s.Transitions(w.t.Context(), w.log, Filter{UIDs: []string{uid}}, 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(transitions)
	var requests map[string]string
	for _, job := range w.jobs {
		if job.UID == uid {
			requests = job.Requests
		}
	}
	for i, tr := range transitions {
		if tr.To != jobs.Running {
			continue
		}
		to := jobs.Time(worldNow)
		if i+1 < len(transitions) {
			to = transitions[i+1].At
		}
		holds = append(holds, jobs.Hold{Interval: jobs.Interval{From: tr.At, To: to}, Amounts: jobs.AmountsOfJob(requests)})
	}
	return holds
}
