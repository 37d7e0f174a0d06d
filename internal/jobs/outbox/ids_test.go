package outbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// open is a log in a file, and a second log of the cluster's Workloads.
func open(t *testing.T, file string, targets ...Route) *history {
	t.Helper()
	db, err := store.New(store.Options{Address: "sqlite://" + file, Writers: []store.Writer{NewWriter(targets)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &history{t: t, db: db, box: New(db)}
	p.log = must[store.Log](t)(db.Take(t.Context(), store.LogName{Cluster: "c1", Resource: "jobs.batch"}, "east", "test", time.Minute))
	return p
}

// deduplicating is a receiver that keeps the ids of what it has heard, as docs/notifications.md recommends.
type deduplicating struct {
	ids   map[string]string // what each was about
	heard map[string]int    // how often it heard of a state of a job
}

func (d *deduplicating) take(t *testing.T, m *Message) {
	t.Helper()
	var event Event
	if err := json.Unmarshal([]byte(m.Body), &event); err != nil {
		t.Fatal(err)
	}
	about := event.Job.UID + " " + string(event.Job.State)
	if known, twice := d.ids[m.ID]; twice {
		if known != about {
			t.Errorf("%s was about %q, and comes again about %q", m.ID, known, about)
		}
		return
	}
	d.ids[m.ID] = about
	d.heard[about]++
}

// A gateway is given a new database, and later its backup from before. Numbers begin again, and a
// receiver must not take what happens to other jobs for what it knows. What is found again is not
// news.
func TestAReceiverThatDeduplicatesHearsEachEndWhateverBecameOfTheDatabase(t *testing.T) {
	target := Route{Name: "backend", States: ends}
	receiver := &deduplicating{ids: map[string]string{}, heard: map[string]int{}}
	send := func(p *history) {
		for _, m := range p.waiting("backend") {
			receiver.take(t, m)
			if err := p.box.Record(t.Context(), []AttemptResult{{Target: "backend", MessageKey: m.MessageKey, Delivered: true}}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder := t.TempDir()
	old, backup := filepath.Join(folder, "old.db"), filepath.Join(folder, "backup.db")
	p := open(t, old, target)
	p.write(seen("first", 1, false, jobs.Failed)) // a first start finds it, so it is told to nobody
	if err := p.db.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(backup, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p = open(t, old, target)
	p.write(seen("a", 2, false, jobs.Failed))
	p.write(seen("b", 3, false, jobs.Succeeded))
	send(p)
	p = open(t, filepath.Join(folder, "new.db"), target)
	p.write(seen("a", 2, false, jobs.Failed)) // a first start again
	p.write(seen("c", 4, false, jobs.Failed))
	p.write(seen("d", 5, false, jobs.Succeeded))
	send(p)
	p = open(t, backup, target)
	p.write(seen("b", 3, true, jobs.Succeeded)) // both are found again, by other numbers
	p.write(seen("a", 2, true, jobs.Failed))
	p.write(seen("e", 6, false, jobs.Failed))
	send(p)
	for _, about := range []string{"a Failed", "b Succeeded", "c Failed", "d Succeeded", "e Failed"} {
		if n := receiver.heard[about]; n != 1 {
			t.Errorf("of %q it heard %d times", about, n)
		}
	}
}

func TestADigestOfTheSameHasTheSameID(t *testing.T) {
	compose := func(uids ...string) string {
		p := open(t, filepath.Join(t.TempDir(), "h.db"), Route{Name: "a", States: ends, Digest: time.Minute})
		p.write(seen("first-"+uids[0], 1, false, jobs.Failed))
		for n, uid := range uids {
			p.write(seen(uid, uint64(10+n), false, jobs.Failed))
		}
		if !must[bool](t)(p.box.Compose(t.Context(), "a", jobs.At(time.Now().Add(time.Hour)))) {
			t.Fatal("not composed")
		}
		return must[*Message](t)(p.box.Oldest(t.Context(), "a", Digests)).ID
	}
	if one, again, other := compose("u1", "u2"), compose("u1", "u2"), compose("u1", "u3"); one != again || one == other {
		t.Errorf("%s, again %s, and of others %s", one, again, other)
	}
}

func TestIDsDifferInWhateverTheMessagesDiffer(t *testing.T) {
	log := store.LogName{Cluster: "c", Resource: "jobs.batch"}
	tr := jobs.Transition{ObjectID: jobs.ObjectID{UID: "u"}, Version: 7, From: jobs.Running, To: jobs.Failed, Attempt: 1, Seq: 3}
	if id := idOf(log, &tr, "a"); id != "msg_ed0dc011dee88501bd9cef4f18c5efe4" {
		t.Errorf("the id of a message is another one than it was in releases before: %s", id)
	}
	ids := map[string]string{}
	for what, change := range map[string]func(log *store.LogName, tr *jobs.Transition, target *string){
		"nothing":  func(*store.LogName, *jobs.Transition, *string) {},
		"cluster":  func(log *store.LogName, _ *jobs.Transition, _ *string) { log.Cluster = "d" },
		"resource": func(log *store.LogName, _ *jobs.Transition, _ *string) { log.Resource = "jobs" },
		"uid":      func(_ *store.LogName, tr *jobs.Transition, _ *string) { tr.UID = "v" },
		"version":  func(_ *store.LogName, tr *jobs.Transition, _ *string) { tr.Version = 8 },
		"from":     func(_ *store.LogName, tr *jobs.Transition, _ *string) { tr.From = jobs.Pending },
		"to":       func(_ *store.LogName, tr *jobs.Transition, _ *string) { tr.To = jobs.Succeeded },
		"attempt":  func(_ *store.LogName, tr *jobs.Transition, _ *string) { tr.Attempt = 2 },
		"target":   func(_ *store.LogName, _ *jobs.Transition, target *string) { *target = "b" },
	} {
		log, tr, target := log, tr, "a"
		change(&log, &tr, &target)
		id := idOf(log, &tr, target)
		if same, twice := ids[id]; twice {
			t.Errorf("messages that differ in %s have the id of those that differ in %s", what, same)
		}
		ids[id] = what
	}
	again := tr
	again.Seq, again.Late, again.Observed, again.Message = 99, true, 5, "other"
	if idOf(log, &again, "a") != idOf(log, &tr, "a") {
		t.Error("a transition that is written again has another id")
	}
}
