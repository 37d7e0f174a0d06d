package faults

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// execute has a database do something that its gateway does not.
func execute(t *testing.T, driver, address, statement string, args ...any) {
	t.Helper()
	if driver == "sqlite" {
		address = "file:" + address + "?_pragma=busy_timeout(60000)"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// run has a job of a user live until it is complete.
func (s *stage) run(t *testing.T, name, owner string) {
	t.Helper()
	if err := s.live(t.Context(), name, owner); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) live(ctx context.Context, name, owner string) error {
	manifest := fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %q, annotations: {kubecast.io/owner: %q}}
spec:
  template: {spec: {restartPolicy: Never, automountServiceAccountToken: false, containers: [{name: main, image: registry.example.org/train:1}]}}
`, name, owner)
	if _, err := s.cluster.Kubectl(ctx, strings.NewReader(manifest), "create", "-f", "-"); err != nil {
		return err
	}
	_, err := s.cluster.Kubectl(ctx, nil, "wait", "--for=condition=complete", "job/"+name, "--timeout=120s")
	return err
}

// database is away when a gateway starts, comes, and then cannot be written.
func database(t *testing.T, s *stage) *server {
	db := dbtest.Postgres()
	if db.Missing() {
		harness.Missing(t, "PostgreSQL is not installed")
	}
	if err := db.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Stop)
	address, err := db.Create()
	if err != nil {
		t.Fatal(err)
	}
	db.Kill()
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	g := s.gateway(t, options{
		history: fmt.Sprintf("{database: %q}", address),
		config:  fmt.Sprintf("notifications: {digest: 10s}\nwebhooks: [{name: here, url: %q}]\n", receiver.URL),
	}).start()
	p := scrapeGateways(t, g)
	p.fires("KubecastHistoryAway", "cannot be used")
	if err := db.Up(); err != nil {
		t.Fatal(err)
	}
	p.ends("KubecastHistoryAway")
	p.sees("sum(kubecast_history_recording) > 0 and sum(kubecast_webhook_sending) > 0")
	p.ends("KubecastHistoryUnrecorded")
	p.ends("KubecastWebhookUnsent")
	p.isSilent("KubecastHistoryBehind", "KubecastDigestsOverdue")

	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	name := at.Path[1:]
	written := func(how string) {
		db.Exec(t, "ALTER DATABASE "+name+" "+how)
		db.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
	}
	reader, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	for n := 0; ; n++ { // on a busy machine a digest may be sent before nobody can write
		s.run(t, fmt.Sprintf("gathered-%d", n), "owner")
		if digestWaits(t, reader, 5*time.Second) {
			written("SET default_transaction_read_only = on")
			if digestWaits(t, reader, time.Second) {
				break
			}
			written("RESET default_transaction_read_only")
			p.sees("sum(kubecast_history_recording) > 0")
		}
		if n == 20 {
			t.Fatal("no digest waits")
		}
	}
	p.fires("KubecastHistoryUnrecorded", "no replica records")
	p.fires("KubecastWebhookUnsent", "webhook here")
	p.showsPanel("database", "Failures of the database, a minute")
	p.fires("KubecastHistoryBehind", "is recorded as late")
	p.fires("KubecastDigestsOverdue", "late")
	written("RESET default_transaction_read_only")
	for _, alert := range []string{"KubecastHistoryUnrecorded", "KubecastWebhookUnsent", "KubecastHistoryBehind", "KubecastDigestsOverdue"} {
		p.ends(alert)
	}
	return p
}

// digestWaits reports whether a digest is gathered, and not sent yet; it waits a while for one.
func digestWaits(t *testing.T, db *sql.DB, while time.Duration) bool {
	t.Helper()
	for deadline := time.Now().Add(while); ; time.Sleep(20 * time.Millisecond) {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM inbox_heads WHERE due > 0").Scan(&n); err == nil && n > 0 {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// webhooks have receivers of which one is away, and one answers 410.
func webhooks(t *testing.T, s *stage) *server {
	var there atomic.Bool
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !there.Load() {
			w.WriteHeader(http.StatusGone)
		}
	}))
	t.Cleanup(gone.Close)
	away := harness.Address(t)
	g := s.gateway(t, options{config: fmt.Sprintf("notifications: {keep: 2h}\nwebhooks: [{name: gone, url: %q}, {name: away, url: \"http://%s\"}]\n", gone.URL, away)}).start().ready()
	p := scrapeGateways(t, g)
	p.sees("sum(kubecast_history_recording) > 0 and sum(kubecast_webhook_sending) == 2")
	p.isSilent("KubecastWebhookOff", "KubecastWebhookWaits", "KubecastWebhookExpired")
	s.run(t, "told", "owner")
	p.fires("KubecastWebhookOff", "webhook gone")
	there.Store(true)
	enabled, err := http.Post("http://"+g.ops+"/debug/webhooks", "application/json", strings.NewReader(`{"target": "gone", "action": "enable"}`))
	if err != nil || enabled.StatusCode != http.StatusOK {
		t.Fatal(enabled, err)
	}
	_ = enabled.Body.Close()
	p.ends("KubecastWebhookOff")
	p.sees(`kubecast_webhook_waiting{target="away"} > 0`)
	passes := func(since time.Duration) { // also for a message that came after it passed the last time
		execute(t, "sqlite", filepath.Join(g.dir, "history.db"), "UPDATE outbox SET at = MIN(at, ?)", time.Now().Add(-since).UnixMilli())
	}
	passes(61 * time.Minute)
	p.fires("KubecastWebhookWaits", "webhook away")
	passes(122 * time.Minute)
	g.restart()
	p.fires("KubecastWebhookExpired", "were removed")
	p.ends("KubecastWebhookWaits")
	return p
}
