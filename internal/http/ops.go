package http

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kubecast/kubecast/internal/balance"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// OpsOptions say what the ops listener shows, and to whom.
type OpsOptions struct {
	Gatherer prometheus.Gatherer
	// Config returns the configuration that is in use, for people; nil: it is not shown.
	Config func() ([]byte, error)
	// Profiles says whether profiles are served. They cost time and show memory, so the operator must ask for them.
	Profiles bool
	// Tokens returns the accepted bearer tokens, read for each request; nil: there are none.
	Tokens func() ([]string, error)
	// Open shows everything to every caller if there are no tokens, because only this machine can reach the listener.
	// Otherwise callers without a token see only whether the gateway lives and is ready.
	Open bool
}

// OpsHandler is the handler of the ops listener: metrics, health, and debug pages.
func (s *Server) OpsHandler(opts OpsOptions) http.Handler {
	r := chi.NewRouter()
	r.Get("/livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	r.Get("/readyz", func(w http.ResponseWriter, r *http.Request) { s.ready(w, opts.refuses(r) == nil) })
	inside := r.With(opts.guard)
	inside.Handle("/metrics", promhttp.HandlerFor(opts.Gatherer, promhttp.HandlerOpts{}))
	if opts.Config != nil {
		inside.Get("/debug/config", opts.debugConfig)
	}
	r.Get(balance.Path, opts.load(s.load))
	inside.Get("/debug/kinds", s.debugKinds)
	inside.HandleFunc("/debug/streams", s.streams.List)
	inside.Get("/debug/history", s.debugHistory)
	inside.Get("/debug/logs", s.debugLogs)
	inside.Get("/debug/questions", s.debugQuestions)
	inside.Get("/debug/webhooks", s.debugWebhooks)
	inside.Post("/debug/webhooks", s.operateWebhooks)
	if opts.Profiles {
		inside.HandleFunc("/debug/pprof/*", pprof.Index)
		inside.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		inside.HandleFunc("/debug/pprof/profile", pprof.Profile)
		inside.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		inside.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return r
}

// ready is the state in which requests should come here.
const ready = "ok"

// ready answers /readyz, which says whether requests should come here: the kinds to preload are synced, permissions
// can be decided, and the gateway is not draining. Kinds that the cluster does not have, or does not show the
// gateway, are named, but do not count. Nor does a cluster that cannot be reached if another one is ready: the users
// of that one must not suffer from it. Names says whether the caller may see names.
func (s *Server) ready(w http.ResponseWriter, names bool) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	state, kinds := s.state()
	if state != ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, state)
	if names {
		fmt.Fprint(w, kinds)
	}
}

// load answers other replicas. Those that are not ready get no clients, so they are none to which streams could be moved.
func (s *Server) load(w http.ResponseWriter, by balance.Asker) {
	if state, _ := s.state(); state != ready {
		http.Error(w, state, http.StatusServiceUnavailable)
		return
	}
	by.Answer(w, s.Load())
}

// state says whether requests should come here, and what there is to say of each kind, one line each.
func (s *Server) state() (state, lines string) {
	all := s.access.All()
	reasons := make([]error, len(all))
	others := false // one is ready
	for i, k := range all {
		reasons[i] = s.readiness(k)
		others = others || reasons[i] == nil
	}
	waiting := false
	var kinds strings.Builder
	for i, k := range all {
		err := reasons[i]
		if others && (k.Cluster().Away() != nil || errors.Is(err, cluster.ErrUnavailable)) {
			tellEach(&kinds, "away", err)
		} else {
			waiting = tellEach(&kinds, "waiting", err) || waiting
		}
		tellEach(&kinds, "missing", k.Missing())
	}
	if s.opts.Revocations != nil {
		waiting = tellEach(&kinds, "waiting", s.opts.Revocations.Ready()) || waiting
	}
	if s.opts.History != nil {
		waiting = tellEach(&kinds, "history", s.opts.History.Refused()) || waiting
	}
	state = ready
	switch {
	case s.streams.Draining():
		state = "draining"
	case waiting:
		state = "waiting"
	}
	return state, kinds.String()
}

// tellEach writes a line for each of the joined errors, and reports whether there are any.
func tellEach(w io.Writer, what string, err error) bool {
	if err == nil {
		return false
	}
	for line := range strings.Lines(err.Error() + "\n") {
		fmt.Fprintf(w, "%s: %s", what, line)
	}
	return true
}

// debugConfig answers the configuration.
func (opts OpsOptions) debugConfig(w http.ResponseWriter, _ *http.Request) {
	text, err := opts.Config()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(text)
}

// debugKinds answers a table of the stores.
func (s *Server) debugKinds(w http.ResponseWriter, _ *http.Request) {
	table := reply.NewTextTable(w, "CLUSTER\tKIND\tVERSION\tSTATE\tSINCE\tOBJECTS\tWATERMARK\tRING\tRING BYTES\tOLDEST\tWAITING\tERROR")
	for _, kinds := range s.access.All() {
		for _, store := range kinds.All() {
			upstream, ring := store.Upstream(), store.Topic().Stats()
			oldest := "-"
			if !ring.Oldest.IsZero() {
				oldest = time.Since(ring.Oldest).Round(time.Second).String()
			}
			failure := ""
			if upstream.Err != nil {
				failure = fmt.Sprintf("%q", upstream.Err)
			}
			table.Row("%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%d\t%s", kinds.Cluster().Name(), store.Kind(),
				store.Kind().APIVersion(), reply.UpstreamReason(upstream), time.Since(upstream.Since).Round(time.Second),
				store.Snapshot().Len(), ring.Watermark, ring.Events, ring.Bytes, oldest, ring.Waiting, failure)
		}
	}
	table.End()
}

// debugLogs answers a table of the logs that are followed.
func (s *Server) debugLogs(w http.ResponseWriter, _ *http.Request) {
	table := reply.NewTextTable(w, "CLUSTER\tNAMESPACE\tPOD\tCONTAINER\tRESTART\tREADERS\tBESIDE\tLINES\tBYTES\tSTATE")
	for _, log := range s.feeds.Stats() {
		state := "followed"
		switch {
		case errors.Is(log.Err, io.EOF):
			state = "ended"
		case log.Err != nil:
			state = fmt.Sprintf("%q", log.Err)
		}
		table.Row("%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s", log.Run.Cluster, log.Run.Namespace, log.Run.Pod, log.Run.Container, log.Run.Restart,
			log.Readers, log.Beside, log.Lines, log.Bytes, state)
	}
	table.End()
}

// debugHistory answers what is recorded of each cluster and kind, and how far.
func (s *Server) debugHistory(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if s.opts.History == nil {
		fmt.Fprintln(w, "no history is kept")
		return
	}
	status := s.opts.History.Status()
	switch {
	case status.Err != nil:
		fmt.Fprintf(w, "the database cannot be used: %q\n", status.Err)
	case !status.Ready:
		fmt.Fprintln(w, "the database is made ready")
	}
	table := reply.NewTextTable(w, "CLUSTER\tKIND\tSTATE\tSINCE\tVERSION\tSEQ\tLIVING\tBEHIND\tERROR")
	for _, log := range status.Logs {
		behind, failure := "-", ""
		if log.Behind {
			behind = time.Since(log.Caught).Round(time.Second).String()
		}
		if log.Err != nil {
			failure = fmt.Sprintf("%q", log.Err)
		}
		table.Row("%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s", log.Cluster, log.Kind, log.Phase,
			time.Since(log.Since).Round(time.Second), log.Version, log.Seq, log.Jobs, behind, failure)
	}
	table.End()
}
