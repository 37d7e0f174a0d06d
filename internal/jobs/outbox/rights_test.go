package outbox

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
	"github.com/kubecast/kubecast/internal/jobs/inbox"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// A role that owns nothing and has exactly what `gateway history grants` prints can do all that a gateway does.
func TestTheGrantedRightsAreEnoughForAllThatAGatewayWrites(t *testing.T) {
	for name, server := range map[string]*dbtest.Server{"PostgreSQL": dbtest.PostgreSQL, "MariaDB": dbtest.Maria} {
		t.Run(name, func(t *testing.T) {
			address := server.Database(t)
			_, as := server.Role(t, "gatewayonly", address)
			owner, err := store.New(store.Options{Address: address})
			if err != nil {
				t.Fatal(err)
			}
			defer owner.Close()
			if err := owner.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			grants, err := store.Grants(store.Options{Address: address}, "gatewayonly")
			if err != nil {
				t.Fatal(err)
			}
			for _, statement := range grants {
				if err := owner.Transact(t.Context(), func(tx *store.Tx) error {
					_, err := tx.Exec(t.Context(), statement)
					return err
				}); err != nil {
					t.Fatal(statement, err)
				}
			}
			works(t, as)
		})
	}
}

// works does all that a gateway does at a database.
func works(t *testing.T, address string) {
	box := inbox.New(inbox.Options{States: []jobs.State{jobs.Failed}, Keep: time.Hour, Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	s, err := store.New(store.Options{Address: address, Writers: []store.Writer{NewWriter([]Route{{Name: "all", States: []jobs.State{jobs.Failed}}}), box}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ready := make(chan struct{})
	close(ready)
	box.Use(s, ready, func(store.LogName, uint64) string { return "sealed" })
	ctx, mail := t.Context(), New(s)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	must(s.Check(ctx))
	log, err := s.Take(ctx, store.LogName{Cluster: "c1", Resource: "jobs.batch"}, "default", "holder", time.Minute)
	must(err)
	log, err = s.Write(ctx, log, store.Batch{To: 1})
	must(err)
	digest := time.Hour
	_, err = box.Choose(ctx, "bob", inbox.Choice{Digest: &digest})
	must(err)
	b := store.Batch{To: 2}
	for _, owner := range []string{"ann", "bob"} {
		next, transition := jobs.Next(nil, jobs.Seen{
			ObjectID: jobs.ObjectID{UID: "u-" + owner, Namespace: "n", Name: "n"}, Version: 2, Created: 1, Observed: 2, Said: jobs.Said{State: jobs.Failed, Owner: owner},
		})
		b.Transitions, b.After, b.Jobs = append(b.Transitions, transition), append(b.After, next), append(b.Jobs, next)
	}
	log, err = s.Write(ctx, log, b)
	must(err)
	all := func(inbox.JobRef) bool { return true }
	must(box.Read(ctx, "ann", all, 1<<62, nil))
	if page, _, err := box.Page(ctx, "ann", all, 0, false, 10); err != nil || len(page) != 1 || page[0].ReadAt == 0 {
		t.Error(page, err)
	}
	_, err = mail.Take(ctx, "all", "url", "holder", time.Minute)
	must(err)
	_, err = mail.Renew(ctx, "holder", time.Minute, map[string]LastAnswer{"all": {At: 1, Text: "200"}})
	must(err)
	due, _, err := mail.Due(ctx, "all", "n", jobs.At(time.Now()), MessageKey{}, 10)
	if err != nil || len(due) != 2 {
		t.Error(due, err)
	}
	must(mail.Record(ctx, []AttemptResult{{Target: "all", MessageKey: MessageKey{log.ID, 1}, Delivered: true}, {Target: "all", MessageKey: MessageKey{log.ID, 2}, Dead: true}}, map[string]Switch{"all": {}}))
	must(mail.Release(ctx, "all", "holder"))
	_, err = s.Expire(ctx, log, jobs.At(time.Now()), 10)
	must(err)
	must(s.Release(ctx, log.LogName, "holder"))
	if _, err := s.Find(ctx, log.LogName); errors.Is(err, store.ErrNoLog) {
		t.Error(err)
	}
	_, err = s.Forget(ctx, log, jobs.At(time.Now().Add(time.Hour)), 10)
	must(err)
}
