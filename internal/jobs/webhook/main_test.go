package webhook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// history is a log in a database, to which a test writes what jobs went through.
type history struct {
	t       *testing.T
	address string
	db      *store.Store
	store   *outbox.Store

	mu  sync.Mutex
	log store.Log
}

var ends = []jobs.State{jobs.Succeeded, jobs.Failed}

// newHistory makes a log whose ends are messages for targets.
func newHistory(t *testing.T, targets ...outbox.Route) *history {
	t.Helper()
	for i := range targets {
		targets[i].States = ends
	}
	p := &history{t: t, address: "sqlite://" + t.TempDir() + "/h.db"}
	p.db = p.open(store.Options{Address: p.address, Writers: []store.Writer{outbox.NewWriter(targets)}})
	p.store = outbox.New(p.db)
	if err := p.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.log, err = p.db.Take(t.Context(), store.LogName{Cluster: "c1", Resource: "jobs.batch"}, "east", "test", time.Minute); err != nil {
		t.Fatal(err)
	}
	p.write("first", jobs.Failed)
	return p
}

func (p *history) open(opts store.Options) *store.Store {
	p.t.Helper()
	db, err := store.New(opts)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := db.Close(); err != nil {
			p.t.Error(err)
		}
	})
	return db
}

// write has a job go through states. Of a uid such as team-1 the namespace is team, of others it is n.
func (p *history) write(uid string, states ...jobs.State) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	namespace, _, numbered := strings.Cut(uid, "-")
	if !numbered {
		namespace = "n"
	}
	b := store.Batch{To: p.log.Version + 1}
	var job *jobs.Job
	for _, state := range states {
		next, transition := jobs.Next(job, jobs.Seen{
			ObjectID: jobs.ObjectID{UID: uid, Namespace: namespace, Name: "name-" + uid}, Said: jobs.Said{State: state, Message: "because"},
			Version: b.To, Created: 1000, Observed: jobs.At(time.Now()),
		})
		job = next
		b.Transitions, b.After = append(b.Transitions, transition), append(b.After, next)
	}
	b.Jobs = []*jobs.Job{job}
	next, err := p.db.Write(p.t.Context(), p.log, b)
	if err != nil {
		p.t.Fatal(err)
	}
	p.log = next
}

// waiting is how many messages of a target wait, and how many are dead.
func (p *history) waiting(target string) (waiting, dead int) {
	p.t.Helper()
	c, err := p.store.Counts(p.t.Context(), target)
	if err != nil {
		p.t.Fatal(err)
	}
	return c.Waiting, c.Dead
}

// quick are times for tests.
var quick = times{lease: 3 * time.Second, poll: 50 * time.Millisecond, grace: time.Second}

// start sends to targets until the test ends, or stop is called.
func (p *history) start(targets ...Target) (senders *Senders, stop func()) {
	p.t.Helper()
	for i := range targets {
		if targets[i].Concurrency == 0 {
			targets[i].Concurrency = 4
		}
	}
	s, err := New(Options{Targets: targets, Keep: time.Hour, Registerer: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(p.t.Output(), nil))})
	if err != nil {
		p.t.Fatal(err)
	}
	s.times = quick
	for _, t := range s.targets {
		t.times = quick
	}
	ready := make(chan struct{})
	close(ready)
	ctx, cancel := context.WithCancel(p.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx, p.store, ready) })
	stop = func() {
		cancel()
		running.Wait()
	}
	p.t.Cleanup(stop)
	return s, stop
}

// arrival is a message as a receiver got it.
type arrival struct {
	id, uid, to string
	header      http.Header
	body        []byte
	at          time.Time
}

// receiver is a target. It answers with answer, if that is not nil, and else with 204.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []arrival
	answer func(w http.ResponseWriter, r *http.Request, a arrival)
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, a arrival)) *receiver {
	rec := &receiver{answer: answer}
	rec.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var event struct {
			Data outbox.Event `json:"data"`
		}
		_ = json.Unmarshal(body, &event)
		a := arrival{r.Header.Get("webhook-id"), event.Data.Transition.UID, string(event.Data.Transition.To), r.Header, body, time.Now()}
		rec.mu.Lock()
		rec.got = append(rec.got, a)
		rec.mu.Unlock()
		if rec.answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		rec.answer(w, r, a)
	}))
	t.Cleanup(func() {
		rec.CloseClientConnections()
		rec.Close()
	})
	return rec
}

func (r *receiver) arrivals() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// secretFile writes lines to a new file.
func secretFile(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	writeLines(t, file, lines...)
	return file
}

func writeLines(t *testing.T, file string, lines ...string) {
	t.Helper()
	text := ""
	for _, line := range lines {
		text += line + "\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newSecret makes a symmetric secret.
func newSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

func numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%03d", prefix, i))
	}
	return names
}

// exec changes the database as an operator might.
func exec(p *history, statement string) (n int64, err error) {
	err = p.db.Transact(context.Background(), func(tx *store.Tx) error {
		n, err = tx.Exec(context.Background(), statement)
		return err
	})
	return n, err
}

// check finds the errors of New.
func check(targets []Target) error {
	_, err := New(Options{Targets: targets, Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	return err
}
