package recordings_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/recordings"
	"github.com/kubecast/kubecast/internal/jobs/rules"
)

// mostLate is by how much a time may be told otherwise: what a pod claims are whole seconds, and what is heard of later
// has no other time.
const mostLate = 5 * time.Second

// TestDisturbedLivesAreToldAlike has each life happen while the gateway is stopped and started again, its watches break
// off, end and expire, and some kinds are heard of later than others. Nothing is lost of that, since the API server has
// its history: so all is told as without it, but for the times at which it was seen.
func TestDisturbedLivesAreToldAlike(t *testing.T) {
	eachDisturbed(t, 0, disturbances, func(all, got recorded) (wrong []string) {
		wrong = differences(all, got)
		at := timesOf(got)
		for pod, was := range timesOf(all) {
			for i, is := range at[pod] {
				if d := is - was[i]; (is < 0) != (was[i] < 0) || max(d, -d) > mostLate {
					wrong = append(wrong, fmt.Sprintf("%s was bound, started and ended %v after it was made, not %v", pod, at[pod], was))
					break
				}
			}
		}
		return wrong
	})
}

// TestLivesAreToldAlikeToWhoReadsThemWhenTheyAreOver has each life go on while no gateway is there, from its first version
// on. Versions say which pods had ended when a job came to its state, and of what was before an end no time does.
func TestLivesAreToldAlikeToWhoReadsThemWhenTheyAreOver(t *testing.T) {
	eachDisturbed(t, 1, func(_ *rand.Rand, _ *apitest.API, from, until time.Time) (all []disturbance, what []string) {
		return []disturbance{
			{from.Add(time.Millisecond), func(_ *testing.T, g *gateway) { synctest.Wait(); g.stop() }}, {until.Add(time.Hour), func(t *testing.T, g *gateway) { g.start(t) }},
		}, nil
	}, differences)
}

// TestWhatIsLostOfALifeIsToldByNothingElse has each life happen while the gateway is away for a time of which the API
// server has no history. States that were then are not told, and nothing is told in their place: what is found by
// comparing has the cause that it would have had or none, and the life ends as it does.
func TestWhatIsLostOfALifeIsToldByNothingElse(t *testing.T) {
	eachDisturbed(t, 2, func(random *rand.Rand, api *apitest.API, from, until time.Time) (all []disturbance, what []string) {
		at := time.Duration(random.Int64N(int64(until.Sub(from) + mostLate)))
		rest := time.Duration(random.Int64N(int64(2 * mostLate)))
		return []disturbance{
			{from.Add(at), func(_ *testing.T, g *gateway) { g.stop() }},
			{from.Add(at + rest), func(t *testing.T, g *gateway) { api.Compact(); g.start(t) }},
		}, []string{fmt.Sprintf("%.1f s lost at %.1f s", rest.Seconds(), at.Seconds())}
	}, func(all, got recorded) (wrong []string) {
		restarted := false
		for _, tr := range got.transitions {
			then := lastUpTo(all.transitions, tr.Version)
			if unready := tr.Late && tr.To == jobs.Retrying || tr.From == jobs.Retrying && restarted; unready && then != nil && then.To == jobs.Running {
				// That it was begun anew is all that an object says of which the pods are not ready just then.
				restarted = true
				continue
			}
			if then == nil || then.To != tr.To || then.Version != tr.Version && !tr.Late {
				wrong = append(wrong, fmt.Sprintf("%s → %s at version %d, late %t, was not: %+v", tr.From, tr.To, tr.Version, tr.Late, then))
				continue
			}
			// A pod of which the end is not known is not counted.
			if was, is := causeOf(then), causeOf(tr); was != is && is != "" && (then.Cause == nil || then.Cause.Pods < tr.Cause.Pods || !strings.HasPrefix(was, strings.Split(tr.Cause.Text, ";")[0])) {
				wrong = append(wrong, fmt.Sprintf("%s → %s for %s, not for %s", tr.From, tr.To, is, was))
			}
		}
		if was, is := all.job.State, got.job.State; was != is {
			wrong = append(wrong, fmt.Sprintf("it ends as %s, not as %s", is, was))
		}
		if was, is := all.job.Attempt, got.job.Attempt; is > was {
			wrong = append(wrong, fmt.Sprintf("%d attempts, not %d", is, was))
		}
		return wrong
	})
}

// lastUpTo is the last transition up to a version; nil if there is none.
func lastUpTo(all []*jobs.Transition, version uint64) (last *jobs.Transition) {
	for _, tr := range all {
		if tr.Version <= version {
			last = tr
		}
	}
	return last
}

// eachDisturbed has each life happen with what befalls the gateway, and says what compare finds wrong with what is told
// of it, beside what is told without. $KUBECAST_SEED is another seed than 1, and $KUBECAST_SOAK how long it goes on.
// Unless it does, a third of the lives are each of these tests' turn.
func eachDisturbed(t *testing.T, turn uint64, disturb func(random *rand.Rand, api *apitest.API, from, until time.Time) ([]disturbance, []string), compare func(all, got recorded) []string) {
	t.Helper()
	first, lasting := apitest.Soak(t, 1)
	began := time.Now()
	for seed := first; seed == first || time.Since(began) < lasting; seed++ {
		clean := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			eachRecorded(t, func(t *testing.T, set *rules.Set, life *recordings.Life) {
				name := fnv.New64()
				_, _ = name.Write([]byte(life.Name()))
				if lasting == 0 && (name.Sum64()+seed)%3 != turn {
					return
				}
				all := undisturbed(t, set, life)
				random := rand.New(rand.NewPCG(seed, name.Sum64()))
				var what []string
				got := record(t, set, life, func(api *apitest.API, from, until time.Time) (all []disturbance) {
					all, what = disturb(random, api, from, until)
					return all
				})
				if wrong := compare(all, got); len(wrong) > 0 {
					t.Errorf("with %s:\n%s", strings.Join(what, ", "), strings.Join(wrong, "\n"))
				}
			})
		})
		if !clean {
			t.Fatalf("seed %d found something; KUBECAST_SEED=%[1]d shows it again, if it is not by chance which of two is read first", seed)
		}
	}
}

// disturbances are some of which nothing is lost, in the order of their times, and what they are.
func disturbances(random *rand.Rand, api *apitest.API, from, until time.Time) (all []disturbance, what []string) {
	span := until.Sub(from) + mostLate
	add := func(at time.Duration, name string, do func(*testing.T, *gateway)) {
		all = append(all, disturbance{from.Add(at), do})
		what = append(what, fmt.Sprintf("%s at %.1f s", name, at.Seconds()))
	}
	expired := false
	kinds := []string{"pods", "workloads", "jobs"}
	for range 1 + random.IntN(4) {
		at := time.Duration(random.Int64N(int64(span)))
		rest := time.Duration(random.Int64N(int64(mostLate - time.Second)))
		switch random.IntN(5) {
		case 0, 1:
			stopped := false // by this one
			add(at, fmt.Sprintf("a restart of %.1f s", rest.Seconds()), func(_ *testing.T, g *gateway) {
				if stopped = g.stop != nil; stopped {
					g.stop()
					g.stop = nil
				}
			})
			all = append(all, disturbance{from.Add(at + rest), func(t *testing.T, g *gateway) {
				if stopped {
					g.start(t)
				}
			}})
		case 2:
			kind := kinds[random.IntN(len(kinds))]
			add(at, fmt.Sprintf("nothing of %s for %.1f s", kind, rest.Seconds()), func(*testing.T, *gateway) { api.Hold(kind, true) })
			all = append(all, disturbance{from.Add(at + rest), func(*testing.T, *gateway) { api.Hold(kind, false) }})
		case 3:
			add(at, "watches cut", func(*testing.T, *gateway) { api.CutWatches() })
		case 4:
			if expired {
				continue // the second one could end the watch that reads again what the first one had not told
			}
			expired = true
			add(at, "watches expired", func(*testing.T, *gateway) { api.ExpireWatches() })
		}
	}
	slices.SortStableFunc(all, func(a, b disturbance) int { return a.at.Compare(b.at) })
	return all, what
}

// differences are the lines that differ. Why a queue takes a job back is known only as long as the queue says so: who
// reads that later may not be told.
func differences(all, got recorded) (differ []string) {
	for i, tr := range all.transitions {
		if i < len(got.transitions) && tr.To == jobs.Queued && got.transitions[i].Version == tr.Version && got.transitions[i].Cause == nil {
			untold := *tr
			untold.Cause, untold.Reason = nil, ""
			all.transitions = slices.Clone(all.transitions)
			all.transitions[i] = &untold
		}
	}
	was, is := outlineOf(all), outlineOf(got)
	for i := range max(len(was), len(is)) {
		line := func(of []string) string {
			if i < len(of) {
				return of[i]
			}
			return ""
		}
		if line(was) != line(is) {
			differ = append(differ, "- "+line(was), "+ "+line(is))
		}
	}
	return differ
}

// outlineOf is what is told of a life, but for times.
func outlineOf(r recorded) (lines []string) {
	var from jobs.State
	for _, tr := range r.transitions {
		reason := tr.Reason
		if isGivenUp(tr) {
			reason = jobs.GivenUp
		}
		if tr.From == tr.To { // it was given up, told by itself, since its Workload was heard of later
			lines = lines[:len(lines)-1]
		} else {
			from = tr.From
		}
		lines = append(lines, fmt.Sprintf("%s → %s, attempt %d, late %t, %s: %s", from, tr.To, tr.Attempt, tr.Late, reason, causeOf(tr)))
	}
	lines = append(lines, fmt.Sprintf("%s, attempt %d, %+v, %+v", r.job.State, r.job.Attempt, r.job.Progress, r.job.Counts))
	var pods []string
	for _, run := range r.runs {
		code := "-"
		if run.ExitCode != nil {
			code = fmt.Sprint(*run.ExitCode)
		}
		pods = append(pods, fmt.Sprintf("%s (%s) of %s on %q: %s, %s %s, %d restarts, %v, ended %t, late %t", run.Name, run.UID, run.Job.Name, run.Node, run.Reason, run.Container, code,
			run.Restarts, slices.Sorted(maps.Keys(run.Requests)), run.Terminal(), run.Late))
	}
	slices.Sort(pods)
	return append(lines, pods...)
}

// causeOf is the cause of a transition in words; "": none is told.
func causeOf(tr *jobs.Transition) string {
	switch {
	case isGivenUp(tr): // how much of the Workload was written when it was read is luck
		return jobs.GivenUp
	case tr.Cause == nil:
		return ""
	}
	return fmt.Sprintf("%s [%s, %d]", tr.Cause.Text, tr.Cause.Reason, tr.Cause.Pods)
}

func isGivenUp(tr *jobs.Transition) bool {
	return tr.Cause != nil && tr.Cause.Reason == jobs.GivenUp
}

// timesOf is how long after each pod was made it was bound, started and ended; negative: it was not.
func timesOf(r recorded) map[string][3]time.Duration {
	times := map[string][3]time.Duration{}
	for _, run := range r.runs {
		since := func(at jobs.Time) time.Duration {
			if at == 0 {
				return -1
			}
			return time.Duration(at-run.Created) * time.Millisecond
		}
		times[run.Name+" "+run.UID] = [3]time.Duration{since(run.Scheduled), since(run.Started), since(run.Ended)}
	}
	return times
}
