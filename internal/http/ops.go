package http

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kubecast/kubecast/internal/cluster"
)

// OpsHandler is the ops listener's: metrics, health and what people need to look inside. It asks nobody who he is.
func (s *Server) OpsHandler(gatherer prometheus.Gatherer) http.Handler {
	r := chi.NewRouter()
	r.Handle("/metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	r.Get("/livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	r.Get("/readyz", s.ready)
	r.Get("/debug/kinds", s.debugKinds)
	r.Handle("/debug/streams", s.open)
	r.HandleFunc("/debug/pprof/*", pprof.Index)
	r.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	r.HandleFunc("/debug/pprof/profile", pprof.Profile)
	r.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	r.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return r
}

// ready says whether requests should come here: the kinds to preload are synced, permissions can be decided, and the
// gateway is not draining. Kinds that the cluster does not have, or does not show the gateway, are named but waited for
// by nobody. So is a cluster that cannot be reached, if another one is ready: who is here for that one shall not suffer.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	all := s.clusters.Load().all
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
	state := "ok"
	switch {
	case s.draining.Err() != nil:
		state = "draining"
	case waiting:
		state = "waiting"
	}
	if state != "ok" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintf(w, "%s\n%s", state, kinds.String())
}

// tellEach writes a line for each of the errors that one joins; it reports whether there is any.
func tellEach(w io.Writer, what string, err error) bool {
	if err == nil {
		return false
	}
	for line := range strings.Lines(err.Error() + "\n") {
		fmt.Fprintf(w, "%s: %s", what, line)
	}
	return true
}

// debugKinds is a table of the stores.
func (s *Server) debugKinds(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "CLUSTER\tKIND\tVERSION\tSTATE\tSINCE\tOBJECTS\tWATERMARK\tRING\tRING BYTES\tOLDEST\tWAITING\tERROR")
	for _, kinds := range s.clusters.Load().all {
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
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%d\t%s\n", kinds.Cluster().Name(), store.Kind(),
				store.Kind().APIVersion(), upstreamReason(upstream), time.Since(upstream.Since).Round(time.Second),
				store.Snapshot().Len(), ring.Watermark, ring.Events, ring.Bytes, oldest, ring.Waiting, failure)
		}
	}
	_ = table.Flush() // a client that has gone is no error
}
