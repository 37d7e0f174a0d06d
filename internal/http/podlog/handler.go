// Package podlog owns the answers to requests for the logs of containers: those of the API server,
// passed on byte by byte, so that kubectl logs works, with and without -f.
//
// What it promises: what the API server writes is passed on at once, with its errors. An answer
// that was cut says so: the connection breaks, and what came before does not look complete. It ends
// soon after what its caller signed in with, or is permitted, has ended.
//
// What it refuses: to keep anything. Each request has a connection to the API server, so there are
// only so many at a time, in all and of a user. A client that takes nothing is cut.
package podlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/tracing"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Options configure a Handler; all are required unless they say otherwise.
type Options struct {
	Access       *access.Access
	Authorizer   auth.Authorizer
	Permissions  *permission.Permissions // end what is read before its time
	Limits       Limits
	WriteTimeout time.Duration // a client that takes no byte for so long is cut
	Drain        time.Duration // within which the answers end once Handler.Drain was called
	Registerer   prometheus.Registerer
	Log          *slog.Logger
}

// Handler answers requests for logs.
type Handler struct {
	opts    Options
	quota   quota
	metrics *metrics

	draining context.Context // done: no new answers, and the running ones end
	drain    context.CancelFunc
}

// New returns a Handler.
func New(opts Options) *Handler {
	h := &Handler{opts: opts, quota: quota{limits: opts.Limits, users: map[string]int{}}, metrics: newMetrics(opts.Registerer)}
	h.draining, h.drain = context.WithCancel(context.Background())
	return h
}

// SetLimits changes Options.Limits.
func (h *Handler) SetLimits(limits Limits) { h.quota.set(limits) }

// Drain lets no new answers begin, and ends the running ones at random moments within Options.Drain. It returns when all have ended, or the context has.
func (h *Handler) Drain(ctx context.Context) {
	h.quota.close()
	h.drain()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.quota.open.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// parameters are those of Kubernetes' PodLogOptions; the API server passes over all others.
var parameters = []string{
	"container", "follow", "insecureSkipTLSVerifyBackend", "limitBytes", "pretty", "previous", "sinceSeconds", "sinceTime", "stream", "tailLines", "timestamps",
}

// Answer answers the log of a container, as visibility.ParseLog names it.
func (h *Handler) Answer(w http.ResponseWriter, r *http.Request, id auth.Identity, t visibility.Target) error {
	given, err := request.Query(r)
	if err != nil {
		return err
	}
	query := url.Values{}
	for _, name := range parameters {
		if given.Has(name) {
			query[name] = slices.Clone(given[name])
		}
	}
	if request.IsHead(r) {
		query.Del("follow")
		query.Set("limitBytes", "1")
	}
	if err := h.quota.take(id.QuotaOwner()); err != nil {
		return err
	}
	defer h.quota.leave(id.QuotaOwner())
	h.metrics.upstreams.Inc()
	defer h.metrics.upstreams.Dec()
	return h.pass(w, r, id, t, query)
}

// pass passes on what the API server answers, for as long as the caller may read it.
func (h *Handler) pass(w http.ResponseWriter, r *http.Request, id auth.Identity, t visibility.Target, query url.Values) error {
	began := time.Now()
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	g := newGuard(h, id, t, end)
	defer g.stop() // it follows the permission before it is asked for the first time, so that no change is missed
	granted, _, err := h.opts.Access.Find(ctx, id, t, "get")
	if err != nil {
		auditrecord.Of(ctx).Decided(access.ReadOf(t, "get"), err)
		return err
	}
	var guarding sync.WaitGroup
	guarding.Go(func() { g.run(ctx, granted.Kinds) })
	defer guarding.Wait()
	defer end(nil)
	answer, err := granted.Kinds.Cluster().PodLog(ctx, t.Namespace, t.Name, query)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
		auditrecord.Of(ctx).Decided(access.ReadOf(t, "get"), err)
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		auditrecord.Of(ctx).Decided(access.ReadOf(t, "get"), nil)
		return h.refused(w, answer)
	}
	auditrecord.Of(ctx).Began([]auditrecord.Read{access.ReadOf(t, "get")}, false)
	span := tracing.Of(ctx) // which ends here: a log that is followed may last for hours
	span.Keep()
	span.End()
	header := w.Header()
	header.Set("Content-Type", "text/plain")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	passed := passing{from: answer.Body, to: conn.NewPatientWriter(w, r, h.opts.WriteTimeout), bytes: h.metrics.bytes}
	err = passed.begin(w)
	if err == nil && !request.IsHead(r) {
		err = passed.run()
	}
	reason := reasonOf(err, context.Cause(ctx))
	h.metrics.ended.WithLabelValues(reason).Inc()
	auditrecord.Of(ctx).Ended(reason, passed.lines)
	h.opts.Log.Info("log ended", "request", request.ID(r), "path", request.PathForLog(r), "user", id.Username, "reason", reason,
		"after", time.Since(began).Round(time.Millisecond), "lines", passed.lines)
	if reason != endComplete {
		panic(http.ErrAbortHandler) // what was sent must not look complete
	}
	return nil
}

// maxRefusal is how much is passed on of the API server's words for an error, in bytes.
const maxRefusal = 64 << 10

// refused passes on an error of the API server, which is about what was asked for, or about the node.
func (h *Handler) refused(w http.ResponseWriter, answer *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err != nil {
		return errors.Join(cluster.ErrUnavailable, err)
	}
	header := w.Header()
	for _, name := range []string{"Content-Type", "Retry-After"} {
		if value := answer.Header.Get(name); value != "" {
			header.Set(name, value)
		}
	}
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(body) // a client that has gone is no error
	return nil
}

// passing is a log on its way from the API server to a client.
type passing struct {
	from  io.Reader
	to    *conn.PatientWriter
	bytes prometheus.Counter
	lines int64
}

// piece is how much is read, and sent under one deadline, at a time.
const piece = 16 << 10

var pieces = sync.Pool{New: func() any { return new([piece]byte) }}

// errTaken means that the client has gone, or takes nothing.
var errTaken = errors.New("the client did not take the log")

// begin sends the head of the answer.
func (p *passing) begin(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusOK)
	if p.to.Flush() != nil {
		return errTaken
	}
	return nil
}

// run passes on what comes, each piece at once, until the log ends. An error wraps errTaken, or is the API server's.
func (p *passing) run() error {
	buffer := pieces.Get().(*[piece]byte)
	defer pieces.Put(buffer)
	for {
		n, err := p.from.Read(buffer[:])
		if n > 0 {
			p.lines += int64(bytes.Count(buffer[:n], []byte("\n")))
			p.bytes.Add(float64(n))
			if _, err := p.to.Write(buffer[:n]); err != nil {
				return errTaken
			}
			if p.to.Flush() != nil {
				return errTaken
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
