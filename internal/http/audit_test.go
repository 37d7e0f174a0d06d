package http

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/audit"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/authtest"
)

// auditFile is an audit log under test.
type auditFile struct {
	t    *testing.T
	path string
	end  func() // writes what is left
}

func audited(t *testing.T) (*auditFile, option) {
	t.Helper()
	f := &auditFile{t: t, path: filepath.Join(t.TempDir(), "audit.log")}
	log, err := audit.Open(f.path, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { log.Run(ctx) })
	f.end = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(f.end)
	return f, options(func(o *Options) { o.Audit = log })
}

// line is what a test looks at of a line: "list pods.v1@a alice 200 allow all json token".
func (f *auditFile) lines() (lines []string) {
	f.t.Helper()
	text, err := os.ReadFile(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e struct {
			AuditID, Stage, Verb, RequestURI string
			User                             audit.User
			SourceIPs                        []string
			ObjectRef                        *audit.Object
			ResponseStatus                   struct{ Code int }
			Annotations                      map[string]string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			f.t.Fatalf("%v: %s", err, line)
		}
		if len(e.AuditID) != 12 || len(e.SourceIPs) != 1 || e.SourceIPs[0] != "127.0.0.1" && e.SourceIPs[0] != "pipe" { // the latter in a bubble
			f.t.Error(line)
		}
		what := e.RequestURI
		if o := e.ObjectRef; o != nil {
			what = strings.Trim(o.Resource+"."+o.APIGroup, ".") + " " + o.Namespace + "/" + o.Name
		}
		said := fmt.Sprintf("%s %s %s %q %d", e.Stage, e.Verb, what, e.User.Username, e.ResponseStatus.Code)
		for _, name := range []string{"authorization.k8s.io/decision", "kubecast.io/visible", "kubecast.io/form", "kubecast.io/credential", "kubecast.io/watch",
			"kubecast.io/label-selector", "kubecast.io/field-selector", "kubecast.io/search", "kubecast.io/ended", "kubecast.io/events",
			"kubecast.io/session", "kubecast.io/ended-issuer", "kubecast.io/ended-subject", "kubecast.io/ended-session"} {
			if value := e.Annotations[name]; value != "" {
				said += " " + value
			}
		}
		lines = append(lines, said)
	}
	return lines
}

// TestAuditLogTellsWhoReadWhatAndByWhichWay: each list, object, stream, sign-in and refusal, and nothing else.
func TestAuditLogTellsWhoReadWhatAndByWhichWay(t *testing.T) {
	log, option := audited(t)
	g := newGateway(t, option, sealed)
	g.expiring()
	g.api.Put("pods", "a/web")
	g.api.Put("secrets", "a/password")
	g.access.permit("bob", auth.Scope{Namespaces: []string{"a"}})
	g.access.permit("eve", auth.Scope{})

	g.get("/api/v1/namespaces/a/pods?labelSelector=app%3Dweb&search=we")
	g.get("/api/v1/namespaces/a/pods/web", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
	g.get("/api/v1/namespaces/a/pods/none")
	g.get("/api/v1/pods", "Authorization: Bearer bob")
	g.get("/api/v1/pods", "Authorization: Bearer eve")
	g.get("/api/v1/pods", "Authorization: ")
	g.get("/api/v1/namespaces/a/secrets/password?watch=1", "Authorization: Bearer forged")
	g.get("/api/v1/gadgets")
	g.get("/api/v1/namespaces/a/secrets?fieldSelector=data.key%3Dguess")
	cookie, _, _ := strings.Cut(g.post("/auth/session", "").header.Get("Set-Cookie"), ";")
	g.get("/api/v1/namespaces/a/pods", "Authorization: ", "Cookie: "+cookie)
	g.post("/auth/logout", "", "Authorization: ", "Cookie: "+cookie)
	g.get("/auth/me")
	g.get("/apis")
	g.get("/auth/session")
	g.get("/none")

	s := g.stream("/stream?a=" + escape("/api/v1/namespaces/a/pods?labelSelector=app") + "&b=/api/v1/secrets&labelSelector=tier&fieldSelector=metadata.name%3Dx")
	s.until("b.synced")
	s.close()
	g.eventually("the stream has ended", func() bool { return g.streams() == 0 })
	g.get("/stream?a=/api/v1/pods", "Authorization: Bearer eve", "Accept: text/event-stream")
	g.get("/api/v1/pods?watch=true&timeoutSeconds=1")
	g.eventually("the watch has ended", func() bool { return g.streams() == 0 })
	g.stop()
	log.end()

	want := `ResponseComplete list pods a/ "alice" 200 allow all json token app=web we
ResponseComplete get pods a/web "alice" 200 allow all table token
ResponseComplete get pods a/none "alice" 404 allow all json token
ResponseComplete list pods / "bob" 200 allow part json token
ResponseComplete list pods / "eve" 403 forbid json token
ResponseComplete list pods / "" 401
ResponseComplete watch secrets a/password "" 401 token
ResponseComplete list gadgets / "alice" 404 json token
ResponseComplete list secrets a/ "alice" 200 allow all json token [withheld]
ResponseComplete post /auth/session "alice" 200 token
ResponseComplete list pods a/ "alice" 200 allow all json session
ResponseComplete post /auth/logout "alice" 204 session
ResponseStarted watch pods a/ "alice" 200 allow all events token a app metadata.name=x
ResponseStarted watch secrets / "alice" 200 allow all events token b [withheld] [withheld]
ResponseComplete watch pods a/ "alice" 200 allow all events token a app metadata.name=x left 2
ResponseComplete watch secrets / "alice" 200 allow all events token b [withheld] [withheld] left 2
ResponseComplete watch pods / "eve" 403 forbid events token
ResponseStarted watch pods / "alice" 200 allow all json token
ResponseComplete watch pods / "alice" 200 allow all json token age 1`
	if got := strings.Join(log.lines(), "\n"); got != want {
		t.Errorf("the log is\n%s\nnot\n%s", got, want)
	}
}

// TestAuditLogHoldsNoCredentials, wherever somebody puts them, and no line is made by a client.
func TestAuditLogHoldsNoCredentials(t *testing.T) {
	const token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.c2lnbmVk"
	log, option := audited(t)
	g := newGateway(t, option, sealed)
	g.expiring()
	ticket := func() string {
		var issued struct{ Ticket string }
		if err := json.Unmarshal([]byte(g.post("/auth/ticket", `{"path":"/api/v1/pods"}`).body), &issued); err != nil {
			t.Fatal(err)
		}
		return issued.Ticket
	}()
	cookie, _, _ := strings.Cut(g.post("/auth/session", "").header.Get("Set-Cookie"), ";")
	g.get("/api/v1/pods?ticket="+ticket, "Authorization: ")
	g.get("/api/v1/pods?ticket="+ticket+"x", "Authorization: ")
	g.get("/api/v1/pods?access_token="+token, "Authorization: ")
	g.get("/api/v1/namespaces/"+token+"/pods", "Authorization: Bearer forged")
	g.get("/api/v1/pods?labelSelector="+token, "Authorization: Bearer "+token, "User-Agent: "+token+"\t\"}{", "Cookie: "+cookie)
	g.get("/api/v1/pods?search="+escape("\n{\"kind\":\"Event\"}"+strings.Repeat("x", 4000)), "Cookie: "+cookie)
	g.stop()
	log.end()
	text, err := os.ReadFile(log.path)
	if err != nil {
		t.Fatal(err)
	}
	_, session, _ := strings.Cut(cookie, "=")
	for _, secret := range []string{token, ticket, session, "signature", "c2lnbmVk"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s: %s", secret, text)
		}
	}
	if lines := log.lines(); len(lines) != 5 {
		t.Errorf("%q", lines)
	}
	for line := range strings.Lines(string(text)) {
		if len(line) > 2000 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// TestAuditLogTellsWhoseSessionTheProviderEnds, by the name that the lines of the sign-in and of
// what came after have, too; and of those who send something else, that they tried.
func TestAuditLogTellsWhoseSessionTheProviderEnds(t *testing.T) {
	provider := authtest.New()
	provider.Claims = func(claims map[string]any) { claims["sid"] = "s-1" }
	log, option := audited(t)
	inBubble(t, func(t *testing.T, g *gateway) {
		b := g.browser()
		b.signIn(provider)
		pass(time.Second)
		g.logout("forged")
		if a := g.logout(provider.LogoutToken(func(_, c map[string]any) { c["sid"] = "s-1" })); a.code != 200 {
			t.Fatalf("%d %s", a.code, a.body)
		}
	}, withLogin(provider), option)
	log.end()
	lines := log.lines()
	if len(lines) != 3 {
		t.Fatalf("%q", lines)
	}
	for i, want := range []string{
		`ResponseComplete get /auth/callback "jane" 303 login s-1`, `ResponseComplete post /auth/backchannel-logout "" 400`,
		`ResponseComplete post /auth/backchannel-logout "" 200 ` + authtest.Issuer + ` jane s-1`,
	} {
		if lines[i] != want {
			t.Errorf("%s, not %s", lines[i], want)
		}
	}
}

// TestAuditedStreamThatIsDrainedHasItsEnd: an end that is planned is in the log before the gateway ends.
func TestAuditedStreamThatIsDrainedHasItsEnd(t *testing.T) {
	log, option := audited(t)
	g := newGateway(t, option, options(func(o *Options) { o.Drain = time.Millisecond }))
	s := g.stream("/api/v1/pods")
	s.until("synced")
	ctx, cancel := context.WithTimeout(context.Background(), g.patience)
	defer cancel()
	g.server.Drain(ctx)
	g.stop()
	log.end()
	if got := log.lines(); len(got) != 2 || !strings.HasSuffix(got[1], "drain 3") {
		t.Errorf("%q", got)
	}
}
