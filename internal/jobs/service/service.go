// Package service keeps the history of a gateway: it brings the database's schema up to date, runs a recorder for each
// cluster and kind, and finds the log that somebody wants to read.
//
// What it promises: nothing else waits for the database. While the database is away, Run and the
// recorders try again, and readers are told so (ErrAway). Readers ask in somebody's name (For), and
// have connections of their own, so they cannot keep a recorder from writing.
//
// What it refuses: to decide who may see what. Packages http/historyapi and http/queueapi do that,
// and passes it on as a store.Filter.
package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs/logtail"
	"github.com/kubecast/kubecast/internal/jobs/owners"
	"github.com/kubecast/kubecast/internal/jobs/reasons"
	"github.com/kubecast/kubecast/internal/jobs/recorder"
	"github.com/kubecast/kubecast/internal/jobs/rules"
	"github.com/kubecast/kubecast/internal/jobs/seal"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// Options configure a Service; all are required but Wrote.
type Options struct {
	Database   store.Options
	Rules      *rules.Set
	Serves     func(group, resource string) bool // the kinds that the gateway serves; others are not recorded
	Migrate    bool                              // whether the schema is brought up to date, or only looked at
	Keep       time.Duration                     // how long after its deletion a job is kept
	KeepSpec   bool                              // whether the spec of each job is kept at its end
	Runs       bool                              // whether the lives of jobs' pods are recorded
	LogTail    int                               // how many bytes of the end of each job's log are kept; 0: none
	Wrote      func()                            // called after each batch of transitions that this replica has written; must not wait; nil: nobody
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

// Service is the history of all clusters. Its methods may be called concurrently.
type Service struct {
	opts     Options
	kinds    []string // that are recorded
	database *store.Store
	holder   string // what the names of this replica's recorders begin with
	metrics  *recorder.Metrics
	logs     *logtail.Metrics
	log      *slog.Logger
	ready    chan struct{}      // closed once the schema is as it must be, and the key is known
	key      [seal.KeySize]byte // of numbers that are sealed; known once ready
	numbers  sync.Map           // of *seal.Numbers by store.LogName
	usages   *budget.Queue      // turns to have usage read

	forgetting sync.Mutex // held by the one goroutine, of all clusters', that removes what is no longer recorded
	tails      tails

	mu        sync.Mutex
	recorders []*recorder.Recorder
	clusters  []*cluster.Cluster // that are recorded
	err       error              // why the schema is not ready; nil before the first attempt has failed
}

// New reads the database's address, and does not connect. Its errors are those of the address.
func New(opts Options) (*Service, error) {
	database, err := store.New(opts.Database)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "gateway"
	}
	a := &Service{
		opts: opts, database: database, holder: host[:min(len(host), 64)] + "-",
		metrics: recorder.NewMetrics(opts.Registerer), logs: logtail.NewMetrics(opts.Registerer), log: opts.Log, ready: make(chan struct{}),
		usages: budget.NewQueue(usagesAtOnce, 1, 0),
		tails:  tails{byName: map[tailName]*Tail{}},
	}
	for _, name := range opts.Rules.Kinds() {
		if resource, group := split(name); opts.Serves(group, resource) {
			a.kinds = append(a.kinds, name)
		}
	}
	opts.Registerer.MustRegister((*collector)(a))
	return a, nil
}

// Close ends all connections. It must come after everything else has ended, since a recorder gives
// its lease back at its end.
func (a *Service) Close() error {
	a.tails.close()
	return a.database.Close()
}

// Run makes sure that the schema is as it must be, however long that takes.
func (a *Service) Run(ctx context.Context) error {
	retry, news := backoff.New(time.Second, 15*time.Second), backoff.News{}
	for {
		err := a.prepare(ctx)
		if err == nil {
			close(a.ready)
			if news.Over() {
				a.log.Info("the history's database is there")
			}
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		a.metrics.Failed(ctx, err)
		a.mu.Lock()
		a.err = err
		a.mu.Unlock()
		if news.Is(err) {
			a.log.Warn("the history's database cannot be used for now; all else goes on", "database", a.Address(), "error", store.Named(err))
		}
		if !retry.Wait(ctx) {
			return nil
		}
	}
}

// answerWithin is how long a database may take to answer at all. After that it may take longer, since another replica
// may be changing the schema.
const answerWithin = 5 * time.Second

func (a *Service) prepare(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := a.database.Ping(within); err != nil {
		return err
	}
	if err := a.migrate(ctx); err != nil {
		return err
	}
	proposed := seal.NewKey()
	key, err := a.database.Secret(ctx, "numbers", proposed[:])
	if err == nil && len(key) != seal.KeySize {
		err = fmt.Errorf("the secret numbers has %d bytes, not %d", len(key), seal.KeySize)
	}
	if err == nil {
		a.key = [seal.KeySize]byte(key)
	}
	return err
}

func (a *Service) migrate(ctx context.Context) error {
	if a.opts.Migrate {
		return a.database.Migrate(ctx)
	}
	err := a.database.Check(ctx)
	if errors.Is(err, store.ErrOlder) {
		return fmt.Errorf("%w; `gateway history migrate` does that, since history.migrate is false", err)
	}
	return err
}

// Address is the database's address as it is shown to people.
func (a *Service) Address() string { return a.opts.Database.Redacted() }

// Refused is why the gateway must not use the database since its start: its schema is another
// release's. It is nil if it may, while the database is away, and once it could be used: from then
// on everybody who is served goes on being served.
func (a *Service) Refused() error {
	select {
	case <-a.ready:
		return nil
	default:
		return a.database.Refused()
	}
}

// Ready is closed once the database can be used: its schema is as it must be.
func (a *Service) Ready() <-chan struct{} { return a.ready }

// Database is the database. Whoever uses it says in whose name (store.Store.For).
func (a *Service) Database() *store.Store { return a.database }

// Record records the kinds of a cluster until the context ends.
func (a *Service) Record(ctx context.Context, kinds *cache.Kinds) error {
	select {
	case <-a.ready:
	case <-ctx.Done():
		return nil
	}
	a.mu.Lock()
	a.clusters = append(a.clusters, kinds.Cluster())
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.clusters = slices.DeleteFunc(a.clusters, func(c *cluster.Cluster) bool { return c == kinds.Cluster() })
	}()
	var recording sync.WaitGroup
	recording.Go(func() { a.forget(ctx) })
	waits := reasons.New(reasons.Options{Kinds: kinds, Jobs: a.kinds, Serves: a.opts.Serves, Log: a.log})
	recording.Go(func() { _ = waits.Run(ctx) })
	finder := owners.New(kinds.Cluster(), a.opts.Rules, a.log.With("cluster", kinds.Cluster().Name()))
	opts, ofPods := recorder.Options{Waits: waits, Owners: finder}, recorder.Options{Waits: waits}
	if a.opts.LogTail > 0 && a.recordsRuns() { // runs say whose log it is
		keeper := logtail.New(logtail.Options{
			Cluster: kinds.Cluster(), Database: a.database.For(store.System("logs")), Bytes: a.opts.LogTail, Metrics: a.logs, Log: a.log.With("cluster", kinds.Cluster().Name()),
		})
		opts.Ended, ofPods.Ending = keeper.Ended, keeper.Ending
		recording.Go(func() { keeper.Run(ctx) })
	}
	for _, name := range a.kinds {
		recording.Go(func() { a.record(ctx, kinds, opts, name) })
	}
	if a.recordsRuns() {
		recording.Go(func() { a.recordRuns(ctx, kinds, ofPods) })
	}
	recording.Wait()
	return nil
}

// record records a kind of a cluster whenever the cluster has it.
func (a *Service) record(ctx context.Context, kinds *cache.Kinds, opts recorder.Options, name string) {
	opts.Rule = a.opts.Rules.For(name)
	log, news := a.log.With("cluster", kinds.Cluster().Name(), "kind", name), backoff.News{}
	kinds.Follow(ctx, name, func(ctx context.Context, using *cache.Store) error {
		news.Over()
		opts := opts
		opts.Store = using
		return a.run(ctx, kinds, name, opts)
	}, func(err error) {
		if err != nil && news.Is(err) {
			log.Info("a kind is not recorded, since the cluster does not have it for now", "error", err)
		}
	})
}

// recordsRuns reports whether pods are recorded. What the gateway does not serve, it does not record.
func (a *Service) recordsRuns() bool { return a.opts.Runs && a.opts.Serves("", "pods") }

// recordRuns records the pods of a cluster's jobs, as long as the gateway may list them.
func (a *Service) recordRuns(ctx context.Context, kinds *cache.Kinds, opts recorder.Options) {
	var news backoff.News
	kinds.Retry(ctx, time.Minute, func(ctx context.Context) error {
		pods, err := kinds.Cluster().Named(ctx, "pods")
		if err == nil {
			err = kinds.Cluster().Lists(ctx, pods)
		}
		if err != nil {
			return err
		}
		return kinds.FollowOnce(ctx, "pods", func(ctx context.Context, using *cache.Store) error {
			news.Over()
			opts := opts
			opts.Store = using
			return a.run(ctx, kinds, store.RunsResource, opts)
		})
	}, func(err error) {
		if err != nil && news.Is(err) {
			a.log.Warn("the lives of jobs' pods are not recorded, since these cannot be listed for now", "cluster", kinds.Cluster().Name(), "error", err)
		}
	})
}

// run runs a recorder of a log of a cluster, with options that say what it records.
func (a *Service) run(ctx context.Context, kinds *cache.Kinds, log string, opts recorder.Options) error {
	opts.Cluster, opts.Database, opts.Expiring = kinds.Cluster(), a.database.For(store.Recorder(kinds.Cluster().Name()+"/"+log)), a.database.For(store.System("retention"))
	opts.Holder, opts.Keep, opts.KeepSpec, opts.Wrote = a.holder+rand.Text()[:10], a.opts.Keep, a.opts.KeepSpec, a.wrote
	opts.Metrics, opts.Log = a.metrics, a.log.With("database", a.Address())
	r := recorder.New(opts)
	a.begin(r)
	defer a.end(r)
	return r.Run(ctx)
}

func (a *Service) begin(r *recorder.Recorder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recorders = append(a.recorders, r)
}

func (a *Service) end(r *recorder.Recorder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recorders = slices.DeleteFunc(a.recorders, func(other *recorder.Recorder) bool { return other == r })
}
