package http

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

const portalMissing = `The portal is not part of this binary. Build it with

    make build

which needs Node 20 or later. The API is served all the same: see /clusters.
`

// page is one of the portal's files.
type page struct {
	version string            // of its content
	etag    string            // the same in all codings
	kind    string            // its media type
	codings []string          // in which it was built, the best first; others would be no smaller
	coded   map[string][]byte // its content in each of them
}

// pageCodings are the codings of the portal's files, the best first, and the endings of the files that the build makes.
var pageCodings = []struct{ name, ending string }{{"br", ".br"}, {"gzip", ".gz"}}

// readPages reads the portal's files, by their names. Those of codings are no files of their own.
func readPages(files fs.FS) (map[string]page, error) {
	pages := map[string]page{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		version := hex.EncodeToString(sum[:12])
		p := page{version: version, etag: `W/"` + version + `"`, kind: mime.TypeByExtension(path.Ext(name)), coded: map[string][]byte{}}
		for _, coding := range pageCodings {
			if plain, is := strings.CutSuffix(name, coding.ending); is && isFile(files, plain) {
				return nil
			}
			if p.kind == "" || !isFile(files, name+coding.ending) {
				continue
			}
			p.codings = append(p.codings, coding.name)
			if p.coded[coding.name], err = fs.ReadFile(files, name+coding.ending); err != nil {
				return err
			}
		}
		pages[name] = p
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("http.Options.Portal: %w", err)
	}
	return pages, nil
}

func isFile(files fs.FS, name string) bool {
	info, err := fs.Stat(files, name)
	return err == nil && info.Mode().IsRegular()
}

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
		p, ok := s.pages[name] // the file server would list folders, so only files are served
		if !ok {
			return reply.NotFound("there is nothing at this address")
		}
		h := w.Header()
		pageHeaders(h)
		h.Set("Cache-Control", "no-cache")
		// The names of assets change with their content. A query may name a file's content, too: then the name leads to the
		// file in all versions of the portal, and browsers keep it if this version is the one that was asked for.
		if strings.HasPrefix(r.URL.Path, "/assets/") || (name != "index.html" && r.URL.RawQuery == "v="+p.version) {
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		h.Set("ETag", p.etag)
		h.Add("Vary", "Accept-Encoding")
		to := conn.NewPatientResponse(w, r, s.opts.Stream.WriteTimeout)
		coding := reply.Encoding(r.Header, p.codings)
		if coding == "" || r.Header.Get("Range") != "" || r.URL.Path == "/index.html" { // the last is redirected to /
			files.ServeHTTP(to, r)
			return nil
		}
		h.Set("Content-Type", p.kind)
		if reply.NotModified(w, r, p.etag) {
			return nil
		}
		content := p.coded[coding]
		h.Set("Content-Encoding", coding)
		h.Set("Content-Length", strconv.Itoa(len(content)))
		if !request.IsHead(r) {
			_, _ = to.Write(content) // a client that has gone is no error
		}
		return nil
	}
}
