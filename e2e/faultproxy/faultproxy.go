// Package faultproxy is a proxy between gateways and an API server that makes requests fail as a test chooses.
package faultproxy

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/e2e/controlplane"
)

// Proxy is a proxy between gateways and the API server, over TLS with HTTP/2 like the API server itself. It makes the
// requests fail that a test chooses. All others pass, with their own credentials.
type Proxy struct {
	URL string

	server *httptest.Server

	mu      sync.Mutex
	faults  []*Fault
	running map[*passing]struct{}
	known   map[string]known // the last successful answers to lists and gets, by address and form
}

// Fault is a fault of the requests of a verb (get, list, watch, create; "": any) whose path has a prefix. Matching
// requests that are under way when a fault begins are cut off, so that they meet it when they are repeated. Watches
// that are to be held are not cut off: they just send nothing more.
type Fault struct {
	verb, path string
	does       Failing
	met        int // how many requests have met it; guarded by the proxy

	mended chan struct{}
}

// Failing is how requests fail: an HTTP status that is answered, or one of the constants.
type Failing int

// How requests fail, beside by a status.
const (
	Hangs   Failing = iota // there is no answer
	IsCut                  // the connection ends, without an answer or in the middle of it
	IsHeld                 // a watch stays open but sends nothing; after the fault it sends what happened during it
	IsStale                // a list or get is answered like the last one before the fault
)

// passing is a request under way.
type passing struct {
	verb, path string
	cancel     context.CancelCauseFunc
}

type known struct {
	header http.Header
	body   []byte
}

// Start runs a proxy to a control plane's API server until the test ends.
func Start(t testing.TB, cluster *controlplane.ControlPlane) *Proxy {
	t.Helper()
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, config.Host, transport)
}

// Before runs a proxy to another server, such as a gateway that is the core of others, until the test ends.
func Before(t testing.TB, upstream string, transport http.RoundTripper) *Proxy {
	t.Helper()
	return start(t, upstream, transport)
}

// CAFile writes the authority of the proxy's certificate.
func (p *Proxy) CAFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func start(t testing.TB, upstream string, transport http.RoundTripper) *Proxy {
	t.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{running: map[*passing]struct{}{}, known: map[string]known{}}
	pass := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1,
		ErrorLog:       log.New(io.Discard, "", 0),
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ModifyResponse: p.watchAnswer,
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, pass) }))
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	p.URL = p.server.URL
	t.Cleanup(func() {
		p.mu.Lock()
		for run := range p.running {
			run.cancel(errors.New("the test has ended"))
		}
		p.mu.Unlock()
		p.server.Close()
	})
	return p
}

// Kubeconfig writes a kubeconfig of the cluster-admin that leads through the proxy.
func (p *Proxy) Kubeconfig(t testing.TB, cluster *controlplane.ControlPlane) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	if err := cluster.KubeconfigTo(file, p.URL, ca, ""); err != nil {
		t.Fatal(err)
	}
	return file
}

// Fail begins a fault, which lasts until mend is called or the test has ended. If several faults concern a request,
// the first one counts.
func (p *Proxy) Fail(t testing.TB, verb, path string, does Failing) (f *Fault, mend func()) {
	f = &Fault{verb: verb, path: path, does: does, mended: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	for run := range p.running {
		if does != IsHeld && does != IsStale && f.concerns(run.verb, run.path) {
			run.cancel(errors.New("cut by the test"))
		}
	}
	mend = sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = slices.DeleteFunc(p.faults, func(other *Fault) bool { return other == f })
		close(f.mended)
	})
	t.Cleanup(mend)
	return f, mend
}

// Times returns how many requests have met a fault.
func (p *Proxy) Times(f *Fault) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return f.met
}

func (f *Fault) concerns(verb, path string) bool {
	return (f.verb == "" || f.verb == verb) && strings.HasPrefix(path, f.path)
}

// meets returns the fault that a request meets; nil if there is none.
func (p *Proxy) meets(verb, path string, one func(Failing) bool) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if f.concerns(verb, path) && one(f.does) {
			f.met++
			return f
		}
	}
	return nil
}

type passingKey struct{}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	run := &passing{verb: verbOf(r), path: r.URL.Path, cancel: cancel}
	p.mu.Lock()
	p.running[run] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.running, run)
	}()
	r = r.WithContext(context.WithValue(ctx, passingKey{}, run))
	f := p.meets(run.verb, run.path, func(does Failing) bool { return does != IsHeld })
	switch {
	case f == nil:
		pass.ServeHTTP(w, r)
	case f.does == IsCut:
		panic(http.ErrAbortHandler)
	case f.does == Hangs:
		select {
		case <-ctx.Done():
		case <-f.mended:
		}
		panic(http.ErrAbortHandler) // the client, which has waited for long, asks again
	case f.does == IsStale:
		p.mu.Lock()
		last, ok := p.known[formOf(r)]
		p.mu.Unlock()
		if !ok { // there was no such answer
			pass.ServeHTTP(w, r)
			return
		}
		maps.Copy(w.Header(), last.header)
		_, _ = w.Write(last.body)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(f.does))
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"failed by the test","code":%d}`, f.does)
	}
}

// watchAnswer handles the answers that pass: those of watches may be held, those of lists are remembered.
func (p *Proxy) watchAnswer(response *http.Response) error {
	r := response.Request
	run := r.Context().Value(passingKey{}).(*passing)
	switch {
	case run.verb == "watch":
		response.Body = &held{ReadCloser: response.Body, proxy: p, run: run, ctx: r.Context()}
	case response.StatusCode == http.StatusOK:
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
		p.mu.Lock()
		p.known[formOf(r)] = known{response.Header.Clone(), body}
		p.mu.Unlock()
	}
	return nil
}

// held is the body of a watch, which is not read while the watch is to be held.
type held struct {
	io.ReadCloser
	proxy *Proxy
	run   *passing
	ctx   context.Context
}

func (h *held) Read(piece []byte) (int, error) {
	n, err := h.ReadCloser.Read(piece)
	if f := h.proxy.meets(h.run.verb, h.run.path, func(does Failing) bool { return does == IsHeld }); f != nil {
		select {
		case <-f.mended:
		case <-h.ctx.Done():
			return 0, context.Cause(h.ctx)
		}
	}
	return n, err
}

// formOf identifies what a request asks for, and in which form, without versions.
func formOf(r *http.Request) string {
	query := r.URL.Query()
	query.Del("resourceVersion")
	query.Del("resourceVersionMatch")
	return r.URL.Path + "?" + query.Encode() + " " + r.Header.Get("Accept") + " " + r.Header.Get("Accept-Encoding")
}

// verbOf returns Kubernetes' verb for a request.
func verbOf(r *http.Request) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodGet:
	default:
		return strings.ToLower(r.Method)
	}
	if watch := r.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		return "watch"
	}
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if segments[0] == "apis" {
		segments = segments[1:]
	}
	if len(segments) < 3 { // discovery
		return "get"
	}
	rest := segments[2:] // after the group, or "api", and the version
	if len(rest) > 2 && rest[0] == "namespaces" {
		rest = rest[2:]
	}
	if len(rest) == 1 {
		return "list"
	}
	return "get"
}
