package store

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubecast/kubecast/internal/jobs"
)

const second = 1_000

// life is a random life of a job, as a table of its states by second.
type life struct {
	uid, namespace, owner, queue string
	cpus, gpus                   float64
	created                      int
	states                       []jobs.State // from created on, second by second; the last one holds
	cause                        string       // the reason of why it ended
}

func (l life) at(second int) jobs.State {
	return l.states[min(second-l.created, len(l.states)-1)]
}

// randomLives are those of n jobs within so many seconds, and what is written of them.
func randomLives(random *rand.Rand, n, seconds int) (lives []life, b Batch) {
	for i := range n {
		l := life{
			uid: fmt.Sprintf("u%d", i), namespace: fmt.Sprintf("n%d", random.IntN(3)), owner: fmt.Sprintf("o%d", random.IntN(4)), queue: "q",
			cpus: float64(random.IntN(4)) / 2, gpus: float64(random.IntN(3)), created: 1 + random.IntN(seconds-1),
		}
		var job *jobs.Job
		for at := l.created; at < seconds; {
			state := jobs.States()[random.IntN(len(jobs.States()))]
			if job == nil && state == jobs.Deleted {
				continue
			}
			next, transition := jobs.Next(job, jobs.Seen{
				ObjectID: jobs.ObjectID{UID: l.uid, Namespace: l.namespace, Name: l.uid},
				Said: jobs.Said{State: state, Owner: l.owner, Queue: l.queue, Requests: map[string]string{
					"cpu": fmt.Sprintf("%dm", int(1000*l.cpus)), "a.example/gpu": fmt.Sprint(l.gpus), "memory": "1Gi",
				}},
				Created: jobs.Time(l.created * second), Observed: jobs.Time(at * second), Version: 1, Deleted: state == jobs.Deleted,
			})
			if next != nil {
				job, b.Transitions = next, append(b.Transitions, transition)
			}
			reason := map[jobs.State]string{jobs.Failed: "OOMKilled", jobs.Cancelled: "Cancelled", jobs.Retrying: "Error"}[state]
			if reason != "" {
				job.Cause = &jobs.Cause{Reason: reason}
				if transition != nil {
					transition.Cause = job.Cause
				}
			}
			if state == jobs.Retrying { // which is no end
				reason = ""
			}
			if state != jobs.Deleted {
				l.cause = reason
			}
			for range 1 + random.IntN(seconds/6) {
				l.states = append(l.states, state)
				at++
			}
			if state == jobs.Deleted {
				break
			}
		}
		lives, b.Jobs = append(lives, l), append(b.Jobs, job)
	}
	b.To = 1
	return lives, b
}

// simply sums up second by second.
func simply(lives []life, span jobs.Span, now int, key func(life) string) map[string]jobs.Used {
	sums, waited, ran := map[string]jobs.Used{}, map[string][]float64{}, map[string][]float64{}
	name := func(l life, at int) string {
		from := span.From
		for span.From != 0 && span.Step != 0 && from+jobs.Time(span.Step.Milliseconds()) <= jobs.Time(at*second) {
			from += jobs.Time(span.Step.Milliseconds())
		}
		return fmt.Sprintf("%s at %d", key(l), from)
	}
	inside := func(at int) bool { return jobs.Time(at*second) >= span.From && jobs.Time(at*second) < span.Until }
	for _, l := range lives {
		first, running := -1, 0
		succeeded := false // before it was seen to run, so it is not known how long it waited and ran
		for at := l.created; at < now; at++ {
			succeeded = succeeded || first < 0 && l.at(at) == jobs.Succeeded
			if l.at(at) != jobs.Running {
				continue
			}
			if running++; first < 0 {
				first = at
			}
			if inside(at) {
				sum := sums[name(l, at)]
				sum.Hours.CPUs += l.cpus / 3600
				sum.Hours.Memory += 1. / 3600
				sum.Hours.GPUs += l.gpus / 3600
				sums[name(l, at)] = sum
			}
		}
		if !inside(l.created) {
			continue
		}
		of := name(l, l.created)
		sum := sums[of]
		sum.Jobs++
		if last := l.at(now - 1); first < 0 && succeeded && (last.Ended() || last == jobs.Deleted) {
			sum.Unknown++
		}
		sums[of] = sum
		if first >= 0 && !succeeded {
			ran[of] = append(ran[of], float64(running))
			waited[of] = append(waited[of], float64(first-l.created))
		}
	}
	rank := func(all []float64) *jobs.Spread {
		if len(all) == 0 {
			return nil
		}
		slices.Sort(all)
		at := func(part float64) float64 { return all[int(math.Ceil(part*float64(len(all))))-1] }
		return &jobs.Spread{Count: len(all), P50: at(0.5), P90: at(0.9), Max: all[len(all)-1]}
	}
	for of, sum := range sums {
		sum.Waited, sum.Ran = rank(waited[of]), rank(ran[of])
		sums[of] = sum
	}
	return sums
}

// Usage of random lives of which nobody recorded the pods, jobs that run now and those that ran
// several times included, is what is counted second by second; and the sums of its parts are the
// whole.
func TestUsageIsWhatIsCountedSecondBySecond(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		const seconds = 600
		random := rand.New(rand.NewPCG(1, 2))
		lives, b := randomLives(random, 700, seconds)
		log := write(t, s, take(t, s, "a"), b)
		// Of some it is not known when they last ran: they were written before that was kept.
		if _, err := s.writes.ExecContext(t.Context(), "UPDATE jobs SET ran_until = NULL WHERE namespace = 'n2'"); err != nil {
			t.Fatal(err)
		}
		keys := map[By]func(life) string{
			ByNamespace: func(l life) string { return l.namespace }, ByOwner: func(l life) string { return l.owner },
			ByQueue: func(l life) string { return l.queue }, ByResource: func(life) string { return "jobs.batch" },
			ByState: func(l life) string { return string(l.states[len(l.states)-1]) },
			ByCause: func(l life) string { return l.cause },
		}
		for _, span := range []jobs.Span{
			{Until: seconds * second}, {From: 1, Until: seconds * second, Step: time.Minute}, {From: 100 * second, Until: 333 * second, Step: 50 * time.Second},
			{From: 250 * second, Until: 251 * second, Step: time.Hour}, {From: 500 * second, Until: 900 * second}, {From: 300 * second, Until: 200 * second, Step: time.Second},
		} {
			if span.From == 1 {
				span.From = second // no step begins within a second
			}
			for by, key := range keys {
				usage := jobs.NewUsage(span)
				if err := s.Lives(t.Context(), log, Filter{}, by, span, seconds*second, func(batch []jobs.Lived) error {
					for _, l := range batch {
						usage.Add(l)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				got := map[string]jobs.Used{}
				for _, used := range usage.Sum() {
					got[fmt.Sprintf("%s at %d", used.Key, used.From)] = used
				}
				want := simply(lives, span, seconds, key)
				ignored := cmpopts.IgnoreFields(jobs.Used{}, "Key", "From")
				if diff := gocmp.Diff(want, got, ignored, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
					t.Fatalf("by %s in %+v: %s", by, span, diff)
				}
			}
		}
	})
}

// Whatever is asked for and however long the log is, ends are counted that are transitions to an end, each once.
func TestEndsAreTheTransitionsThatLedToThem(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		const seconds = 900
		s.window = 40
		random := rand.New(rand.NewPCG(3, 2))
		_, b := randomLives(random, 1500, seconds)
		log := write(t, s, take(t, s, "a"), b)
		for _, f := range []Filter{{}, {Since: 100 * second, Until: 300 * second}, {Owners: []string{"o1", "o2"}}, {Namespace: "n1", Since: 700 * second}, {States: []jobs.State{jobs.Running}}} {
			for _, by := range []By{ByNamespace, ByOwner, ByQueue, ByResource, ByCause} {
				span := jobs.Span{From: f.Since, Until: cmp.Or(f.Until, seconds*second), Step: time.Minute}
				asked := f
				asked.States = nil
				want := map[string]int{}
				for _, tr := range b.Transitions {
					if tr.To.Ended() && asked.Matches(tr) {
						step := jobs.Time(0)
						if span.From != 0 {
							step = span.From + (tr.At-span.From)/60_000*60_000
						}
						cause := map[jobs.State]string{jobs.Failed: "OOMKilled", jobs.Cancelled: "Cancelled"}[tr.To]
						want[fmt.Sprint(map[By]string{ByNamespace: tr.Namespace, ByOwner: tr.Owner, ByQueue: tr.Queue, ByResource: jobLog.Resource, ByCause: cause}[by], step, tr.To)]++
					}
				}
				ends, calls := jobs.NewEnds(span), 0
				if err := s.Ends(t.Context(), log, f, func(batch []*jobs.Transition) error {
					calls++
					for _, tr := range batch {
						ends.Add(by.KeyOf(log.Resource, tr), tr.To, tr.At)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				got := map[string]int{}
				for _, e := range ends.Sum() {
					for to, n := range map[jobs.State]int{jobs.Succeeded: e.Succeeded, jobs.Failed: e.Failed, jobs.Cancelled: e.Cancelled} {
						if n > 0 {
							got[fmt.Sprint(e.Key, e.From, to)] = n
						}
					}
				}
				if diff := gocmp.Diff(want, got); diff != "" || len(want) == 0 {
					t.Fatalf("by %s of %+v in %d calls: %s", by, f, calls, diff)
				}
			}
		}
	})
}

// Of a job that was found running it is not known how long it waited, and it may have run for longer
// than since it was seen: neither is in a percentile, nor counted as if it were known.
func TestBeginningsThatNobodySawAreInNoPercentile(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		b := Batch{To: 1}
		for i, late := range []bool{true, false, true} {
			var job *jobs.Job
			for at, state := range []jobs.State{jobs.Running, jobs.Succeeded} {
				next, transition := jobs.Next(job, jobs.Seen{
					ObjectID: jobs.ObjectID{UID: fmt.Sprintf("u%d", i), Namespace: "n", Name: "j"}, Version: 1, Created: 1 * second, Said: jobs.Said{State: state},
					Observed: jobs.Time((4 + 990*(1-i%2) + at) * second), Late: late && at == 0,
				})
				job, b.Transitions = next, append(b.Transitions, transition)
			}
			b.Jobs = append(b.Jobs, job)
		}
		log = write(t, s, log, b)
		usage := jobs.NewUsage(jobs.Span{Until: 1_000_000})
		if err := s.Lives(t.Context(), log, Filter{}, ByNamespace, jobs.Span{Until: 1_000_000}, 1_000_000, func(batch []jobs.Lived) error {
			for _, l := range batch {
				usage.Add(l)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		sums := usage.Sum()
		if len(sums) != 1 || sums[0].Jobs != 3 || !gocmp.Equal(sums[0].Waited, &jobs.Spread{Count: 1, P50: 3, P90: 3, Max: 3}) || !gocmp.Equal(sums[0].Ran, &jobs.Spread{Count: 1, P50: 1, P90: 1, Max: 1}) {
			t.Errorf("%+v: waited %+v, ran %+v", sums, sums[0].Waited, sums[0].Ran)
		}
		found, err := s.Jobs(t.Context(), log, Filter{}, JobAfter{}, 10)
		for i, j := range found { // u2, u1, u0
			if late := i != 1; j.BeganLate != late || (j.Waited() == nil) != late {
				t.Errorf("%s: %v, %v", j.UID, j.BeganLate, j.Waited())
			}
		}
		if err != nil || len(found) != 3 {
			t.Error(found, err)
		}
	})
}

// A job that had ended, and whose pods were gone, when somebody first saw it may have held anything: usage does not say that it held
// nothing. One that ended without having run did, and so did one whose pods somebody recorded.
func TestUsageSaysOfHowManyJobsNobodyKnows(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		now := jobs.At(time.Now())
		log, pods := take(t, s, "a"), takePods(t, s)
		if err := s.Began(t.Context(), pods, now-2000); err != nil {
			t.Fatal(err)
		}
		b := Batch{To: 1}
		for uid, life := range map[string]struct {
			created jobs.Time
			late    bool
			states  []jobs.State
		}{
			"found over":        {now - 9000, true, []jobs.State{jobs.Succeeded}},
			"found over, gone":  {now - 9000, true, []jobs.State{jobs.Failed, jobs.Deleted}},
			"found running":     {now - 9000, true, []jobs.State{jobs.Running, jobs.Succeeded}},
			"ended in a queue":  {now - 9000, false, []jobs.State{jobs.Queued, jobs.Cancelled}},
			"waits":             {now - 9000, true, []jobs.State{jobs.Pending}},
			"since, had no pod": {now - 1000, true, []jobs.State{jobs.Succeeded}},
		} {
			var job *jobs.Job
			for i, state := range life.states {
				next, transition := jobs.Next(job, jobs.Seen{
					ObjectID: jobs.ObjectID{UID: uid, Namespace: uid, Name: "j"}, Version: 1, Created: life.created, Said: jobs.Said{State: state},
					Observed: now - 500 + jobs.Time(i), Late: life.late && i == 0, Deleted: state == jobs.Deleted,
				})
				job, b.Transitions = next, append(b.Transitions, transition)
			}
			b.Jobs = append(b.Jobs, job)
		}
		log = write(t, s, log, b)
		usage := jobs.NewUsage(jobs.Span{Until: now})
		if err := s.Lives(t.Context(), log, Filter{}, ByNamespace, jobs.Span{Until: now}, now, func(batch []jobs.Lived) error {
			for _, l := range batch {
				usage.Add(l)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		sums := usage.Sum()
		if len(sums) != 6 {
			t.Errorf("%+v", sums)
		}
		for _, used := range sums {
			if unknown := used.Key == "found over" || used.Key == "found over, gone"; (used.Unknown == 1) != unknown || used.Jobs != 1 {
				t.Errorf("%s: of %d of %d it is not known", used.Key, used.Unknown, used.Jobs)
			}
		}
	})
}

// How long a job ran is not known whose end was found late, and in no percentile; what it held until then counts.
func TestRunsOfWhichNobodySawTheEndAreInNoPercentile(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		b := Batch{To: 1}
		for i := range 2 {
			var job *jobs.Job
			for at, seen := range []jobs.Seen{{Said: jobs.Said{State: jobs.Running}}, {Deleted: true, Late: i == 1}} {
				seen.ObjectID, seen.Version, seen.Created = jobs.ObjectID{UID: fmt.Sprintf("u%d", i), Namespace: "n", Name: "j"}, 1, 1*second
				seen.Observed = jobs.Time((2 + at*(1+599*i)) * second)
				next, transition := jobs.Next(job, seen)
				job, b.Transitions = next, append(b.Transitions, transition)
			}
			b.Jobs = append(b.Jobs, job)
		}
		log = write(t, s, log, b)
		ran, unended := []time.Duration{}, 0
		usage := jobs.NewUsage(jobs.Span{Until: 1_000_000})
		if err := s.Lives(t.Context(), log, Filter{}, ByNamespace, jobs.Span{Until: 1_000_000}, 1_000_000, func(batch []jobs.Lived) error {
			for _, l := range batch {
				usage.Add(l)
				if ran = append(ran, l.Ran); l.Unended {
					unended++
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		sums := usage.Sum()
		if len(sums) != 1 || !gocmp.Equal(sums[0].Ran, &jobs.Spread{Count: 1, P50: 1, P90: 1, Max: 1}) || !gocmp.Equal(sums[0].Waited, &jobs.Spread{Count: 2, P50: 1, P90: 1, Max: 1}) || unended != 1 || len(ran) != 2 || ran[0]+ran[1] != 601*time.Second {
			t.Errorf("%+v: %v, %d of them are not known", sums, ran, unended)
		}
		found, err := s.Jobs(t.Context(), log, Filter{UIDs: []string{"u1"}}, JobAfter{}, 10)
		if err != nil || len(found) != 1 || found[0].Ran() != nil || !found[0].StoppedLate {
			t.Errorf("%+v, %v", found, err)
		}
	})
}
