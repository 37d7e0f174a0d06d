package app

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// transitions are those of the only log in a configuration's database, by their states.
func transitions(t *testing.T, cfg config.Config) (states []string) {
	t.Helper()
	db, err := openHistory(cfg.History)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	connection, err := cluster.Connect(cluster.Options{Name: "default", Kubeconfig: cfg.Clusters[0].Kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	identity, err := connection.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log, err := db.Find(t.Context(), store.LogName{Cluster: identity, Resource: "jobs.batch"})
	if errors.Is(err, store.ErrNoLog) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := db.TransitionsAfter(t.Context(), log, store.Filter{}, 0, 1000, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i, tr := range all {
		if tr.Seq != uint64(i+1) {
			t.Errorf("number %d stands at %d", tr.Seq, i+1)
		}
		states = append(states, tr.Name+" "+string(tr.To))
	}
	return states
}

func TestHistoryGoesOnAfterARestart(t *testing.T) {
	api, url := apitest.Start(t)
	cfg, token := configuration(t, url)
	api.Put("jobs", "team-a/train")
	g := start(t, cfg, token)
	tells := func(metric string) func() bool {
		return func() bool {
			_, body := g.get(g.ops, "/metrics")
			return strings.Contains(body, metric)
		}
	}
	g.until("the first start finds the job", tells(`kubecast_history_transitions_total{cluster="default",kind="jobs.batch",state="Submitted"} 1`))
	api.Put("jobs", "team-a/train", "status.active:=1", "status.ready:=1")
	g.until("it runs", tells(`state="Running"} 1`))
	if !tells(`kubecast_history_recording{cluster="default",kind="jobs.batch"} 1`)() || !tells(`kubecast_history_lag_seconds{cluster="default",kind="jobs.batch"} 0`)() {
		_, body := g.get(g.ops, "/metrics")
		t.Error(body)
	}
	if _, body := g.get(g.ops, "/debug/history"); !regexp.MustCompile(`default +jobs\.batch +recording +\S+ +\d+ +2 +1 +- `).MatchString(body) {
		t.Error(body)
	}
	g.end()
	if err := g.wait(); err != nil {
		t.Fatal(err)
	}
	api.Put("jobs", "team-a/train", "status.failed:=1")
	api.Put("jobs", "team-a/train", "status.active:=1", "status.ready:=1", "status.failed:=1")
	api.Delete("jobs", "team-a/train")
	g = start(t, cfg, token)
	g.until("what happened meanwhile is recorded", tells(`state="Deleted"} 1`))
	want := []string{"train Submitted", "train Running", "train Retrying", "train Running", "train Deleted"}
	if got := transitions(t, cfg); strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("%q, not %q", got, want)
	}
}

// Lists, streams and readiness do not wait for the history's database, and a log line says when it goes and comes.
func TestNothingWaitsForTheHistorysDatabase(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	for name, database := range map[string]string{
		"refused": "postgres://u:secret-word@127.0.0.1:1/d?connect_timeout=1", "silent": "mysql://u:secret-word@" + nobody.Addr().String() + "/d",
		"read-only file": "sqlite:///proc/self/history.db",
	} {
		t.Run(name, func(t *testing.T) {
			api, url := apitest.Start(t)
			api.Put("jobs", "team-a/train")
			cfg, token := configuration(t, url)
			cfg.History.Database, cfg.History.StateDir = database, ""
			g := start(t, cfg, token)
			g.until("it is ready", func() bool { code, _ := g.get(g.ops, "/readyz"); return code == 200 })
			if code, body := g.get(g.addr, "/apis/batch/v1/jobs"); code != 200 || !strings.Contains(body, "train") {
				t.Errorf("%d %s", code, body)
			}
			g.until("the log says so", func() bool { return strings.Contains(g.log.String(), "history's database cannot be used for now") })
			if file := strings.TrimPrefix(database, "sqlite://"); !strings.Contains(g.log.String(), "/d error=") && !strings.Contains(g.log.String(), "database=sqlite://"+file+" error=") {
				t.Errorf("the log does not name the database: %s", g.log.String())
			}
			if _, body := g.get(g.ops, "/metrics"); !strings.Contains(body, "kubecast_history_ready 0") || strings.Contains(body+g.log.String(), "secret-word") {
				t.Error(g.log.String())
			}
			g.end()
			if err := g.wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is wrong in the configuration of the history ends the start, as it ends `gateway check`, by
// a message that names the key.
func TestFaultsOfTheHistoryAreToldAtStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*config.History){
		"history.owner: ":                             func(h *config.History) { h.Owner = "object." },
		"history.kinds[0].state: ":                    func(h *config.History) { h.Kinds = []config.HistoryKind{{Resource: "a.b", State: "'Sleeping'"}} },
		"history.kinds[0].state: is missing":          func(h *config.History) { h.Kinds = []config.HistoryKind{{Resource: "a.b"}} },
		"history.kinds[0].queue: ":                    func(h *config.History) { h.Kinds = []config.HistoryKind{{Resource: "rayjobs.ray.io", Queue: "1"}} },
		"history.passwordFile: open /none":            func(h *config.History) { h.Database, h.PasswordFile = "postgres://h/d", "/none" },
		"history.database: has the parameter tls=yes": func(h *config.History) { h.Database = "mysql://h/d?tls=yes" },
		"history.database: ca: open /none":            func(h *config.History) { h.Database = "mysql://h/d?ca=/none" },
		"history.database: has a password, beside":    func(h *config.History) { h.Database, h.PasswordFile = "postgres://u:p@h/d", file },
		"history.database: stat /none/x: no such":     func(h *config.History) { h.Database = "sqlite:///none/x/history.db" },
		"history.stateDir: the history's file needs":  func(h *config.History) { h.Database, h.StateDir = "sqlite", file+"/x" },
	} {
		cfg, _ := configuration(t, "http://127.0.0.1:1")
		cfg.History.StateDir = ""
		if change(&cfg.History); cfg.History.StateDir == "" && cfg.History.Database == config.HistorySQLite {
			cfg.History.StateDir = t.TempDir()
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := Run(ctx, Options{Config: cfg, Log: slog.New(slog.DiscardHandler), Drain: ctx})
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, without %q", err, want)
		}
		if err := Check(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("check: %v, without %q", err, want)
		}
	}
	cfg, _ := configuration(t, "http://127.0.0.1:1")
	cfg.History.StateDir = filepath.Join(t.TempDir(), "none")
	if err := Check(cfg); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(cfg.History.StateDir); err == nil {
		t.Error("check has made a directory")
	}
}

// A gateway that is rolled back too far, or updated in front of its database, is not ready, and
// says in its log, its answers, its metric and on the ops listener which release is needed. Clients
// that it has are served all but the history. It goes on by itself once the schema fits.
func TestAGatewayThatMustNotUseTheSchemaSaysWhichReleaseIsNeeded(t *testing.T) {
	_, url := apitest.Start(t)
	cfg, token := configuration(t, url)
	if err := MigrateHistory(t.Context(), cfg.History, "v1.0.0"); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", cfg.History.StateDir+"/history.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	say := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	say("UPDATE history_schema SET version = 99, readable_from = 98, changed_by = 'v9.8.0'")
	g := start(t, cfg, token)
	const needed = "run release v9.8.0 or a later one"
	g.until("it is refused", func() bool {
		code, body := g.get(g.ops, "/readyz")
		return code == 503 && strings.Contains(body, "history: ") && strings.Contains(body, needed)
	})
	if _, body := g.get(g.ops, "/metrics"); !strings.Contains(body, "\nkubecast_history_schema_refused 1\n") || !strings.Contains(body, "\nkubecast_history_ready 0\n") {
		t.Error(body)
	}
	if !strings.Contains(g.log.String(), `error="schema: `) || !strings.Contains(g.log.String(), needed) {
		t.Error(g.log)
	}
	for _, path := range []string{"/history/apis/batch/v1/jobs", "/notifications"} {
		if code, body := g.get(g.addr, path); code != 503 || !strings.Contains(body, "the schema of another release") || strings.Contains(body, "try again in a moment") || strings.Contains(body, "v9.8.0") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, body := g.get(g.addr, "/apis/batch/v1/jobs"); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	say("UPDATE history_schema SET readable_from = 15") // as if the newer one had only expanded it
	g.until("it is used", func() bool {
		code, _ := g.get(g.ops, "/readyz")
		_, body := g.get(g.ops, "/metrics")
		return code == 200 && strings.Contains(body, "\nkubecast_history_schema_refused 0\n") && strings.Contains(body, "\nkubecast_history_ready 1\n")
	})
	if code, body := g.get(g.addr, "/history/apis/batch/v1/jobs"); code != 200 {
		t.Errorf("%d %s: %s", code, body, g.log)
	}
}

// A gateway whose user owns nothing, and has exactly what `gateway history grants` prints, records
// jobs, their pods, specs and logs, and tells of them.
func TestAGatewayRecordsAllWithTheGrantedRights(t *testing.T) {
	for name, server := range map[string]*dbtest.Server{"PostgreSQL": dbtest.Postgres(), "MariaDB": dbtest.MariaDB()} {
		t.Run(name, func(t *testing.T) {
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Stop)
			owned := config.Default().History
			owned.Database = server.Database(t)
			if err := MigrateHistory(t.Context(), owned, "test"); err != nil {
				t.Fatal(err)
			}
			_, as := server.Role(t, "gatewayonly", owned.Database)
			owner, err := openHistory(owned)
			if err != nil {
				t.Fatal(err)
			}
			defer owner.Close()
			var grants strings.Builder
			if err := GrantsHistory(owned, "gatewayonly", &grants); err != nil {
				t.Fatal(err)
			}
			for statement := range strings.Lines(grants.String()) {
				if err := owner.Transact(t.Context(), func(tx *store.Tx) error {
					_, err := tx.Exec(t.Context(), statement)
					return err
				}); err != nil {
					t.Fatal(statement, err)
				}
			}
			told := make(chan struct{}, 100)
			receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told <- struct{}{} }))
			defer receiver.Close()
			api, url := apitest.Start(t)
			api.Logs = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "its last words\n") }
			cfg, token := configuration(t, url)
			cfg.History.StateDir = ""
			cfg.History.Database = as
			cfg.Webhooks = []config.Webhook{{Name: "backend", URL: receiver.URL, States: []string{"Failed"}, Concurrency: 1}}
			g := start(t, cfg, token)
			rows := func(table string) (n int) {
				if err := owner.QueryRow(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
					t.Fatal(table, err)
				}
				return n
			}
			g.until("jobs and pods are recorded", func() bool { return strings.Count(g.log.String(), `msg="history is recorded"`) == 2 })
			jane := `metadata.annotations:={"kubecast.io/owner":"jane"}`
			api.Put("jobs", "team-a/train", jane, "status.active:=1", "status.ready:=1")
			job := apitest.Set("metadata.ownerReferences", []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": api.UID("jobs", "team-a/train"), "controller": true}})
			api.Put("pods", "team-a/train-0", job, "spec.nodeName=n", `status:={"phase":"Running","containerStatuses":[{"name":"main","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}`)
			g.until("the run is there", func() bool { return rows("runs") == 1 })
			api.Put("pods", "team-a/train-0", job, "spec.nodeName=n", `status:={"phase":"Failed","containerStatuses":[{"name":"main","state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}`)
			api.Put("jobs", "team-a/train", jane, "status.failed:=1", `status.conditions:=[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded"}]`)
			for _, table := range []string{"logs", "jobs", "transitions", "runs", "totals", "kept", "kept_budgets", "secrets", "inbox_heads", "inbox", "webhooks"} {
				g.until("there are "+table, func() bool { return rows(table) > 0 })
			}
			select {
			case <-told:
			case <-time.After(patience):
				t.Error("the webhook is not told")
			}
			g.until("its message is settled", func() bool { return rows("outbox") == 0 })
			if code, body := g.get(g.addr, "/notifications"); code != 200 || !strings.Contains(body, "train") {
				t.Errorf("%d %s", code, body)
			}
			if _, body := g.get(g.ops, "/metrics"); regexp.MustCompile(`kubecast_history_errors_total\{cause="\w+"\} [1-9]`).MatchString(body) {
				t.Error(body)
			}
			g.end()
			if err := g.wait(); err != nil || strings.Contains(g.log.String(), "denied") {
				t.Error(err, g.log)
			}
		})
	}
}
