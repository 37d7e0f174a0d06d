package app

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// What is left of a line of the log that is the same each time, and who says it.
var changing = regexp.MustCompile(`^time=\S+ | error=("(\\.|[^"\\])*"|\S+)| messages=\d+`)

// warnings are the log's lines that warn, and how often each came.
func (g *gateway) warnings(from int) map[string]int {
	all := map[string]int{}
	for line := range strings.Lines(g.log.String()[from:]) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			all[changing.ReplaceAllString(strings.TrimSpace(line), "")]++
		}
	}
	return all
}

// TestADatabaseThatIsAwayIsNotToldAgainAndAgain, whoever needs it: with each line that comes each second, the one that says
// what else is wrong is not found.
func TestADatabaseThatIsAwayIsNotToldAgainAndAgain(t *testing.T) {
	away := 12 * time.Second // AWAY=60s for longer
	if text := os.Getenv("AWAY"); text != "" {
		var err error
		if away, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	for name, begin := range map[string]func(*testing.T) (database string, kill, up func() error){
		"PostgreSQL":                             func(t *testing.T) (string, func() error, func() error) { return ofServer(t, dbtest.Postgres()) },
		"MariaDB":                                func(t *testing.T) (string, func() error, func() error) { return ofServer(t, dbtest.MariaDB()) },
		"a file that another program has locked": lockedFile,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database, kill, up := begin(t)
			receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			defer receiver.Close()
			api, url := apitest.Start(t)
			cfg, token := configuration(t, url)
			cfg.History.StateDir, cfg.History.Database = "", database
			if err := MigrateHistory(t.Context(), cfg.History, "test"); err != nil {
				t.Fatal(err)
			}
			cfg.Webhooks = []config.Webhook{{Name: "backend", URL: receiver.URL, States: []string{"Failed"}, Concurrency: 1}}
			g := start(t, cfg, token)
			g.until("jobs and pods are recorded", func() bool { return strings.Count(g.log.String(), `msg="history is recorded"`) == 2 })
			from := len(g.log.String())
			if err := kill(); err != nil {
				t.Fatal(err)
			}
			for began := time.Now(); time.Since(began) < away; time.Sleep(200 * time.Millisecond) {
				api.Put("jobs", "team-a/train", `metadata.annotations:={"kubecast.io/owner":"jane"}`, "status.active:=1")
			}
			told := g.warnings(from)
			if len(told) == 0 {
				t.Errorf("nothing is told: %s", g.log)
			}
			for line, n := range told {
				t.Log(n, line)
				if n > 3 { // the database may go in several ways: connections break, are refused, take too long
					t.Errorf("%d times: %s", n, line)
				}
			}
			if err := up(); err != nil {
				t.Fatal(err)
			}
			g.until("history is recorded again", func() bool {
				_, body := g.get(g.ops, "/metrics")
				return strings.Count(body, "\nkubecast_history_recording{") == 2 && !regexp.MustCompile(`kubecast_history_recording\{.*\} 0`).MatchString(body)
			})
		})
	}
}

// ofServer is a database of a server that can be killed.
func ofServer(t *testing.T, server *dbtest.Server) (database string, kill, up func() error) {
	t.Helper()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server.Database(t), func() error { server.Kill(); return nil }, server.Up
}

// lockedFile is a database that is a file, which another program can lock.
func lockedFile(t *testing.T) (database string, lock, unlock func() error) {
	file := filepath.Join(t.TempDir(), "history.db")
	other, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	other.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = other.Close() })
	exec := func(statement string) func() error {
		return func() error {
			_, err := other.ExecContext(context.Background(), statement)
			return err
		}
	}
	return "sqlite://" + file, exec("BEGIN IMMEDIATE"), exec("ROLLBACK")
}
