package livepage

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/livequery"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// teller is a Sink that writes down the names of events. If it is hasty, each Read is cut after one change.
type teller struct {
	eventstream.Sink
	hasty bool
	told  []string
}

func (t *teller) Wake()             {}
func (t *teller) NonBlocking() bool { return false }

func (t *teller) Emit(e eventstream.Event, _ stream.Claim) {
	name := e.Name
	if e.Kind == eventstream.KindChange {
		name = e.Change.String()
	}
	t.told = append(t.told, name)
}

func (t *teller) Relay() eventstream.Outcome { return eventstream.GoOn }

func (t *teller) Step(int) bool { return !t.hasty }

// TestPlacesThatAreAsBeforeAreToldIfSomethingCameAndLeft: a client is told that one object left its
// page and another came, and before the page is told, it is the old one again. Its order and total
// are those that the client was told last. But the client waits for the page that ends what it was
// told since.
func TestPlacesThatAreAsBeforeAreToldIfSomethingCameAndLeft(t *testing.T) {
	onPods(t, func(api *apitest.API, p *page) {
		to := &teller{}
		read := func() (told string) {
			t.Helper()
			to.told = nil
			p.Read(t.Context(), to)
			if len(to.told) > 1 {
				t.Fatalf("told at once: %q", to.told)
			}
			for _, name := range to.told {
				told = name
			}
			return told
		}
		expect := func(want string) {
			t.Helper()
			time.Sleep(time.Second)
			if told := read(); told != want {
				t.Fatalf("told %q, not %q", told, want)
			}
		}
		p.Read(t.Context(), to)
		api.Put("pods", "a/2", "spec.n:=0")
		to.hasty = true
		expect("deleted")
		expect("added")
		api.Put("pods", "a/2", "spec.n:=2")
		expect("deleted")
		expect("added")
		if p.ShareKey() != nil {
			t.Error("it is like others, which are told no page")
		}
		expect("page")
		expect("")
	})
}

// TestPagesOfWhichMoreIsToBeToldAreNotTheSame: who joins those who are told together stands where
// they do. If they know of a total that it was not told, it would never be told it.
func TestPagesOfWhichMoreIsToBeToldAreNotTheSame(t *testing.T) {
	one, other := new(cluster.Object), new(cluster.Object)
	at := func(change func(*pagePlace)) *pagePlace {
		p := &pagePlace{shown: []*cluster.Object{one}, order: []*cluster.Object{one}, total: 1}
		change(p)
		return p
	}
	first := at(func(*pagePlace) {})
	if order, ok := first.Compare(at(func(p *pagePlace) { p.told.Version = 7 })); order != 0 || !ok {
		t.Errorf("a page to which nothing happened: %d, %t", order, ok)
	}
	for what, p := range map[string]*pagePlace{
		"total": at(func(p *pagePlace) { p.total = 2 }),
		"freshness": at(func(p *pagePlace) {
			p.freshness.Tell(&teller{}, "", cache.Upstream{}, func() stream.Claim { return stream.Claim{} })
		}),
		"moved": at(func(p *pagePlace) { p.moved = true }),
		"shown": at(func(p *pagePlace) { p.shown = []*cluster.Object{other} }),
		"order": at(func(p *pagePlace) { p.order = nil }),
	} {
		if _, ok := first.Compare(p); ok {
			t.Errorf("a page of another %s is the same", what)
		}
	}
}

// onPods gives a page of one place among two pods, in the order of spec.n.
func onPods(t *testing.T, test func(*apitest.API, *page)) {
	synctest.Test(t, func(t *testing.T) {
		kind := cluster.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true, Watchable: true}
		api := apitest.New(kind)
		defer api.Close()
		api.Put("pods", "a/1", "spec.n:=1")
		api.Put("pods", "a/2", "spec.n:=2")
		kinds, err := cache.NewKinds(api.Connect(t), cache.Options{Topic: stream.Options{Events: 100, Bytes: 64 << 20, Age: time.Hour}},
			slog.New(slog.NewTextHandler(io.Discard, nil)))
		if err != nil {
			t.Fatal(err)
		}
		b := livequery.New(livequery.Options{Queries: 8, Bytes: 1 << 20, Linger: 5 * time.Second, Keep: 100, Processors: budget.NewQueue(2, 0, 0), Registerer: prometheus.NewRegistry()})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { _ = kinds.Run(ctx) })
		running.Go(func() { b.Run(ctx) })
		store, release, err := kinds.Use(kind, "")
		if err != nil {
			t.Fatal(err)
		}
		order, err := cache.Paths{}.Order("spec.n")
		if err != nil {
			t.Fatal(err)
		}
		p := &page{source: source{
			request: request{target: visibility.Target{Version: "v1", Resource: "pods"}, order: order, limit: 1},
			queries: b, in: access.Grant{Kinds: kinds, Store: store, Release: release}, quotaOwner: "user",
		}}
		defer p.Close()
		if p.asked, err = p.ask(); err != nil {
			t.Fatal(err)
		}
		if err := p.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		test(api, p)
	})
}
