package http

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// health answers /healthz, /livez and /readyz as tools expect it from an API server. The answer
// says whether the gateway can serve a cluster. The names of what it waits for are only on the ops
// listener.
func (s *Server) health(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	path := "/" + r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	kinds, err := s.access.Cluster(chi.URLParam(r, "cluster"))
	if err != nil {
		return err
	}
	if err := s.access.CheckPath(r.Context(), kinds, id, path); err != nil {
		return err
	}
	if path == "/readyz" {
		if err := s.readiness(kinds); err != nil || s.streams.Draining() {
			return reply.Unavailable("the cluster cannot be served at the moment", 2*time.Second, err)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	text := "ok"
	if r.URL.Query().Has("verbose") {
		text = "[+]ping ok\n[+]cluster ok\n" + path[1:] + " check passed\n"
	}
	_, _ = io.WriteString(w, text) // a client that has gone is no error
	return nil
}

// readiness returns why a cluster cannot be served yet; nil if it can.
func (s *Server) readiness(kinds *cache.Kinds) error {
	var other error
	if s.opts.Ready != nil {
		other = s.opts.Ready(kinds.Cluster().Name())
	}
	return errors.Join(other, kinds.Ready())
}
