package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// serialWorld are jobs that begin and end one pod after the other, or run and wait in turn where
// nobody recorded their pods.
type serialWorld struct {
	t         *testing.T
	s         *Store
	log, pods Log
	jobs      []*jobs.Job
	runs      []*jobs.Run // by job: the last one of those that have any
	made      int
}

const (
	serialJobs = 90
	serialFrom = 200 * second // after which they are asked for
)

func newSerialWorld(t *testing.T, s *Store) *serialWorld {
	w := &serialWorld{t: t, s: s, log: take(t, s, "a"), pods: takePods(t, s)}
	if err := s.Began(t.Context(), w.pods, serialFrom); err != nil { // of jobs from before it is not known whether they had pods
		t.Fatal(err)
	}
	b := Batch{To: 1}
	for i := range serialJobs {
		next, transition := jobs.Next(nil, jobs.Seen{
			ObjectID: jobs.ObjectID{UID: fmt.Sprintf("u%02d", i), Namespace: fmt.Sprintf("n%d", i%2), Name: "n"}, Version: 1, Created: jobs.Time(i+1) * second, Observed: jobs.Time(i+1) * second,
			Said: jobs.Said{State: jobs.Pending, Owner: "o", Requests: map[string]string{"cpu": "3"}},
		})
		b.Jobs, b.Transitions = append(b.Jobs, next), append(b.Transitions, transition)
	}
	w.log, w.jobs, w.runs = write(t, s, w.log, b), b.Jobs, make([]*jobs.Run, serialJobs)
	runs := Batch{To: w.pods.Version + 1}
	for i := 2; i < serialJobs; i += 3 { // one of its pods goes on all the time
		r := podOf(fmt.Sprintf("lasting-%d", i), w.log.ID, w.jobs[i].UID, 100*second)
		r.Scheduled = 100 * second
		runs.Runs = append(runs.Runs, r)
	}
	w.pods = write(t, s, w.pods, runs)
	return w
}

// turn lets some jobs begin or end something at a time.
func (w *serialWorld) turn(at jobs.Time, which func(job int) bool) {
	states, runs := Batch{To: w.log.Version + 1}, Batch{To: w.pods.Version + 1}
	for i, job := range w.jobs {
		if !which(i) {
			continue
		}
		if i%3 == 0 { // nobody records its pods
			state := jobs.Running
			if job.State == jobs.Running {
				state = jobs.Suspended
			}
			next, transition := jobs.Next(job, jobs.Seen{ObjectID: job.ObjectID, Version: states.To, Created: job.Created, Observed: at, Said: jobs.Said{State: state, Owner: "o", Requests: job.Requests}})
			w.jobs[i], states.Jobs, states.Transitions = next, append(states.Jobs, next), append(states.Transitions, transition)
			continue
		}
		run := w.runs[i]
		if run == nil || run.Terminal() {
			w.made++
			run = podOf(fmt.Sprintf("pod-%d", w.made), w.log.ID, job.UID, at).Run
			run.Scheduled = at
		} else {
			ended := *run
			ended.Ended, ended.Reason = at, jobs.Completed
			run = &ended
		}
		w.runs[i], runs.Runs = run, append(runs.Runs, &Run{Of: w.log.ID, Run: run})
	}
	w.log, w.pods = write(w.t, w.s, w.log, states), write(w.t, w.s, w.pods, runs)
}

func (w *serialWorld) usage(f Filter, span jobs.Span) []jobs.Used {
	w.t.Helper()
	usage := jobs.NewUsage(span)
	if err := w.s.Lives(w.t.Context(), w.log, f, ByNamespace, span, span.Until, func(batch []jobs.Lived) error {
		for _, l := range batch {
			usage.Add(l)
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	return usage.Sum()
}

// Pods begin and end while usage is read, so that their jobs move from one place to another in the
// indexes by which they are found. Each is counted once all the same, with what it had used when it
// was asked.
func TestUsageIsOfOneMomentWhateverChangesMeanwhile(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		w, random := newSerialWorld(t, s), rand.New(rand.NewPCG(4, 1))
		s.window = 10 // so that each stretch is read in pieces
		now := jobs.Time(100 * second)
		some := func(int) bool { return random.IntN(3) == 0 }
		for range 4 {
			w.turn(now, some)
			now += 30 * second
		}
		for round := range 12 {
			now += 100 * second
			f, span := Filter{}, jobs.Span{From: serialFrom, Until: now}
			if round%2 == 1 {
				span.Step = 50 * time.Second
			}
			if round%3 == 1 {
				span.From = serialJobs*second + 5*second // before any of them held anything
			}
			if round%3 == 2 {
				f.Within = []NamespacedName{{Namespace: "n1"}}
			}
			want, questions := w.usage(f, span), 0
			s.asked = func(string, []any) {
				if questions++; questions%(1+round%4) == 0 && questions <= 12*(1+round%4) {
					asked := s.asked
					s.asked = nil
					w.turn(now+jobs.Time(questions)*100, some)
					s.asked = asked
				}
			}
			got := w.usage(f, span)
			s.asked = nil
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 1e-9)); diff != "" || len(want) == 0 || questions < 10 {
				t.Fatalf("round %d, %d questions: %s", round, questions, diff)
			}
			now += jobs.Time(questions)*100 + second
		}
	})
}

// A caller who may see, or asks for, a little of a log has no more read than that, and not what all others hold.
func TestUsageOfALittleReadsLittle(t *testing.T) {
	s := openAt(t, dbtest.Maria.Database(t)) // which counts the rows that are read
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	log, pods := take(t, s, "a"), takePods(t, s)
	if err := s.Began(t.Context(), pods, 1); err != nil {
		t.Fatal(err)
	}
	const others = 12_000
	live := func(namespace, owner string, uids []string) {
		b := seen(log.Version+1, namespace, owner, uids, jobs.Pending, jobs.Running)
		log = write(t, s, log, b)
		runs := Batch{To: pods.Version + 1}
		for i, uid := range uids {
			r := podOf("pod-"+uid, log.ID, uid, 2000)
			if r.Namespace, r.Owner, r.Scheduled = namespace, owner, 3000; i%2 == 0 {
				r.Ended, r.Reason = 3_600_000, jobs.Completed
			}
			runs.Runs = append(runs.Runs, r)
		}
		pods = write(t, s, pods, runs)
	}
	for i := range others / 1000 {
		live("large", "robot", numbered(fmt.Sprintf("l%02d-", i), 1000))
	}
	live("small", "ann", numbered("s", 40))
	reads := handlerReads(t, s)
	for name, test := range map[string]struct {
		f         Filter
		jobs, max int
	}{
		"what a caller may see":  {Filter{Within: []NamespacedName{{Namespace: "small"}}}, 40, 1500},
		"an owner's":             {Filter{Owners: []string{"ann"}}, 40, 1500},
		"a namespace's":          {Filter{Namespace: "small"}, 40, 1500},
		"what a caller may name": {Filter{Within: []NamespacedName{{Namespace: "small", Name: "name-s003"}, {Namespace: "small", Name: "name-s004"}}}, 2, 1500},
		"everything":             {Filter{}, others + 40, 40 * others},
	} {
		before, n := reads(), 0
		span := jobs.Span{From: 3_000_000, Until: 4_000_000}
		if err := s.Lives(t.Context(), log, test.f, ByOwner, span, 4_000_000, func(batch []jobs.Lived) error {
			for _, l := range batch {
				if !l.Counted { // else it is more of one that was
					n++
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		read := reads() - before
		t.Logf("%s: %d jobs, %d rows", name, n, read)
		if n != test.jobs || read > test.max {
			t.Errorf("%s: %d jobs for %d rows", name, n, read)
		}
	}
}
