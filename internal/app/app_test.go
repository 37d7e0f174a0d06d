package app

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

func TestRunServesAndDrains(t *testing.T) {
	api, url := apitest.Start(t)
	api.Allow = func(spec authorizationv1.SubjectAccessReviewSpec) bool {
		// A review of a path has no ResourceAttributes.
		return spec.User == "jane" && spec.ResourceAttributes != nil && spec.ResourceAttributes.Namespace == "team-a"
	}
	api.Put("pods", "team-a/web")
	cfg, token := configuration(t, url)
	g := start(t, cfg, token)
	g.until("it is ready", func() bool { code, _ := g.get(g.ops, "/readyz"); return code == 200 })
	if code, body := g.get(g.addr, "/api/v1/namespaces/team-a/pods"); code != 200 || !strings.Contains(body, `"name":"web"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := g.get(g.addr, "/api/v1/pods"); code != 403 {
		t.Errorf("all namespaces: %d", code)
	}
	g.token = "forged"
	if code, _ := g.get(g.addr, "/api/v1/namespaces/team-a/pods"); code != 401 {
		t.Errorf("a forged token: %d", code)
	}
	g.token = token
	if code, body := g.get(g.ops, "/metrics"); code != 200 || !strings.Contains(body, `kubecast_cache_objects{cluster="default",kind="pods"} 1`) {
		t.Errorf("%d %s", code, body)
	}
	stream := bufio.NewReader(g.open(g.addr, "/api/v1/namespaces/team-a/pods", "text/event-stream").Body)
	readUntil(t, stream, "event: synced")
	g.drain()
	end := readUntil(t, stream, `data: {"reason":"drain"}`)
	if !strings.Contains(end, "event: bookmark") || !strings.Contains(end, "retry: ") {
		t.Errorf("the end is %s", end)
	}
	if rest, err := io.ReadAll(stream); err != nil || string(rest) != "\n" {
		t.Errorf("the stream does not end at a frame: %q %v", rest, err)
	}
	if err := g.wait(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", g.addr); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
	if log := g.log.String(); !strings.Contains(log, "msg=draining") || strings.Contains(log, "broken off") || strings.Contains(log, token) {
		t.Error(log)
	}
}

// TestDrainThatClosesItsListener refuses connections while its streams go on, so that a proxy asks the next replica.
func TestDrainThatClosesItsListener(t *testing.T) {
	api, url := apitest.Start(t)
	cfg, token := configuration(t, url)
	cfg.Drain, cfg.DrainClosesListener = config.Duration(time.Minute), true
	g := start(t, cfg, token)
	var streams []*bufio.Reader
	for range 8 { // of which the first ends some five seconds after the signal
		stream := bufio.NewReader(g.open(g.addr, "/api/v1/pods", "text/event-stream").Body)
		readUntil(t, stream, "event: synced")
		streams = append(streams, stream)
	}
	g.drain()
	g.until("it listens no more", func() bool {
		conn, err := net.Dial("tcp", g.addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	api.Put("pods", "team-a/meanwhile")
	told := 0
	for _, stream := range streams {
		for line, err := stream.ReadString('\n'); err == nil && !strings.Contains(line, "goodbye"); line, err = stream.ReadString('\n') {
			if strings.Contains(line, `"name":"meanwhile"`) {
				told++
				break
			}
		}
	}
	if told == 0 {
		t.Error("no stream went on")
	}
	g.end()
	if err := g.wait(); err != nil {
		t.Error(err)
	}
}

// TestReplicasTellEachOtherTheirLoad by their ops listeners, to which they prove that they know the token.
func TestReplicasTellEachOtherTheirLoad(t *testing.T) {
	_, url := apitest.Start(t)
	cfg, token := configuration(t, url)
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Ops.TokenFile = tokens
	other := start(t, cfg, token)
	own, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free in a moment
	if err != nil {
		t.Fatal(err)
	}
	cfg.OpsListen = own.Addr().String()
	own.Close()
	cfg.Stream.Replicas = []string{other.ops, cfg.OpsListen}
	g := start(t, cfg, token)
	ready := func(g *gateway) {
		g.until("it is ready", func() bool { code, _ := g.get(g.ops, "/readyz"); return code == 200 })
	}
	ready(other)
	ready(g)
	if code, body := g.get(g.ops, "/load"); code != 401 { // the token of a user
		t.Errorf("%d %s", code, body)
	}
	readUntil(t, bufio.NewReader(g.open(g.addr, "/api/v1/pods", "text/event-stream").Body), "event: synced")
	g.token = "0123456789abcdef"
	if code, body := g.get(g.ops, "/load"); code != 200 || !strings.Contains(body, `"streams":1}`) {
		t.Errorf("%d %s", code, body)
	}
	g.until("it knows of both", func() bool {
		_, metrics := g.get(g.ops, "/metrics")
		return strings.Contains(metrics, "\nkubecast_replicas 2\n")
	})
	g.token = token
}

// Neither draining nor a second signal waits for a client that does not read.
func TestEndsThoughAClientTakesNothing(t *testing.T) {
	for name, end := range map[string]func(*gateway){"drain": func(g *gateway) { g.drain() }, "at once": func(g *gateway) { g.end() }} {
		t.Run(name, func(t *testing.T) {
			api, url := apitest.Start(t)
			cfg, token := configuration(t, url)
			cfg.Drain = config.Duration(200 * time.Millisecond)
			cfg.Stream.WriteTimeout = config.Duration(5 * time.Minute)
			g := start(t, cfg, token)
			stalled := bufio.NewReader(g.open(g.addr, "/api/v1/pods", "text/event-stream").Body)
			readUntil(t, stalled, "event: synced")
			witness := bufio.NewReader(g.open(g.addr, "/api/v1/pods", "text/event-stream").Body)
			readUntil(t, witness, "event: synced")
			pad := strings.Repeat("x", 1<<20)
			for range 14 { // more than fits into the kernel's buffers
				api.Put("pods", "team-a/big", "spec.pad="+pad)
				readUntil(t, witness, `"name":"big"`)
			}
			end(g)
			if err := g.wait(); err != nil { // for much less than the write timeout
				t.Error(err)
			}
			if log := g.log.String(); strings.Contains(log, "broken off") {
				t.Error(log)
			}
		})
	}
}

// A cluster that cannot be reached is retried, and requests for it are answered with 503 in the meantime.
func TestUnreachableClusterIsNotFatal(t *testing.T) {
	api, url := apitest.Start(t)
	api.Fail(apitest.Everything, 503)
	cfg, token := configuration(t, url)
	cfg.Cache.SyncTimeout = config.Duration(time.Second)
	g := start(t, cfg, token)
	if code, body := g.get(g.ops, "/readyz"); code != 503 || !strings.Contains(body, "waiting: cluster default: pods") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := g.get(g.ops, "/livez"); code != 200 {
		t.Errorf("%d", code)
	}
	if code, body := g.get(g.addr, "/api/v1/pods"); code != 503 || strings.Contains(body, apitest.SecretDetail) {
		t.Errorf("%d %s", code, body)
	}
	stream := bufio.NewReader(g.open(g.addr, "/api/v1/pods", "text/event-stream").Body)
	readUntil(t, stream, `data: {"reason":"unavailable"}`)
	api.Fail(apitest.Everything, 0)
	g.until("it is ready", func() bool { code, _ := g.get(g.ops, "/readyz"); return code == 200 })
	g.end()
	if err := g.wait(); err != nil {
		t.Error(err)
	}
}

// What is read at /readyz and in the log says what the API server answers, while client-go repeats its requests in
// silence.
func TestAnAPIServerThatIsBusyIsNamedInReadiness(t *testing.T) {
	api, url := apitest.Start(t)
	api.Answer("pods", func(*http.Request) *apitest.Fault { return apitest.Busy() })
	cfg, token := configuration(t, url)
	cfg.Cache.Preload = []config.Kind{{Resource: "pods"}}
	g := start(t, cfg, token)
	const answer = "the API server answers 429 Too Many Requests"
	g.until("readiness says so", func() bool {
		code, body := g.get(g.ops, "/readyz")
		return code == 503 && strings.Contains(body, answer)
	})
	if log := g.log.String(); !strings.Contains(log, answer) || strings.Contains(log, "does not answer") {
		t.Error(log)
	}
	if _, metrics := g.get(g.ops, "/metrics"); !regexp.MustCompile(`kubecast_upstream_requests_total{cluster="default",code="429",verb="list"} [1-9]`).MatchString(metrics) {
		t.Error(metrics)
	}
	api.Fail("pods", 0)
	g.until("it is ready", func() bool { code, _ := g.get(g.ops, "/readyz"); return code == 200 })
}

// A configuration whose every file is missing is told so at once, by check as at the start, and nothing is made.
func TestAllFaultsAreToldAtOnce(t *testing.T) {
	cfg, _ := configuration(t, "http://127.0.0.1:1")
	none := t.TempDir()
	at := func(name string) string { return filepath.Join(none, "none", name) }
	cfg.Clusters = []config.Cluster{{Name: "a", Kubeconfig: at("kubeconfig-a")}, {Name: "b", Kubeconfig: at("kubeconfig-b")}}
	cfg.Auth.JWT = append(cfg.Auth.JWT, config.JWT{Issuer: "https://other", Audiences: []string{"a"}, HMACKeyFile: at("hmac"), Claims: config.DefaultClaims()})
	cfg.Auth.JWT[0].PublicKeyFile = at("public")
	cfg.Auth.CookieKeyFile = at("cookie")
	cfg.Auth.OIDCLogin = config.OIDCLogin{ClientID: "kubecast", ClientSecretFile: at("client-secret"), RedirectURL: "https://h/auth/callback"}
	cfg.TLS = config.TLS{CertFile: at("cert"), KeyFile: at("key")}
	cfg.Ops.TokenFile = at("ops-token")
	cfg.Audit = config.Audit{Level: config.AuditMetadata, File: at("audit.log")}
	cfg.Authorizer = config.Authorizer{Mode: config.AuthorizerPolicy, Policies: []string{"user.nmae"}}
	cfg.History.Database, cfg.History.StateDir, cfg.History.PasswordFile = "postgres://h/d", "", at("password")
	cfg.History.Owner = "object."
	cfg.Webhooks = []config.Webhook{{Name: "w", URL: "https://w", SecretFile: at("webhook-secret"), Concurrency: 1}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for what, err := range map[string]error{"check": Check(cfg), "start": Run(ctx, Options{Config: cfg, Log: slog.New(slog.DiscardHandler), Drain: ctx})} {
		for _, want := range []string{
			"kubeconfig-a", "kubeconfig-b", "none/public", "none/hmac", "none/cookie", "none/client-secret", "none/cert", "none/ops-token", "authorizer.policies[0]", "history.passwordFile", "history.owner",
			"webhooks[0].secretFile", "audit.file",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, without %q", what, err, want)
			}
		}
	}
	if files, err := os.ReadDir(none); err != nil || len(files) > 0 {
		t.Error(files, err)
	}
}

// What is built has all that serve starts, and check walks the same list: a part that is added to it is checked.
func TestCheckMakesNothing(t *testing.T) {
	cfg, _ := configuration(t, "http://127.0.0.1:1")
	made := t.TempDir()
	cfg.History.StateDir = filepath.Join(made, "state", "deeper")
	cfg.Audit = config.Audit{Level: config.AuditMetadata, File: filepath.Join(made, "audit.log")}
	if err := Check(cfg); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(made); err != nil || len(files) > 0 {
		t.Error(files, err)
	}
	if err := CheckHistory(t.Context(), cfg.History); !errors.Is(err, store.ErrOlder) {
		t.Error(err)
	}
	if files, err := os.ReadDir(made); err != nil || len(files) > 0 {
		t.Error(files, err)
	}
}

// TestStartUpErrorsNameWhatToChange
func TestStartUpErrorsNameWhatToChange(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	empty := filepath.Join(t.TempDir(), "empty.pub")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*config.Config)
		want   []string
	}{
		"listen":     {func(c *config.Config) { c.Listen = taken.Addr().String() }, []string{"listen: ", "address already in use"}},
		"opsListen":  {func(c *config.Config) { c.OpsListen = taken.Addr().String() }, []string{"opsListen: ", "address already in use"}},
		"kubeconfig": {func(c *config.Config) { c.Clusters[0].Kubeconfig = "/none/kubeconfig" }, []string{"cluster default", "/none/kubeconfig"}},
		"context":    {func(c *config.Config) { c.Clusters[0].Context = "elsewhere" }, []string{"cluster default", "elsewhere"}},
		"key file":   {func(c *config.Config) { c.Auth.JWT[0].PublicKeyFile = "/none/key.pub" }, []string{"PublicKeyFile", "/none/key.pub"}},
		"empty key":  {func(c *config.Config) { c.Auth.JWT[0].PublicKeyFile = empty }, []string{"PublicKeyFile", "empty.pub"}},
		"cookie key": {func(c *config.Config) { c.Auth.CookieKeyFile = empty }, []string{"auth.cookieKeyFile", "empty.pub: no key"}},
		"policy": {func(c *config.Config) {
			c.Authorizer = config.Authorizer{Mode: config.AuthorizerPolicy, Policies: []string{"user.nmae"}}
		}, []string{"authorizer.policies[0]", "undeclared reference"}},
		"no tokens of the ops listener": {func(c *config.Config) { c.Ops.TokenFile = "/none/token" }, []string{"ops.tokenFile"}},
		"audit log nowhere": {func(c *config.Config) {
			c.Audit = config.Audit{Level: config.AuditMetadata, File: filepath.Join(t.TempDir(), "none", "log")}
		}, []string{"audit.file"}},
		"index of all": {func(c *config.Config) { c.Cache.Indexes = map[config.Kind][]string{{Resource: "pods"}: {"a..b"}} }, []string{"cache.indexes.pods"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := configuration(t, "http://127.0.0.1:1")
			test.change(&cfg)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			err := Run(ctx, Options{Config: cfg, Log: slog.New(slog.DiscardHandler), Drain: ctx})
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("it runs: %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, without %q", err, want)
				}
			}
		})
	}
	if other, err := net.Listen("tcp", taken.Addr().String()); err == nil {
		other.Close()
		t.Error("the address was given away")
	}
}

func TestNobodyCanSignInIsAWarning(t *testing.T) {
	_, url := apitest.Start(t)
	cfg, _ := configuration(t, url)
	cfg.Auth.JWT = nil
	g := start(t, cfg, "")
	g.until("it is ready", func() bool { code, _ := g.get(g.ops, "/readyz"); return code == 200 })
	if !strings.Contains(g.log.String(), "level=WARN") || !strings.Contains(g.log.String(), "nobody can sign in") {
		t.Error(g.log)
	}
}
