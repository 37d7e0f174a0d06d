package balance

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
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

// fleet is replicas whose streams are only counted. It is for one bubble.
type fleet struct {
	mu       sync.Mutex
	replicas []*replica
	pick     func(from int) int // where a client goes that was at a replica
}

type replica struct {
	fleet  *fleet
	number int
	ready  bool
	open   []*visitor // the oldest first
	moving map[*visitor]bool
}

func (f *fleet) loads(context.Context) (all []Load) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.replicas {
		if r.ready {
			all = append(all, Load{fmt.Sprint(r.number), len(r.open)}, Load{fmt.Sprint(r.number), len(r.open)}) // by two addresses
		}
	}
	return all
}

// add adds a replica, and lets it balance.
func (f *fleet) add(ctx context.Context, running *sync.WaitGroup, log *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &replica{fleet: f, number: len(f.replicas), ready: true, moving: map[*visitor]bool{}}
	f.replicas = append(f.replicas, r)
	b := New(Options{Self: fmt.Sprint(r.number), Ask: f.loads, Move: r.move, Registerer: prometheus.NewRegistry(), Log: log})
	running.Go(func() { _ = b.Run(ctx) })
}

// visit has clients come to a replica.
func (f *fleet) visit(replica, clients int) (all []*visitor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range clients {
		all = append(all, &visitor{})
	}
	f.replicas[replica].open = append(f.replicas[replica].open, all...)
	return all
}

func (r *replica) move(streams int, within time.Duration) (found int) {
	r.fleet.mu.Lock()
	defer r.fleet.mu.Unlock()
	for _, c := range r.open {
		if found == streams {
			return found
		}
		if r.moving[c] {
			continue
		}
		found++
		r.moving[c] = true
		time.AfterFunc(rand.N(within), func() {
			r.fleet.mu.Lock()
			defer r.fleet.mu.Unlock()
			delete(r.moving, c)
			for i, o := range r.open {
				if o == c {
					r.open = append(r.open[:i], r.open[i+1:]...)
					break
				}
			}
			c.moves++
			time.AfterFunc(100*time.Millisecond+rand.N(400*time.Millisecond), func() {
				r.fleet.mu.Lock()
				defer r.fleet.mu.Unlock()
				to := r.fleet.replicas[r.fleet.pick(r.number)]
				to.open = append(to.open, c)
			})
		})
	}
	return found
}

// deviation is how far the replica that is farthest from the mean is from it, as a part of it.
func (f *fleet) deviation() (most float64, counts []int) {
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
	}{{1_000, false, 0.2}, {1_000, true, 0.1}, {5_000, false, 0.1}, {20_000, false, 0.1}} {
		clients := test.clients
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				defer running.Wait()
				defer cancel()
				f := &fleet{}
				f.pick = func(int) int { return rand.IntN(len(f.replicas)) }
				if test.fewest {
					f.pick = func(int) int { return f.fewest() }
				}
				for range 2 {
					f.add(ctx, &running, slog.New(slog.DiscardHandler))
				}
				all := append(f.visit(0, clients/2), f.visit(1, clients/2)...)
				time.Sleep(10 * time.Minute)
				if moved := movesOf(f, all); moved > 0 {
					t.Errorf("%d streams were moved between replicas that are level", moved)
				}
				for range 6 {
					f.add(ctx, &running, slog.New(slog.DiscardHandler))
				}
				time.Sleep(5 * time.Minute)
				if most, counts := f.deviation(); most > test.within {
					t.Errorf("after five minutes: %.0f %% from the mean: %d", 100*most, counts)
				}
				after := movesOf(f, all)
				if after > clients*5/4 {
					t.Errorf("%d clients were moved %d times", clients, after)
				}
				time.Sleep(time.Hour)
				if more := movesOf(f, all) - after; more > clients/20 {
					t.Errorf("%d streams of %d were moved once the replicas were level", more, clients)
				}
			})
		})
	}
}

func movesOf(f *fleet, all []*visitor) (moves int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range all {
		moves += c.moves
	}
	return moves
}

// fewest is the replica with the fewest streams. The lock is held.
func (f *fleet) fewest() (number int) {
	for i, r := range f.replicas {
		if len(r.open) < len(f.replicas[number].open) {
			number = i
		}
	}
	return number
}

// TestStickyBalancerIsLeftAlone: clients that are sent back to where they came from are not moved again and again.
func TestStickyBalancerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		f := &fleet{pick: func(from int) int { return from }}
		var log strings.Builder
		f.add(ctx, &running, slog.New(slog.NewTextHandler(&log, nil)))
		f.add(ctx, &running, slog.New(slog.DiscardHandler))
		all := f.visit(0, 1_000)
		time.Sleep(24 * time.Hour)
		cancel()
		running.Wait()
		time.Sleep(time.Minute)
		if moves := movesOf(f, all); moves > 9_000 {
			t.Errorf("1,000 clients were moved %d times in a day", moves)
		}
		if !strings.Contains(log.String(), "does not spread them") {
			t.Error(log.String())
		}
	})
}

// TestNothingMovesOnHalfKnowledge: a replica that is not among those that answer, or alone, keeps its streams.
func TestNothingMovesOnHalfKnowledge(t *testing.T) {
	for name, loads := range map[string][]Load{
		"nobody answers":       nil,
		"it is not among them": {{"b", 0}, {"c", 0}},
		"it is alone":          {{"a", 1000}},
		"few":                  {{"a", 3}, {"b", 0}},
		"within the tolerance": {{"a", 1029}, {"b", 1000}, {"c", 1000}},
		"it has fewer":         {{"a", 10}, {"b", 1000}},
		"found twice":          {{"a", 1000}, {"a", 1000}, {"b", 1000}},
		"one boasts":           {{"a", 1000}, {"b", math.MaxInt}, {"c", math.MaxInt}},
	} {
		b := New(Options{Self: "a", Ask: func(context.Context) []Load { return loads }, Registerer: prometheus.NewRegistry(),
			Move: func(n int, _ time.Duration) int { t.Errorf("%s: %d streams are moved", name, n); return n }})
		b.round(t.Context())
	}
}

// TestReplicasAreAskedByAllAddressesOfTheirNames, with the token, and what is no answer is none.
func TestReplicasAreAskedByAllAddressesOfTheirNames(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"good": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != Path || r.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("%s %s", r.URL, r.Header)
			}
			fmt.Fprint(w, `{"instance":"x","streams":7}`)
		},
		"not ready": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "waiting", http.StatusServiceUnavailable) },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"no name":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"streams":7}`) },
		"negative": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"instance":"y","streams":-7}`) },
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.Repeat(" ", 1<<20)+`{"instance":"z"}`)
		},
	}
	r := &Replicas{Token: func() (string, error) { return "secret", nil }, Log: slog.New(slog.DiscardHandler)}
	for _, answer := range answers {
		server := httptest.NewServer(answer)
		defer server.Close()
		r.Addresses = append(r.Addresses, server.Listener.Addr().String())
	}
	r.Addresses = append(r.Addresses, strings.Replace(r.Addresses[0], "127.0.0.1", "localhost", 1), "127.0.0.1:1")
	got := each(r.Ask(t.Context()))
	if len(got) != 1 || got[0] != (Load{"x", 7}) {
		t.Errorf("%+v", got)
	}
}
