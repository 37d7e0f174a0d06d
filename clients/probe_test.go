package clients

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kubecast/kubecast/e2e/harness"
)

// The answers of probes. Ingresses give such answers, and so do other versions of the gateway. The gateway avoids
// most of them, because of what they do to clients.
const (
	atConnect = "connect" // a status for every request: connect-401
	afterward = "later"   // a short stream first, which ends cleanly, then the status: later-401
	refused   = "refused" // nothing listens at first
	torn      = "torn"    // a stream that ends in the middle of a frame, and then another
	cut       = "cut"     // the same, but the connection is lost
)

var statuses = []int{http.StatusNoContent, http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable}

// Frames that a probe sends. When the frame after it is torn, the client's position is lastWhole.
const (
	lastWhole  = "7.1"
	lastTorn   = "7.2"
	wholeFrame = "retry: 100\n\nid: " + lastWhole + "\nevent: bookmark\ndata: {\"resourceVersion\":\"1\"}\n\n"
	tornData   = `{"resource`
	tornFrame  = "id: " + lastTorn + "\nevent: bookmark\ndata: " + tornData
)

// probes is a server on which each client has its own addresses, one for each answer.
type probes struct {
	server *httptest.Server
	closed string // an address at which nothing listens, until listen

	mu   sync.Mutex
	hits map[string][]hit // by path
}

// hit is the position with which a request came, and the codings that it accepts.
type hit struct{ header, query, codings string }

func startProbes(t *testing.T) *probes {
	t.Helper()
	p := &probes{closed: harness.Address(t), hits: map[string][]hit{}}
	p.server = httptest.NewServer(p)
	t.Cleanup(p.server.Close)
	return p
}

// listen begins to listen at the address that was closed.
func (p *probes) listen(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", p.closed)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(p)
	_ = server.Listener.Close() // its own, never used
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
}

// page is the address of a page for browsers, whose origin is not the gateway's.
func (p *probes) page() string { return p.server.URL + "/page" }

// url is the address at which a client gets an answer.
func (p *probes) url(answer, client string) string {
	base := p.server.URL
	if answer == refused {
		base = "http://" + p.closed
	}
	return base + probePath(answer, client)
}

func probePath(answer, client string) string {
	return "/" + answer + "/" + client
}

// requests returns the requests of a client for an answer.
func (p *probes) requests(answer, client string) []hit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits[probePath(answer, client)]
}

// ServeHTTP implements http.Handler. Pages of any origin may ask.
func (p *probes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	if r.URL.Path == "/page" {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>clients</title>")
		return
	}
	p.mu.Lock()
	first := len(p.hits[r.URL.Path]) == 0
	p.hits[r.URL.Path] = append(p.hits[r.URL.Path], hit{r.Header.Get("Last-Event-ID"), r.URL.Query().Get("lastEventId"), r.Header.Get("Accept-Encoding")})
	p.mu.Unlock()

	answer, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	kind, status, _ := strings.Cut(answer, "-")
	if code, err := strconv.Atoi(status); err == nil && (kind == atConnect || !first) {
		w.WriteHeader(code)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, wholeFrame)
	if (kind == torn || kind == cut) && first {
		fmt.Fprint(w, tornFrame)
	}
	if kind == cut {
		_ = http.NewResponseController(w).Flush() // a client that has gone is no error
		panic(http.ErrAbortHandler)
	}
}
