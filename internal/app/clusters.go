package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/shards"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/tracing"
)

// clusters are the gateway's clusters, which can be changed while it runs.
type clusters struct {
	agent      string // the user agent
	cache      cache.Options
	tracer     *tracing.Tracer
	edge       config.Edge
	experiment config.Experimental
	serves     func(group, resource string) bool
	authorizer authorizer
	jobs       *service.Service      // nil: no history is kept
	accounts   *auth.ServiceAccounts // follows the default cluster; nil: no service account is accepted
	// revocationsIn is the namespace of the default cluster's ConfigMap that has the revocations; empty: there is
	// none.
	revocations   *auth.Revocations
	revocationsIn string
	serve         func([]*cache.Kinds) error // tells the handlers which clusters there are, before one is stopped
	log           *slog.Logger

	mu      sync.Mutex
	members []*member // the first is the default one
	group   *errgroup.Group
	running context.Context // nil before Run
}

// member is one cluster.
type member struct {
	config config.Cluster
	kinds  *cache.Kinds
	follow func(context.Context) error // runs its part of the authorizer
	stop   context.CancelFunc          // nil before it runs
	files  []string                    // its kubeconfigs
	// identity is the cluster's own, by whatever name and address it is reached; "" before it is known.
	identity string
	read     [sha256.Size]byte // digest of these files when they were read last; used only by reload
}

// newClusters prepares the clusters, and does not connect to any. The error has the faults of all
// of them. Before they run, authorize has to say who may see what.
func newClusters(g *assembly) (*clusters, error) {
	c := &clusters{agent: "kubecast/" + g.version, cache: cacheOptions(g.cfg), tracer: g.tracer, edge: g.cfg.Edge, experiment: g.cfg.Experimental, serves: g.cfg.Kinds.Serves, jobs: g.jobs, accounts: g.accounts, revocations: g.revocations, log: g.log}
	var faults []error
	for _, wanted := range g.cfg.Clusters {
		m, err := c.connect(wanted)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		c.members = append(c.members, m)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	c.revocationsIn, _, _ = strings.Cut(g.cfg.Auth.Revocations.ConfigMap, "/")
	c.setHome(nil)
	return c, nil
}

// authorize has an authorizer decide who may see what of the clusters.
func (c *clusters) authorize(a authorizer) {
	c.authorizer = a
	for _, m := range c.members {
		c.admit(m)
	}
}

func cacheOptions(cfg config.Config) cache.Options {
	opts := cache.Options{
		IdleAfter: cfg.Cache.IdleAfter.Std(),
		AtMost:    cfg.Kinds.AtMost,
		Indexes:   map[string][]string{},
		Topic: stream.Options{
			Events: cfg.Ring.Events,
			Bytes:  int64(cfg.Ring.Bytes),
			Age:    cfg.Ring.Age.Std(),
			Gather: cfg.Stream.Gather.Std(),
		},
		// A catch-up takes the place of a ring, so it may be as large.
		CatchUp: cache.CatchUpBound{
			Events:  cfg.CatchUp.Events,
			Bytes:   int64(cfg.Ring.Bytes),
			Timeout: cfg.CatchUp.Timeout.Std(),
		},
	}
	for kind, paths := range cfg.Cache.Indexes {
		opts.Indexes[kind.String()] = paths
	}
	for _, kind := range cfg.Cache.Preload {
		opts.Preload = append(opts.Preload, kind.String())
	}
	return opts
}

func (c *clusters) connect(wanted config.Cluster) (*member, error) {
	opts := c.options(wanted, c.edge.Core)
	files := opts.Files()
	read := digest(files) // before they are used, so that no change is overlooked
	connection, err := cluster.Connect(opts)
	if err != nil {
		return nil, err
	}
	kinds, err := cache.NewKinds(connection, c.cache, c.log)
	if err != nil {
		return nil, err
	}
	c.log.Info("cluster", "name", wanted.Name, "server", connection.Host())
	return &member{config: wanted, kinds: kinds, files: files, read: read}, nil
}

// options say how a cluster is reached; at an edge, by which cores.
func (c *clusters) options(wanted config.Cluster, cores []string) cluster.Options {
	return cluster.Options{
		Name: wanted.Name, Kubeconfig: wanted.Kubeconfig, Context: wanted.Context,
		Core:      cluster.Core{Addresses: cores, TokenFile: c.edge.TokenFile, CAFile: c.edge.CAFile, Shards: c.experiment.Shards},
		Share:     shareOf(c.experiment),
		UserAgent: c.agent, Serves: c.serves, Tracer: c.tracer,
	}
}

// shareOf is what a gateway has of its clusters.
func shareOf(e config.Experimental) shards.Share {
	divided := func(group, resource string) bool {
		return slices.Contains(e.ShardKinds, config.Kind{Group: group, Resource: resource})
	}
	number, of := e.Part()
	return shards.Share{Shard: shards.Shard{Number: number, Of: of}, Kinds: divided}
}

// byEach connects to a member's cluster by each core alone. Without cores, that is the member's own connection.
func (c *clusters) byEach(m *member) (all []*cluster.Cluster, err error) {
	if len(c.edge.Core) == 0 || c.experiment.Shards > 0 { // a shard's core by itself answers for no whole
		return []*cluster.Cluster{m.kinds.Cluster()}, nil
	}
	for _, core := range c.edge.Core {
		connection, err := cluster.Connect(c.options(m.config, []string{core}))
		if err != nil {
			return nil, err
		}
		all = append(all, connection)
	}
	return all, nil
}

// admit adds a cluster to the authorizer.
func (c *clusters) admit(m *member) { m.follow = c.authorizer.add(m.kinds.Cluster()) }

// setHome makes the first member the default cluster, if it is another one than before: its service accounts are
// accepted, and its ConfigMap says what was revoked.
func (c *clusters) setHome(before *member) {
	home := c.members[0]
	if home == before {
		return
	}
	if c.accounts != nil {
		c.accounts.SetHome(home.config.Name, home.kinds.Cluster().TokenReviews())
	}
	if c.revocationsIn != "" {
		c.revocations.SetHome(home.kinds.Cluster().ConfigMaps(c.revocationsIn), home.kinds.Cluster().Answers)
	}
}

// kinds returns the kinds of the clusters that there are now.
func (c *clusters) kinds() (all []*cache.Kinds) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return kindsOf(c.members)
}

func kindsOf(members []*member) (all []*cache.Kinds) {
	for _, m := range members {
		all = append(all, m.kinds)
	}
	return all
}

// Run runs the clusters until the context ends, or one of them fails, and waits for all of them.
func (c *clusters) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	c.mu.Lock()
	c.group, c.running = group, running
	for _, m := range c.members {
		c.start(m)
	}
	c.mu.Unlock()
	group.Go(func() error { // keeps the group running, so that more clusters can be started
		<-running.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.group = nil
		return nil
	})
	return group.Wait()
}

// start runs a cluster. The caller holds the lock.
func (c *clusters) start(m *member) {
	ctx, stop := context.WithCancel(c.running)
	m.stop = stop
	c.group.Go(func() error {
		defer stop()
		var running errgroup.Group
		running.Go(func() error { return m.kinds.Run(ctx) })
		running.Go(func() error { return m.follow(ctx) })
		running.Go(func() error { c.identify(ctx, m); return nil })
		if c.jobs != nil {
			running.Go(func() error { return c.jobs.Record(ctx, m.kinds) })
		}
		return running.Wait()
	})
}

// identify finds out which cluster a member is, and warns if another one is the same: everything of it would be watched,
// shown and recorded twice.
func (c *clusters) identify(ctx context.Context, m *member) {
	for retry := backoff.New(time.Second, time.Minute); ; {
		identity, err := m.kinds.Cluster().Identity(ctx)
		if err == nil {
			c.identified(m, identity)
			return
		}
		if !retry.Wait(ctx) {
			return
		}
	}
}

func (c *clusters) identified(m *member, identity string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.identity = identity
	for _, other := range c.members {
		if other.config.Name != m.config.Name && other.identity == identity && slices.Contains(c.members, m) {
			c.log.Warn("one cluster is configured under two names: the namespace kube-system has the same uid in both", "one", other.config.Name, "other", m.config.Name)
		}
	}
}

// prepare makes ready that the wanted clusters replace those that there are. New ones are started then, and the others
// end, with everything that is served from them.
func (c *clusters) prepare(wanted []config.Cluster) (use func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var next, added []*member
	var faults []error
	for _, w := range wanted {
		i := slices.IndexFunc(c.members, func(m *member) bool { return m.config == w })
		if i >= 0 {
			next = append(next, c.members[i])
			continue
		}
		m, err := c.connect(w)
		if err != nil {
			faults = append(faults, fmt.Errorf("clusters: %w", err))
			continue
		}
		next, added = append(next, m), append(added, m)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.group != nil { // else the gateway is ending
			c.replace(next, added)
		}
	}, errors.Join(faults...)
}

// replace changes the members. The caller holds the lock.
func (c *clusters) replace(next, added []*member) {
	before := c.members
	c.members = next
	for _, m := range added {
		c.admit(m)
		c.start(m)
	}
	c.setHome(before[0])
	if err := c.serve(kindsOf(next)); err != nil {
		c.log.Error("clusters cannot be changed", "error", err) // cannot be: there is always at least one
	}
	for _, m := range before {
		if !slices.Contains(next, m) {
			c.log.Info("cluster is removed", "name", m.config.Name, "server", m.kinds.Cluster().Host())
			m.kinds.Remove()
			m.stop()
		}
	}
}

// refresh reads a cluster's kubeconfig again. A cluster whose API server has another address by now is replaced.
func (c *clusters) refresh(m *member) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.group == nil || !slices.Contains(c.members, m) {
		return nil
	}
	moved, err := m.kinds.Cluster().Refresh()
	if err != nil {
		return err
	}
	if !moved {
		c.log.Info("cluster has other credentials", "name", m.config.Name)
		return nil
	}
	again, err := c.connect(m.config)
	if err != nil {
		return err
	}
	next := slices.Clone(c.members)
	next[slices.Index(next, m)] = again
	c.replace(next, []*member{again})
	return nil
}

// setAtMost changes how many kinds are cached at once in each cluster.
func (c *clusters) setAtMost(kinds int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cache.AtMost = kinds
	for _, m := range c.members {
		m.kinds.SetAtMost(kinds)
	}
}

// list returns the members that there are now.
func (c *clusters) list() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.members)
}
