package balance

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// visitor is a client that is connected to a replica, and comes back when its stream ends.
type visitor struct{ moves int }

// world is replicas whose streams are only counted. It is for one bubble.
type world struct {
	mu       sync.Mutex
	replicas []*replica
	pick     func(from int) int // where a client goes that was at a replica
	unknown  bool               // clients that come back are not known
}

type replica struct {
	world    *world
	number   int
	life     int  // how often it has begun anew
	down     bool // nobody knows of it
	mute     bool // it does not answer
	open     []*visitor
	moving   map[*visitor]bool
	returned int
}

func (r *replica) instance() string { return fmt.Sprint(r.number, ".", r.life) }

func (f *world) loads(context.Context) (all []Load, complete bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	complete = true
	for _, r := range f.replicas {
		switch {
		case r.mute:
			complete = false
		case !r.down:
			all = append(all, Load{r.instance(), len(r.open)}, Load{r.instance(), len(r.open)}) // by two addresses
		}
	}
	return all, complete
}

// add adds a replica, and lets it balance.
func (f *world) add(ctx context.Context, running *sync.WaitGroup, log *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &replica{world: f, number: len(f.replicas), moving: map[*visitor]bool{}}
	f.replicas = append(f.replicas, r)
	b := New(Options{Self: r.instance(), Ask: f.loads, Move: r.move, Returned: r.back, Registerer: prometheus.NewRegistry(), Log: log})
	running.Go(func() { _ = b.Run(ctx) })
}

// visit has clients come to a replica.
func (f *world) visit(replica, clients int) (all []*visitor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range clients {
		all = append(all, &visitor{})
	}
	f.replicas[replica].open = append(f.replicas[replica].open, all...)
	return all
}

func (r *replica) move(streams int, within time.Duration) (found int) {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	for _, i := range rand.Perm(len(r.open)) {
		c := r.open[i]
		if found == streams {
			return found
		}
		if r.moving[c] {
			continue
		}
		found++
		r.moving[c] = true
		time.AfterFunc(rand.N(within), func() {
			r.world.mu.Lock()
			defer r.world.mu.Unlock()
			delete(r.moving, c)
			for i, o := range r.open {
				if o == c {
					r.open = append(r.open[:i], r.open[i+1:]...)
					break
				}
			}
			c.moves++
			time.AfterFunc(100*time.Millisecond+rand.N(400*time.Millisecond), func() {
				r.world.mu.Lock()
				defer r.world.mu.Unlock()
				to := r.world.replicas[r.world.pick(r.number)]
				to.open = append(to.open, c)
				if to == r && !r.world.unknown {
					r.returned++
				}
			})
		})
	}
	return found
}

func (r *replica) back() int {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	return r.returned
}

// deviation is how far the replica that is farthest from the mean is from it, as a part of it.
func (f *world) deviation() (most float64, counts []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sum := 0
	for _, r := range f.replicas {
		counts = append(counts, len(r.open))
		sum += len(r.open)
	}
	mean := float64(sum) / float64(len(counts))
	for _, n := range counts {
		most = max(most, float64(n)/mean-1, 1-float64(n)/mean)
	}
	return most, counts
}

// TestScaleUpIsLevelInFiveMinutes, although each replica acts for itself, whether what balances the connections chooses at
// random or the replica with the fewest, and each client moves once.
func TestScaleUpIsLevelInFiveMinutes(t *testing.T) {
	for _, test := range []struct {
		clients int
		fewest  bool
		within  float64 // of the mean; of few clients, more is chance
	}{{1_000, false, 0.35}, {1_000, true, 0.1}, {5_000, false, 0.16}, {5_000, true, 0.1}, {20_000, false, 0.1}} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			inWorld(t, func(t *testing.T, f *world, add func(*slog.Logger)) {
				f.pick = func(int) int { return rand.IntN(len(f.replicas)) }
				if test.fewest {
					f.pick = func(int) int { return f.fewest() }
				}
				for range 2 {
					add(silent)
				}
				all := append(f.visit(0, test.clients/2), f.visit(1, test.clients/2)...)
				time.Sleep(10 * time.Minute)
				if moved := movesOf(f, all); moved > 0 {
					t.Errorf("%d streams were moved between replicas that are level", moved)
				}
				for range 6 {
					add(silent)
				}
				time.Sleep(5 * time.Minute)
				if most, counts := f.deviation(); most > test.within {
					t.Errorf("after five minutes: %.0f %% from the mean: %d", 100*most, counts)
				}
				after := movesOf(f, all)
				if after > test.clients*5/4 {
					t.Errorf("%d clients were moved %d times", test.clients, after)
				}
				time.Sleep(time.Hour)
				if more := movesOf(f, all) - after; more > test.clients/20 {
					t.Errorf("%d streams of %d were moved once the replicas were level", more, test.clients)
				}
			})
		})
	}
}

var silent = slog.New(slog.DiscardHandler)

// inWorld runs a test in which add adds a replica.
func inWorld(t *testing.T, test func(t *testing.T, f *world, add func(*slog.Logger))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		f := &world{}
		test(t, f, func(log *slog.Logger) { f.add(ctx, &running, log) })
		cancel()
		running.Wait()
		time.Sleep(time.Minute) // until all clients are somewhere
	})
}

func movesOf(f *world, all []*visitor) (moves int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range all {
		moves += c.moves
	}
	return moves
}

// fewest is the replica with the fewest streams. The lock is held.
func (f *world) fewest() (number int) {
	for i, r := range f.replicas {
		if len(r.open) < len(f.replicas[number].open) {
			number = i
		}
	}
	return number
}

// TestStickyBalancerIsLeftAlone: clients that are sent back to where they came from are not moved again and again, though
// another replica goes away now and then, and also where they are not known when they come back.
func TestStickyBalancerIsLeftAlone(t *testing.T) {
	for _, test := range []struct{ crashes, unknown bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			inWorld(t, func(t *testing.T, f *world, add func(*slog.Logger)) {
				f.pick = func(from int) int { return from }
				var log strings.Builder
				add(slog.New(slog.NewTextHandler(&log, nil)))
				add(silent)
				f.unknown = test.unknown
				all := f.visit(0, 1_000)
				for range 24 * 6 {
					time.Sleep(5 * time.Minute)
					f.set(1, test.crashes, false)
					time.Sleep(5 * time.Minute)
					f.set(1, false, false)
				}
				if moves := movesOf(f, all); moves > 1_000 && !test.unknown || moves > 9_000 {
					t.Errorf("1,000 clients were moved %d times in a day", moves)
				}
				if !strings.Contains(log.String(), "does not spread them") {
					t.Error(log.String())
				}
			})
		})
	}
}

// set says whether nobody knows of a replica, or it does not answer. One that comes up again lives anew.
func (f *world) set(number int, down, mute bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.replicas[number]
	if r.down && !down {
		r.life++
	}
	r.down, r.mute = down, mute
}

// TestReplicaThatCrashesAgainAndAgainIsNotFed: whoever is moved to it is back in a moment.
func TestReplicaThatCrashesAgainAndAgainIsNotFed(t *testing.T) {
	for _, up := range []time.Duration{time.Minute, 3 * time.Minute, 20 * time.Minute} {
		t.Run(up.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, f *world, add func(*slog.Logger)) {
				for range 3 {
					add(silent)
				}
				alive := func() int {
					if f.replicas[2].down {
						return rand.IntN(2)
					}
					return rand.IntN(3)
				}
				f.pick = func(int) int { return alive() }
				all := append(f.visit(0, 500), f.visit(1, 500)...)
				for began := time.Now(); time.Since(began) < 24*time.Hour; {
					time.Sleep(up)
					f.set(2, true, false)
					f.mu.Lock()
					for _, c := range f.replicas[2].open {
						to := f.replicas[alive()]
						to.open = append(to.open, c)
					}
					f.replicas[2].open, f.replicas[2].moving = nil, map[*visitor]bool{}
					f.mu.Unlock()
					time.Sleep(time.Minute)
					f.set(2, false, false)
				}
				if moves := movesOf(f, all); moves > 5_000 {
					t.Errorf("1,000 clients were moved %d times in a day", moves)
				}
			})
		})
	}
}

// TestNothingMovesWhileAReplicaIsMute, and has perhaps more streams than any other.
func TestNothingMovesWhileAReplicaIsMute(t *testing.T) {
	inWorld(t, func(t *testing.T, f *world, add func(*slog.Logger)) {
		f.pick = func(int) int { return f.fewest() }
		for range 3 {
			add(silent)
		}
		all := append(f.visit(0, 600), f.visit(2, 600)...)
		f.set(2, false, true)
		time.Sleep(time.Hour)
		if moves := movesOf(f, all); moves > 0 {
			t.Errorf("%d streams were moved", moves)
		}
		f.set(2, false, false)
		time.Sleep(5 * time.Minute)
		if most, counts := f.deviation(); most > 0.1 {
			t.Error(counts)
		}
	})
}

// TestGrowthIsNoFailure: where all replicas get more streams while one moves some away, it never has fewer. Whatever is moved
// later is not judged by what it had then.
func TestGrowthIsNoFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, f *world, add func(*slog.Logger)) {
		f.pick = func(int) int { return f.fewest() }
		var log strings.Builder
		add(slog.New(slog.NewTextHandler(&log, nil)))
		add(silent)
		all := f.visit(0, 1_000)
		for movesOf(f, all) == 0 {
			time.Sleep(time.Second)
		}
		f.visit(1, 1_000)
		f.visit(0, 100)
		time.Sleep(time.Minute)
		if moves := movesOf(f, all); moves > 50 {
			t.Fatalf("%d are moved between replicas that are level", moves)
		}
		f.visit(0, 20_000)
		time.Sleep(5 * time.Minute)
		if most, counts := f.deviation(); most > 0.1 || log.Len() > 0 {
			t.Errorf("%d; %s", counts, log.String())
		}
	})
}

// TestSampleIsMovedFirst, and nothing more if it comes back.
func TestSampleIsMovedFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, f *world, add func(*slog.Logger)) {
		f.pick = func(from int) int { return from }
		add(silent)
		add(silent)
		all := f.visit(0, 1_000)
		time.Sleep(settle - time.Second)
		if moves := movesOf(f, all); moves > 0 {
			t.Errorf("%d were moved before the replicas had been the same for long", moves)
		}
		time.Sleep(10 * time.Minute)
		if moves := movesOf(f, all); moves != 50 {
			t.Errorf("%d were moved, although none stays away", moves)
		}
	})
}

// TestSampleOfNothingIsNone: where no stream could be ended, as all have only just begun, nothing says that moving helps.
func TestSampleOfNothingIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []int
		b := New(Options{Self: "a", Ask: func(context.Context) ([]Load, bool) { return []Load{{"a", 1000}, {"b", 0}}, true },
			Registerer: prometheus.NewRegistry(), Log: silent, Returned: func() int { return 0 },
			Move: func(n int, _ time.Duration) int {
				asked = append(asked, n)
				return min(n, 100*(len(asked)-1)) // at first none
			}})
		b.round(t.Context())
		time.Sleep(settle)
		for range 3 {
			b.round(t.Context())
			time.Sleep(pause)
		}
		if got := fmt.Sprint(asked); got != "[50 50 250]" {
			t.Errorf("%s streams are asked for: not a sample until some were found", got)
		}
	})
}

// TestNothingMovesOnHalfKnowledge: a replica that is not among those that answer, or alone, keeps its streams.
func TestNothingMovesOnHalfKnowledge(t *testing.T) {
	for name, loads := range map[string][]Load{
		"nobody answers":       nil,
		"it is not among them": {{"b", 0}, {"c", 0}},
		"it is alone":          {{"a", 1000}},
		"few":                  {{"a", 18}, {"b", 0}},
		"within the tolerance": {{"a", 1090}, {"b", 1000}, {"c", 1000}},
		"it has fewer":         {{"a", 10}, {"b", 1000}},
		"found twice":          {{"a", 1000}, {"a", 1000}, {"b", 1000}},
		"one boasts":           {{"a", 1000}, {"b", math.MaxInt}, {"c", math.MaxInt}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := New(Options{Self: "a", Ask: func(context.Context) ([]Load, bool) { return loads, true }, Registerer: prometheus.NewRegistry(),
				Returned: func() int { return 0 },
				Move:     func(n int, _ time.Duration) int { t.Errorf("%s: %d streams are moved", name, n); return n }})
			b.round(t.Context())
			time.Sleep(time.Hour)
			b.round(t.Context())
		})
	}
}
