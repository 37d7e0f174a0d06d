package http

import (
	"io/fs"
	"net/http"
	"strings"

	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/reply"
)

const portalMissing = `The portal is not part of this binary. Build it with

    make build

which needs Node 20 or later. The API is served all the same: see /clusters.
`

// portal serves the portal's files. If they are not built, it says how to build them.
func (s *Server) portal() func(http.ResponseWriter, *http.Request) error {
	if s.opts.Portal == nil {
		return func(w http.ResponseWriter, r *http.Request) error {
			if r.URL.Path != "/" {
				return reply.NotFound("there is nothing at this address")
			}
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = w.Write([]byte(portalMissing)) // a client that has gone is no error
			return nil
		}
	}
	files := http.FileServerFS(s.opts.Portal)
	return func(w http.ResponseWriter, r *http.Request) error {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name == "" {
			name = "index.html"
		}
		// The file server would list folders, so only files are served.
		if info, err := fs.Stat(s.opts.Portal, name); err != nil || !info.Mode().IsRegular() {
			return reply.NotFound("there is nothing at this address")
		}
		h := w.Header()
		pageHeaders(h)
		h.Set("Cache-Control", "no-cache")
		if strings.HasPrefix(r.URL.Path, "/assets/") {
			h.Set("Cache-Control", "public, max-age=31536000, immutable") // the names of these files change with their content
		}
		files.ServeHTTP(conn.NewPatientResponse(w, r, s.opts.Stream.WriteTimeout), r)
		return nil
	}
}
