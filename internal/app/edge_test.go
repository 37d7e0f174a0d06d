package app

import (
	"bytes"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/config"
)

// coreStandIn is an API server at the address of a core's cluster.
type coreStandIn struct {
	*httptest.Server
	mu    sync.Mutex
	token string // that was sent last
}

func startCore(t *testing.T, api *apitest.API) *coreStandIn {
	c := &coreStandIn{}
	c.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.token = r.Header.Get("Authorization")
		c.mu.Unlock()
		http.StripPrefix("/below/clusters/default", api).ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *coreStandIn) sent() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// edgeOf makes a configuration one of an edge of cores.
func edgeOf(t *testing.T, cfg *config.Config, cores ...*coreStandIn) {
	t.Helper()
	cfg.Clusters = []config.Cluster{{Name: "default"}}
	cfg.Edge = config.Edge{TokenFile: filepath.Join(t.TempDir(), "token"), CAFile: filepath.Join(t.TempDir(), "ca.crt")}
	var ca []byte
	for _, core := range cores {
		cfg.Edge.Core = append(cfg.Edge.Core, core.URL+"/below")
		ca = append(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: core.Certificate().Raw})...)
	}
	if err := errors.Join(os.WriteFile(cfg.Edge.TokenFile, []byte("first\n"), 0o600), os.WriteFile(cfg.Edge.CAFile, ca, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// Preflight asks each core by itself: that one of them answers does not hide what the other one lacks.
func TestPreflightAsksEachCore(t *testing.T) {
	api, url := apitest.Start(t)
	good, bad := startCore(t, api), startCore(t, api)
	cfg, _ := configuration(t, url)
	edgeOf(t, &cfg, good, bad)
	preflight := func() (string, error) {
		var out bytes.Buffer
		err := Preflight(t.Context(), Options{Config: cfg, Version: "test"}, &out)
		return out.String(), err
	}
	out, err := preflight()
	if err != nil || strings.Count(out, "cluster default at "+good.URL+"/below v1.36.3\n") != 1 || strings.Count(out, "cluster default at "+bad.URL+"/below v1.36.3\n") != 1 {
		t.Fatal(err, out)
	}
	bad.Close()
	if out, err := preflight(); err == nil || strings.Count(out, "missing: an answer: ") != 1 || !strings.Contains(out, "at "+bad.URL+"/below \n  missing: an answer") {
		t.Error(err, out)
	}
}

// A file of an edge that cannot be used is a fault of the key that names it.
func TestCheckNamesTheFilesOfAnEdge(t *testing.T) {
	api, url := apitest.Start(t)
	core := startCore(t, api)
	for want, change := range map[string]func(*config.Config){
		"":                                 func(*config.Config) {},
		"edge.tokenFile: open ":            func(cfg *config.Config) { cfg.Edge.TokenFile += "-none" },
		"edge.tokenFile: it is empty":      func(cfg *config.Config) { cfg.Edge.TokenFile = os.DevNull },
		"edge.caFile: open ":               func(cfg *config.Config) { cfg.Edge.CAFile += "-none" },
		"edge.caFile: error creating ":     func(cfg *config.Config) { cfg.Edge.CAFile = cfg.Edge.TokenFile },
		"clusters[0].kubeconfig: given be": func(cfg *config.Config) { cfg.Clusters[0].Kubeconfig = "f" },
	} {
		cfg, _ := configuration(t, url)
		edgeOf(t, &cfg, core)
		change(&cfg)
		err := cfg.Validate()
		if err == nil {
			err = Check(cfg)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// The token of an edge is read again when its file changes.
func TestAnEdgesTokenIsReadAgain(t *testing.T) {
	api, _ := apitest.Start(t)
	core := startCore(t, api)
	f := startReloaded(t, func(cfg *config.Config) { edgeOf(t, cfg, core) })
	f.until("the first token is sent", func() bool { return core.sent() == "Bearer first" })
	if err := os.WriteFile(f.cfg.Edge.TokenFile, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.change(func(*config.Config) {})
	f.until("the second token is sent", func() bool {
		f.get(f.addr, "/api/v1/pods")
		return core.sent() == "Bearer second"
	})
	if logged := f.change(func(cfg *config.Config) { cfg.Edge.Core = nil }); !strings.Contains(logged, "needs a restart") {
		t.Error(logged)
	}
}
