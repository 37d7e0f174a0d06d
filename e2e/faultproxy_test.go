package e2e

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
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// faultProxy is a proxy between gateways and the API server, over TLS with HTTP/2 like the API server itself. It
// makes the requests fail that a test chooses. All others pass, with their own credentials.
type faultProxy struct {
	url    string
	server *httptest.Server

	mu      sync.Mutex
	faults  []*fault
	running map[*passing]struct{}
	known   map[string]known // the last successful answers to lists and gets, by address and form
}

// fault is a fault of the requests of a verb (get, list, watch, create; "": any) whose path has a prefix. Matching
// requests that are under way when a fault begins are cut off, so that they meet it when they are repeated. Watches
// that are to be held are not cut off: they just send nothing more.
type fault struct {
	verb, path string
	does       failing
	met        int // how many requests have met it; guarded by the proxy

	mended chan struct{}
}

type failing int // an HTTP status, or one of these

const (
	hangs   failing = iota // there is no answer
	isCut                  // the connection ends, without an answer or in the middle of it
	isHeld                 // a watch stays open but sends nothing; after the fault it sends what happened during it
	isStale                // a list or get is answered like the last one before the fault
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

// startFaultProxy runs a proxy to the stage's API server until the test ends.
func (s *stage) startFaultProxy(t *testing.T) *faultProxy {
	t.Helper()
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	return newFaultProxy(t, config.Host, transport)
}

func newFaultProxy(t *testing.T, upstream string, transport http.RoundTripper) *faultProxy {
	t.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	p := &faultProxy{running: map[*passing]struct{}{}, known: map[string]known{}}
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
	p.url = p.server.URL
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

// caPEM is the certificate that the proxy's clients have to trust.
func (p *faultProxy) caPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// kubeconfig writes a kubeconfig of the stage's cluster-admin that leads through the proxy.
func (p *faultProxy) kubeconfig(t *testing.T, s *stage) string {
	t.Helper()
	return kubeconfigTo(t, s.cluster.Kubeconfig(), p.url, p.caPEM(), "")
}

// kubeconfigTo writes a copy of a kubeconfig that leads to another server, with the token as its credentials if one
// is given.
func kubeconfigTo(t *testing.T, like, server string, caPEM []byte, token string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(like)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthorityData = server, caPEM
	}
	for _, user := range config.AuthInfos {
		if token != "" {
			user.Token = token
		}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// fail begins a fault, which lasts until mend is called or the test has ended. If several faults concern a request,
// the first one counts.
func (p *faultProxy) fail(t *testing.T, verb, path string, does failing) (f *fault, mend func()) {
	f = &fault{verb: verb, path: path, does: does, mended: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	for run := range p.running {
		if does != isHeld && does != isStale && f.concerns(run.verb, run.path) {
			run.cancel(errors.New("cut by the test"))
		}
	}
	mend = sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = slices.DeleteFunc(p.faults, func(other *fault) bool { return other == f })
		close(f.mended)
	})
	t.Cleanup(mend)
	return f, mend
}

// times returns how many requests have met a fault.
func (p *faultProxy) times(f *fault) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return f.met
}

func (f *fault) concerns(verb, path string) bool {
	return (f.verb == "" || f.verb == verb) && strings.HasPrefix(path, f.path)
}

// meets returns the fault that a request meets; nil if there is none.
func (p *faultProxy) meets(verb, path string, one func(failing) bool) *fault {
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

func (p *faultProxy) serve(w http.ResponseWriter, r *http.Request, pass http.Handler) {
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
	f := p.meets(run.verb, run.path, func(does failing) bool { return does != isHeld })
	switch {
	case f == nil:
		pass.ServeHTTP(w, r)
	case f.does == isCut:
		panic(http.ErrAbortHandler)
	case f.does == hangs:
		select {
		case <-ctx.Done():
		case <-f.mended:
		}
		panic(http.ErrAbortHandler) // the client, which has waited for long, asks again
	case f.does == isStale:
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
func (p *faultProxy) watchAnswer(response *http.Response) error {
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
	proxy *faultProxy
	run   *passing
	ctx   context.Context
}

func (h *held) Read(piece []byte) (int, error) {
	n, err := h.ReadCloser.Read(piece)
	if f := h.proxy.meets(h.run.verb, h.run.path, func(does failing) bool { return does == isHeld }); f != nil {
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

// The proxy does what it is asked for, and nothing to other requests.
func TestFaultProxyFailsWhatIsChosen(t *testing.T) {
	t.Parallel()
	more := make(chan string)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s of %s\n", r.Header.Get("Authorization"), r.URL.Path)
		if verbOf(r) != "watch" {
			return
		}
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case text := <-more:
				fmt.Fprintln(w, text)
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(upstream.Close)
	p := newFaultProxy(t, upstream.URL, http.DefaultTransport)
	client := p.server.Client()
	get := func(path string) string {
		response, err := client.Get(p.url + path)
		if err != nil {
			return "no answer"
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return "no whole answer"
		}
		return fmt.Sprintf("%d %s", response.StatusCode, bytes.TrimSpace(body))
	}
	const pods, bindings = "/api/v1/pods", "/apis/rbac.authorization.k8s.io/v1/rolebindings"
	for path, verb := range map[string]string{
		pods: "list", "/api/v1/namespaces/a/pods": "list", "/api/v1/namespaces": "list", "/api/v1/namespaces/a": "get",
		"/api/v1/namespaces/a/pods/x": "get", "/apis/batch/v1": "get", bindings: "list", bindings + "?watch=1": "watch",
	} {
		if got := verbOf(httptest.NewRequest(http.MethodGet, path, nil)); got != verb {
			t.Errorf("%s is a %s, not a %s", path, got, verb)
		}
	}
	if got := get(pods); got != "200 of "+pods {
		t.Fatal(got)
	}
	for does, want := range map[failing]string{500: "500 ", 429: "429 ", isCut: "no answer"} {
		f, mend := p.fail(t, "list", bindings, does)
		if got := get(bindings); !strings.HasPrefix(got, want) {
			t.Errorf("%d: %q", does, got)
		}
		if got := get(pods); got != "200 of "+pods {
			t.Errorf("%d: another is answered with %q", does, got)
		}
		if n := p.times(f); n == 0 {
			t.Errorf("%d: %d requests have met it", does, n)
		}
		mend()
		if got := get(bindings); got != "200 of "+bindings {
			t.Errorf("%d: mended, it is answered with %q", does, got)
		}
	}
	response, err := client.Get(p.url + pods + "?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	frames := make(chan string)
	go func() {
		defer close(frames)
		piece := make([]byte, 100)
		for {
			n, err := response.Body.Read(piece)
			if n > 0 {
				frames <- strings.TrimSpace(string(piece[:n]))
			}
			if err != nil {
				return
			}
		}
	}()
	<-frames
	more <- "one"
	if got := <-frames; got != "one" {
		t.Fatal(got)
	}
	_, mend := p.fail(t, "watch", pods, isHeld)
	more <- "two"
	select {
	case got := <-frames:
		t.Errorf("while it is held it tells %q", got)
	default:
	}
	mend()
	if got := <-frames; got != "two" {
		t.Error(got)
	}
	p.fail(t, "watch", pods, 503)
	if got, open := <-frames; open {
		t.Errorf("after it was cut it tells %q", got)
	}
}
