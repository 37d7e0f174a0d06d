package service

import (
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// A gateway is updated: it goes on in the database of the earlier one from where that was, with the
// jobs that are still there. Those that are gone meanwhile are found to be.
func TestADatabaseOfAnEarlierGatewayIsRecordedOn(t *testing.T) {
	api := apitest.New(apitest.Jobs, apitest.Pods)
	defer api.Close()
	api.Put("jobs", "team-a/running", "status.active:=1", "status.ready:=1")
	identity, err := api.Connect(t).Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/h.db"
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sqlite", "rows"} {
		text, err := os.ReadFile("../store/testdata/schema-8/" + name + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), strings.NewReplacer("'c1'", "'"+identity+"'", "job-running-team-a", api.UID("jobs", "team-a/running"), "'team-b', 'running'", "'team-b', 'another'").Replace(string(text))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE logs SET version = ?", int64(api.Version())); err != nil { // the last that it had read
		t.Fatal(err)
	}
	var seq uint64
	var started jobs.Time
	if err := db.QueryRowContext(t.Context(), "SELECT seq, (SELECT started FROM jobs WHERE name = 'running' AND namespace = 'team-a') FROM logs WHERE resource = 'jobs.batch'").Scan(&seq, &started); err != nil || started == 0 {
		t.Fatal(started, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r := record(t, api, "sqlite://"+file)
	defer r.stop()
	job := map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "running", "uid": api.UID("jobs", "team-a/running"), "controller": true}
	pod(api, "team-a/pod", job, podRuns)
	pod(api, "team-a/pod", job, podFails)
	api.Put("jobs", "team-a/running", "status.failed:=1", `status.conditions:=[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded"}]`)
	r.until("it ends", "running", func(t *jobs.Transition) bool {
		return t.To == jobs.Failed && t.Cause != nil && t.Cause.Reason == jobs.OOMKilled
	})
	gone := r.until("another is found to be gone", "pending", says(jobs.Deleted))
	if !gone.Late || gone.Seq <= seq {
		t.Errorf("it is gone as %+v", gone)
	}
	log, err := r.database.Find(t.Context(), r.log.LogName)
	if err != nil {
		t.Fatal(err)
	}
	found, err := r.database.Jobs(t.Context(), log, store.Filter{Name: "running", Namespace: "team-a"}, store.JobAfter{}, 10)
	if err != nil || len(found) != 1 || found[0].Started != started || found[0].State != jobs.Failed || found[0].Attempt != 1 || found[0].Spent[jobs.Running] < time.Hour {
		t.Errorf("%+v, %v", *found[0], err)
	}
	transitions, err := r.database.Transitions(t.Context(), log, store.Filter{UIDs: []string{found[0].UID}}, 0, 10)
	if err != nil || len(transitions) != 4 || transitions[0].From != jobs.Running || transitions[0].Late {
		t.Errorf("%+v %+v %+v, %v", *transitions[0], *transitions[1], *transitions[2], err)
	}
}
