package webhook

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/tracing"
)

// Target is a webhook. Which transitions it is sent, its outbox.Route says.
type Target struct {
	Name        string
	URL         string
	SecretFile  string        // empty: nothing is signed
	Digest      time.Duration // 0: each transition is a message
	Concurrency int           // attempts at a time
	Body        string        // empty: a CloudEvent; a name of readyMade; else CEL over event
}

// Options configure Senders; all are required.
type Options struct {
	Targets    []Target      // of different names
	Keep       time.Duration // how long a message is kept that cannot be sent
	Registerer prometheus.Registerer
	Tracer     *tracing.Tracer // nil: there are no traces
	Log        *slog.Logger
}

// Senders send to all targets. Their methods may be called concurrently.
type Senders struct {
	times   times
	metrics *metrics
	tracer  *tracing.Tracer
	log     *slog.Logger

	mu      sync.Mutex
	targets []*target
	keep    time.Duration
	store   *outbox.Store   // nil: the database is not ready yet
	begin   func(t *target) // has a target sent to; nil before Run, and when it has ended
}

// target is one webhook, as this replica knows it.
type target struct {
	Target
	client  *http.Client
	tracer  *tracing.Tracer
	secrets *secrets
	body    *body         // nil: a CloudEvent
	url     string        // identifies the URL without showing it
	within  time.Duration // how long an attempt may take
	times   times
	wakes   *stream.WakeChannel // woken when there may be something to send
	log     *slog.Logger
	metrics *metrics
	after   *target            // what the target was before a change; nil: nothing
	stop    context.CancelFunc // ends the sending; nil before it begins
	ended   chan struct{}      // closed when nothing is sent any more, or ever

	mu      sync.Mutex
	sending bool // this replica holds the lease
	change  outbox.Switch
	changed int  // how often change was set here
	unsaved bool // change is not in the database yet
	last    outbox.LastAnswer
	counts  outbox.Counts
	counted bool // there are counts of this term
}

// New reads the secrets, and compiles the bodies. Its errors name the target's field, with its
// place in the list of targets.
func New(opts Options) (*Senders, error) {
	s := &Senders{times: usual, tracer: opts.Tracer, log: opts.Log}
	s.metrics = newMetrics(opts.Registerer, s)
	use, err := s.Replace(opts.Targets, opts.Keep)
	if err != nil {
		return nil, err
	}
	use()
	return s, nil
}

// Replace makes ready to send to other targets, for use to put them to use. A target that stays the same is sent to
// without a break. What a target that is gone was not sent is kept for as long as Options.Keep. Errors are those of
// New. Only one Replace may be under way.
func (s *Senders) Replace(targets []Target, keep time.Duration) (use func(), err error) {
	before := s.all()
	var next []*target
	var faults []error
	for i, configured := range targets {
		n := slices.IndexFunc(before, func(t *target) bool { return t.Name == configured.Name })
		if n >= 0 && before[n].Target == configured {
			next = append(next, before[n])
			continue
		}
		t, err := newTarget(configured, s.tracer, s.log)
		if err != nil {
			faults = append(faults, fmt.Errorf("webhooks[%d].%w", i, err))
			continue
		}
		if t.metrics, t.times = s.metrics, s.times; n >= 0 {
			t.after = before[n]
		}
		next = append(next, t)
	}
	return func() { s.use(before, next, keep) }, errors.Join(faults...)
}

func (s *Senders) use(before, next []*target, keep time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.targets, s.keep = next, keep
	for _, t := range next {
		t.metrics.begin(t.Name)
	}
	for _, t := range before {
		switch {
		case slices.Contains(next, t):
		case t.stop == nil:
			close(t.ended)
		default:
			t.stop()
		}
	}
	for _, t := range next {
		if s.begin != nil && !slices.Contains(before, t) {
			s.begin(t)
		}
	}
}

// all are the targets that there are now.
func (s *Senders) all() []*target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.targets
}

func newTarget(configured Target, tracer *tracing.Tracer, log *slog.Logger) (*target, error) {
	log = log.With("webhook", configured.Name)
	secrets, err := newSecrets(configured.SecretFile, log)
	if err != nil {
		return nil, fmt.Errorf("secretFile: %w", err)
	}
	body, err := newBody(configured.Body)
	if err != nil {
		return nil, fmt.Errorf("body: %w; known by name are slack, teams and mattermost", err)
	}
	sum := sha256.Sum256([]byte(configured.URL))
	return &target{
		tracer: tracer,
		Target: configured, client: newClient(configured.Concurrency), secrets: secrets, body: body, url: hex.EncodeToString(sum[:]),
		within: attemptWithin, times: usual, wakes: stream.NewWakeChannel(), log: log, ended: make(chan struct{}),
	}, nil
}

// Wake says that there may be new messages. It does not wait.
func (s *Senders) Wake() {
	for _, t := range s.all() {
		t.wakes.Wake()
	}
}

// Run sends until the context ends, from when the database is ready.
func (s *Senders) Run(ctx context.Context, store *outbox.Store, ready <-chan struct{}) error {
	select {
	case <-ready:
	case <-ctx.Done():
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "gateway"
	}
	renewer := &leaseRenewer{store: store, holder: host[:min(len(host), 64)] + "-" + rand.Text()[:10], times: s.times, terms: map[*term]*lease{}}
	batcher := &batcher{store: store, queue: make(chan *sentResult), times: s.times, log: s.log}
	var running, batching sync.WaitGroup
	batching.Go(batcher.run)
	s.mu.Lock()
	s.store = store
	s.begin = func(t *target) {
		sending, stop := context.WithCancel(ctx)
		t.stop = stop
		running.Go(func() {
			defer stop()
			t.run(sending, store, batcher, renewer)
		})
	}
	for _, t := range s.targets {
		s.begin(t)
	}
	s.mu.Unlock()
	running.Go(func() { renewer.run(ctx) })
	running.Go(func() { s.expire(ctx, store) })
	<-ctx.Done()
	s.mu.Lock()
	s.begin = nil
	s.mu.Unlock()
	running.Wait()
	close(batcher.queue)
	batching.Wait()
	return nil
}

const (
	// expireAtOnce is how many messages of a target are removed in one transaction.
	expireAtOnce = 100
	// expireAgain is how long after everything was removed the next search for more begins.
	expireAgain = 10 * time.Minute
)

// expire removes what has been kept for long enough. All replicas do so; those that come later find less.
func (s *Senders) expire(ctx context.Context, store *outbox.Store) {
	for wait := time.Second; ; {
		if !backoff.Pause(ctx, jittered(wait)) {
			return
		}
		s.mu.Lock()
		keep := s.keep
		s.mu.Unlock()
		removed, err := store.Expire(ctx, time.Now().Add(-keep), expireAtOnce)
		s.metrics.expired.Add(float64(removed))
		if wait = expireAgain; removed > 0 {
			wait = time.Second
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("old messages are not removed for now", "error", err)
		}
	}
}

// makeBody is what is sent for an event, and its type.
func (t *target) makeBody(event cloudEvent) (contentType string, body []byte, err error) {
	if t.body != nil {
		body, err = t.body.make(event)
		return "application/json", body, err
	}
	body, err = json.Marshal(event)
	return "application/cloudevents+json", body, err
}

// send makes an attempt.
func (t *target) send(ctx context.Context, id string, event cloudEvent) result {
	contentType, body, err := t.makeBody(event)
	if err != nil {
		return result{outcome: unmade, answer: readable(err.Error())}
	}
	began := time.Now()
	r := t.attempt(ctx, id, contentType, body)
	t.metrics.seconds.WithLabelValues(t.Name).Observe(time.Since(began).Seconds())
	t.metrics.attempts.WithLabelValues(t.Name, r.outcome).Inc()
	return r
}

func now() jobs.Time { return jobs.At(time.Now()) }
