package recorder

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// Metrics are the metrics of all recorders of a gateway. A nil Metrics counts nothing.
type Metrics struct {
	transitions *prometheus.CounterVec
	late        *prometheus.CounterVec
	rows        *prometheus.CounterVec
	kept        *prometheus.CounterVec
	errors      *prometheus.CounterVec
	batch       prometheus.Histogram
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_history_transitions_total", Help: "Transitions written by this replica, by the state to which they lead.",
		}, []string{"cluster", "kind", "state"}),
		late: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_history_late_total", Help: "Transitions written after the fact: what lay between is not known.",
		}, []string{"cluster", "kind"}),
		rows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_history_rows_total", Help: "Rows of jobs, transitions, runs and specs that were written (jobs and runs: also again), and removed after history.keep.",
		}, []string{"table", "operation"}),
		kept: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_history_specs_total",
			Help: "Jobs that ended, by what became of their specs: kept, over (history.keepBudget), large, dropped (too many were found at once).",
		}, []string{"outcome"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_history_errors_total", Help: "Failures of the history's database, by cause: away, busy (no turn could be had in time), password, rights (`gateway preflight` says which), schema, full, readonly, moved (another replica has written: harmless), other.",
		}, []string{"cause"}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kubecast_history_batch_seconds", Help: "How long it took to write what was read together, in one transaction.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 10),
		}),
	}
	for _, cause := range store.Causes() {
		m.errors.WithLabelValues(string(cause))
	}
	for _, outcome := range []string{kept, overBudget, tooLarge, tooMany} {
		m.kept.WithLabelValues(outcome)
	}
	registerer.MustRegister(m.transitions, m.late, m.rows, m.kept, m.errors, m.batch)
	return m
}

// Failed counts a failure of the database. It is no failure if another recorder has the log, or if the caller has given
// up.
func (m *Metrics) Failed(ctx context.Context, err error) {
	if m != nil && err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrHeld) && !errors.Is(err, store.ErrNoLog) {
		m.errors.WithLabelValues(string(store.CauseOf(err))).Inc()
	}
}

// Removed counts rows that were removed because they had been kept for long enough.
func (m *Metrics) Removed(rows store.Removed) {
	if m != nil {
		m.rows.WithLabelValues("jobs", "removed").Add(float64(rows.Jobs))
		m.rows.WithLabelValues("transitions", "removed").Add(float64(rows.Transitions))
		m.rows.WithLabelValues("runs", "removed").Add(float64(rows.Runs))
	}
}

// What became of specs.
const (
	kept       = "kept"
	overBudget = "over"
	tooLarge   = "large"
	tooMany    = "dropped"
)

func (m *Metrics) specs(outcome string, n int) {
	if m != nil && n > 0 {
		m.kept.WithLabelValues(outcome).Add(float64(n))
	}
}

func (m *Metrics) wrote(cluster, kind string, b *batch, took time.Duration) {
	if m == nil {
		return
	}
	for _, t := range b.transitions {
		m.transitions.WithLabelValues(cluster, kind, string(t.To)).Inc()
		if t.Late {
			m.late.WithLabelValues(cluster, kind).Inc()
		}
	}
	m.rows.WithLabelValues("jobs", "written").Add(float64(len(b.order)))
	m.rows.WithLabelValues("transitions", "written").Add(float64(len(b.transitions)))
	m.rows.WithLabelValues("runs", "written").Add(float64(len(b.runs)))
	m.rows.WithLabelValues("kept", "written").Add(float64(len(b.kept.of)))
	if b.changes() > 0 { // else it only says why jobs wait
		m.batch.Observe(took.Seconds())
	}
}

// counted is a Database whose failures are counted, and whose calls are bounded in time. A connection may be cut off
// without a word. Without a bound, the recorder would wait until the system gives the connection up, which takes a
// quarter of an hour or more.
type counted struct {
	Database
	metrics *Metrics
}

const (
	// answerWithin is how long a call that reads or writes little may take. After a longer time the
	// lease is lost anyway.
	answerWithin = lease
	// rowWithin is how much longer a call may take for each row that it writes.
	rowWithin = 10 * time.Millisecond
	// livingWithin is how long reading the living jobs may take. There may be a million.
	livingWithin = 5 * time.Minute
)

func (c counted) Take(ctx context.Context, name store.LogName, people, holder string, lease time.Duration) (store.Log, error) {
	return call(ctx, c, answerWithin, func(ctx context.Context) (store.Log, error) { return c.Database.Take(ctx, name, people, holder, lease) })
}

func (c counted) Living(ctx context.Context, log store.Log) ([]*jobs.Job, error) {
	return call(ctx, c, livingWithin, func(ctx context.Context) ([]*jobs.Job, error) { return c.Database.Living(ctx, log) })
}

func (c counted) LivingRuns(ctx context.Context, log store.Log) ([]*store.Run, error) {
	return call(ctx, c, livingWithin, func(ctx context.Context) ([]*store.Run, error) { return c.Database.LivingRuns(ctx, log) })
}

func (c counted) JobsOf(ctx context.Context, cluster string, wanted map[string][]string) (map[jobs.Ref]store.OwningJob, error) {
	return call(ctx, c, answerWithin, func(ctx context.Context) (map[jobs.Ref]store.OwningJob, error) {
		return c.Database.JobsOf(ctx, cluster, wanted)
	})
}

func (c counted) RunsOfJobs(ctx context.Context, log store.Log, uids []string) (map[string][]*jobs.Run, error) {
	return call(ctx, c, answerWithin, func(ctx context.Context) (map[string][]*jobs.Run, error) {
		return c.Database.RunsOfJobs(ctx, log, uids)
	})
}

func (c counted) TransitionsAfter(ctx context.Context, log store.Log, f store.Filter, after, upTo uint64, limit int) ([]*jobs.Transition, error) {
	return call(ctx, c, livingWithin, func(ctx context.Context) ([]*jobs.Transition, error) {
		return c.Database.TransitionsAfter(ctx, log, f, after, upTo, limit)
	})
}

func (c counted) Write(ctx context.Context, log store.Log, b store.Batch) (store.Log, error) {
	rows := len(b.Transitions) + len(b.Jobs) + len(b.Runs) + len(b.Gone) + len(b.Kept)
	return call(ctx, c, answerWithin+time.Duration(rows)*rowWithin, func(ctx context.Context) (store.Log, error) { return c.Database.Write(ctx, log, b) })
}

func (c counted) Began(ctx context.Context, log store.Log, at jobs.Time) error {
	_, err := call(ctx, c, answerWithin, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.Database.Began(ctx, log, at) })
	return err
}

// call calls the database, for so long at most, and counts it if it fails.
func call[T any](ctx context.Context, c counted, atMost time.Duration, do func(context.Context) (T, error)) (T, error) {
	within, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	answer, err := do(within)
	c.metrics.Failed(ctx, err)
	return answer, err
}
