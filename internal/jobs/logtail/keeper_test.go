package logtail

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	goleak.VerifyTestMain(m)
}

// patience bounds what a test waits for.
const patience = time.Minute

// world is a cluster with jobs that have ended, and a keeper of their logs.
type world struct {
	t          *testing.T
	api        *apitest.API
	db         *store.Store
	jobs, pods store.Log
	keeper     *Keeper
	registry   *prometheus.Registry

	mu   sync.Mutex
	logs map[string]http.HandlerFunc // by namespace/pod
}

func newWorld(t *testing.T, bytes int) *world { return newWorldOn(t, bytes, 0) }

// newWorldOn has a budget of each namespace.
func newWorldOn(t *testing.T, bytes int, budget int64) *world {
	t.Helper()
	w := &world{t: t, api: apitest.New(apitest.Jobs, apitest.Pods), registry: prometheus.NewRegistry(), logs: map[string]http.HandlerFunc{}}
	w.api.Logs = func(out http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.URL.Path, "/")
		w.mu.Lock()
		answer := w.logs[parts[4]+"/"+parts[6]]
		w.mu.Unlock()
		if answer == nil {
			answer = http.NotFound
		}
		answer(out, r)
	}
	t.Cleanup(w.api.Close)
	var err error
	if w.db, err = store.New(store.Options{Address: "sqlite", StateDir: t.TempDir(), KeepBudget: budget}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.db.Close() })
	if err := w.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for resource, log := range map[string]*store.Log{"jobs.batch": &w.jobs, store.RunsResource: &w.pods} {
		if *log, err = w.db.Take(t.Context(), store.LogName{Cluster: "c", Resource: resource}, "test", "test", time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	w.keeper = New(Options{
		Cluster: w.api.Connect(t), Database: w.db.For(store.System("logs")), Bytes: bytes, Metrics: NewMetrics(w.registry), Log: slog.New(slog.DiscardHandler),
	})
	w.keeper.pauses = []time.Duration{time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond}
	return w
}

// run runs the keeper until the test ends.
func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.keeper.Run(ctx) })
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// end writes that a job has ended at a time, with its pods.
func (w *world) end(key string, state jobs.State, at jobs.Time, pods ...*jobs.Run) *jobs.Job {
	w.t.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	job := &jobs.Job{
		ObjectID: jobs.ObjectID{UID: "job-" + namespace + "-" + name, Namespace: namespace, Name: name}, State: state, Since: at, Ended: at, Attempt: 1, Created: 1,
	}
	var err error
	if w.jobs, err = w.db.Write(w.t.Context(), w.jobs, store.Batch{To: w.jobs.Version + 1, Jobs: []*jobs.Job{job}}); err != nil {
		w.t.Fatal(err)
	}
	b := store.Batch{To: w.pods.Version + 1}
	for _, run := range pods {
		run.Namespace, run.UID, run.Job = namespace, "pod-"+run.Name, jobs.Ref{Resource: "jobs.batch", Name: name, UID: job.UID}
		b.Runs = append(b.Runs, &store.Run{Run: run, Of: w.jobs.ID})
		w.api.Put("pods", namespace+"/"+run.Name, "metadata.uid="+run.UID)
	}
	if w.pods, err = w.db.Write(w.t.Context(), w.pods, b); err != nil {
		w.t.Fatal(err)
	}
	return job
}

// says has a pod's log answered.
func (w *world) says(key string, answer http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs[key] = answer
}

// text answers the last lines of a log, as kubelets do.
func text(all string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		lines := strings.SplitAfter(all, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		if n, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil && n < len(lines) {
			lines = lines[len(lines)-n:]
		}
		answer := strings.Join(lines, "")
		if most, err := strconv.Atoi(r.URL.Query().Get("limitBytes")); err == nil && most < len(answer) {
			answer = answer[:most]
		}
		fmt.Fprint(w, answer)
	}
}

// kept is what is kept of a job; "" if there is nothing.
func (w *world) kept(job *jobs.Job) string {
	w.t.Helper()
	k, err := w.db.Kept(w.t.Context(), w.jobs, job.UID, store.KeptLog)
	if errors.Is(err, store.ErrNotKept) || errors.Is(err, store.ErrOverBudget) {
		return ""
	}
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := store.Unpack(k.Data)
	if err != nil || k.At != job.Ended {
		w.t.Fatal(err, k.At)
	}
	return string(text)
}

// counted is how many logs came to an outcome.
func (w *world) counted(outcome string) (n int) {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == outcome {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func ended(name, reason, container string, code int64, at jobs.Time) *jobs.Run {
	return &jobs.Run{
		ObjectID: jobs.ObjectID{Name: name}, Created: 10, Scheduled: 20, Started: 30, Ended: at, Reason: reason, Container: container, ExitCode: &code,
	}
}

// A worker ran out of memory, and the others failed for want of it. What explains the job's end is
// what that one wrote, in the container that was killed.
func TestTheEndOfALogIsOfWhatDecidedTheJob(t *testing.T) {
	w := newWorld(t, 1000)
	asked := make(chan string, 10)
	w.says("a/two", func(out http.ResponseWriter, r *http.Request) {
		asked <- r.URL.RawQuery
		text("allocating\nall of it\n")(out, r)
	})
	w.says("a/one", text("lost my peer"))
	job := w.end("a/train", jobs.Failed, 5000, ended("one", jobs.Errored, "main", 1, 4900), ended("two", jobs.OOMKilled, "trainer", 137, 4800))
	w.run()
	w.keeper.Ended(w.jobs, []*jobs.Job{job}, false)
	w.until("the log is kept", func() bool { return w.kept(job) != "" })
	if got := w.kept(job); got != "allocating\nall of it\n" {
		t.Errorf("%q", got)
	}
	if query := <-asked; query != "container=trainer&limitBytes=16001&tailLines=62" {
		t.Error(query)
	}
}

// Jobs of one namespace write so much that no more of it is kept. That is counted, and logged once;
// what another namespace writes is kept.
func TestLogsBeyondTheirNamespacesBudgetCostNobodyElse(t *testing.T) {
	random := make([]byte, 1_500)
	_, _ = cryptorand.Read(random) // it never fails
	flood := hex.EncodeToString(random)
	packed, _ := store.Pack([]byte(flood))
	w := newWorldOn(t, 10_000, int64(3*len(packed)/2))
	var logged bytes.Buffer
	w.keeper.opts.Log = slog.New(slog.NewTextHandler(&logged, nil))
	var jobList []*jobs.Job
	for i := range 6 {
		pod := fmt.Sprint("pod-", i)
		w.says("mallory/"+pod, text(flood))
		jobList = append(jobList, w.end(fmt.Sprint("mallory/job-", i), jobs.Failed, 5000, ended(pod, jobs.Errored, "main", 1, 4900)))
	}
	w.says("alice/pod", text("mine\n"))
	mine := w.end("alice/job", jobs.Failed, 5000, ended("pod", jobs.Errored, "main", 1, 4900))
	w.run()
	w.keeper.Ended(w.jobs, append(jobList, mine), false)
	w.until("all logs were read", func() bool { return w.counted(kept)+w.counted(over) == len(jobList)+1 })
	if w.kept(mine) != "mine\n" || w.counted(kept) != 2 || w.counted(over) != 5 {
		t.Errorf("%q is kept, of others' jobs %d, and %d are not", w.kept(mine), w.counted(kept)-1, w.counted(over))
	}
	w.keeper.mu.Lock()
	defer w.keeper.mu.Unlock()
	if text := logged.String(); strings.Count(text, "budget of what is kept") != 1 || !strings.Contains(text, "namespace=mallory") {
		t.Error(text)
	}
}

// Pods of some controllers are made anew under the same name. What a later one writes, or somebody
// else's, is not kept for a job that had ended.
func TestALogIsOfThePodThatItIsKeptFor(t *testing.T) {
	for name, replace := range map[string]func(*world){
		"before it is read": func(w *world) {
			w.api.Put("pods", "a/one", "metadata.uid=another")
			w.says("a/one", text("secret-word"))
		},
		"while it is read": func(w *world) {
			w.says("a/one", func(out http.ResponseWriter, r *http.Request) {
				w.api.Delete("pods", "a/one")
				w.api.Put("pods", "a/one", "metadata.uid=another")
				text("secret-word")(out, r)
			})
		},
		"gone": func(w *world) { w.api.Delete("pods", "a/one") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1000)
			job := w.end("a/train", jobs.Failed, 5000, ended("one", jobs.Errored, "main", 1, 4900))
			replace(w)
			w.run()
			w.keeper.Ended(w.jobs, []*jobs.Job{job}, false)
			w.until("it is given up", func() bool { return w.counted(nothing) == 1 })
			if got := w.kept(job); got != "" {
				t.Errorf("%q is kept", got)
			}
		})
	}
}

// Whatever is written, no more than what is wanted is kept, by whole lines, and not much more is read.
func TestOnlyTheEndOfALogIsKept(t *testing.T) {
	for name, c := range map[string]struct{ log, want string }{
		"little":                {"one\ntwo", "one\ntwo"},
		"many lines":            {strings.Repeat("0123456789abcdefghi\n", 1000), strings.Repeat("0123456789abcdefghi\n", 5)},
		"exactly whole lines":   {"x" + strings.Repeat("0123456789abcde\n", 50), ""},
		"long lines":            {strings.Repeat(strings.Repeat("x", 1500)+"\n", 30) + "the end\n", "the end\n"},
		"a line that is longer": {"one\n" + strings.Repeat("é", 90), strings.Repeat("é", 50)},
		"a line without an end": {strings.Repeat("x", 5000), ""},
		"no text":               {"\xff\x00\n", "\uFFFD\x00\n"},
		"a node's own words":    {"unable to retrieve container logs for containerd://0123", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 100)
			w.says("a/one", text(c.log))
			job := w.end("a/train", jobs.Failed, 5000, ended("one", jobs.Errored, "main", 1, 4900))
			w.run()
			w.keeper.Ended(w.jobs, []*jobs.Job{job}, false)
			w.until("it is kept, or given up", func() bool { return w.counted(kept)+w.counted(failed)+w.counted(nothing) == 1 })
			want := c.want
			if name == "exactly whole lines" {
				want = strings.Repeat("0123456789abcde\n", 6)
			}
			if got := w.kept(job); got != want {
				t.Errorf("%q, not %q", got, want)
			}
		})
	}
}

// fallible is a database that is away at times.
type fallible struct {
	*store.Store
	away atomic.Bool
	told atomic.Int64
}

func (f *fallible) fails() error {
	if !f.away.Load() {
		return nil
	}
	f.told.Add(1)
	return &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

func (f *fallible) Runs(ctx context.Context, log store.Log, filter store.Filter, after store.RunAfter, limit int) ([]*store.Run, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Store.Runs(ctx, log, filter, after, limit)
}

func (f *fallible) Keeps(ctx context.Context, log store.Log, uids []string) (store.Keeping, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Store.Keeps(ctx, log, uids)
}

func (f *fallible) Keep(ctx context.Context, log store.Log, k store.Kept) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.Store.Keep(ctx, log, k)
}

// The database is away for longer than a log that cannot be read is tried again, before its pods
// are asked for, and when the log is to be written. The log is kept once the database is back. What
// the database refuses for another reason, or is away for too long, is given up.
func TestALogWaitsForADatabaseThatIsAway(t *testing.T) {
	for name, whileItIsRead := range map[string]bool{"from the beginning": false, "once the log was read": true} {
		for again, isAgain := range map[string]bool{"": false, ", again": true} {
			t.Run(name+again, func(t *testing.T) {
				w := newWorld(t, 1000)
				db := &fallible{Store: w.db}
				w.keeper.opts.Database, w.keeper.away = db, time.Millisecond
				db.away.Store(!whileItIsRead)
				var first sync.Once
				w.says("a/one", func(out http.ResponseWriter, r *http.Request) {
					first.Do(func() { db.away.Store(whileItIsRead) })
					text("hello")(out, r)
				})
				job := w.end("a/train", jobs.Failed, 5000, ended("one", jobs.Errored, "main", 1, 4900))
				w.run()
				w.keeper.Ended(w.jobs, []*jobs.Job{job}, isAgain)
				w.until("it was tried often", func() bool { return db.told.Load() > int64(2*len(pauses)) })
				db.away.Store(false)
				w.until("the log is kept", func() bool { return w.counted(kept) == 1 })
				if got := w.kept(job); got != "hello" || w.counted(failed) > 0 {
					t.Errorf("%q is kept, and %d have failed", got, w.counted(failed))
				}
			})
		}
	}
	t.Run("for too long", func(t *testing.T) {
		w := newWorld(t, 1000)
		db := &fallible{Store: w.db}
		w.keeper.opts.Database, w.keeper.away = db, time.Millisecond
		db.away.Store(true)
		w.says("a/one", text("hello"))
		job := w.end("a/train", jobs.Failed, 5000, ended("one", jobs.Errored, "main", 1, 4900))
		w.keeper.queue.add(&item{log: w.jobs, job: job, came: time.Now().Add(-awayFor)})
		w.run()
		w.until("it is given up", func() bool { return w.counted(failed) == 1 })
	})
	for err, want := range map[error]bool{
		databaseError{store.ErrBusy}: true, databaseError{errors.New("EOF")}: true, store.ErrBusy: false, databaseError{&pgconn.PgError{Code: "22021"}}: false,
		errors.New("the API server answers 500"): false,
	} {
		if isAway(err) != want {
			t.Errorf("%v: %t", err, !want)
		}
	}
}

// A cluster gives the permission later, and the gateway does not ask for each of a thousand logs until then.
func TestLogsThatAreRefusedAreReadOnceTheyAreNot(t *testing.T) {
	w := newWorld(t, 1000)
	w.keeper.pause = 100 * time.Millisecond
	var permitted atomic.Bool
	var asked atomic.Int64
	var all []*jobs.Job
	for i := range 50 {
		name := fmt.Sprint("pod-", i)
		w.says("a/"+name, func(out http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if !permitted.Load() {
				http.Error(out, "forbidden", http.StatusForbidden)
				return
			}
			text("hello")(out, r)
		})
		all = append(all, w.end(fmt.Sprint("a/job-", i), jobs.Failed, 5000, ended(name, jobs.Errored, "main", 1, 4900)))
	}
	w.run()
	w.keeper.Ended(w.jobs, all, false)
	w.until("one is refused", func() bool { return w.counted(refused) >= 1 })
	if n := asked.Load(); n > ofOne {
		t.Errorf("%d were asked for after the first refusal", n)
	}
	permitted.Store(true)
	w.until("all are kept", func() bool { return w.counted(kept) == len(all) })
	if w.kept(all[49]) != "hello" {
		t.Error("it is not kept")
	}
}

// The gateway may read logs in some namespaces only, or a node refuses. What ends elsewhere is kept meanwhile.
func TestANamespaceWhoseLogsAreRefusedHoldsUpNoOther(t *testing.T) {
	w := newWorld(t, 1000)
	w.keeper.pause = time.Hour
	w.run()
	w.says("closed/one", func(out http.ResponseWriter, _ *http.Request) { http.Error(out, "forbidden", http.StatusForbidden) })
	w.keeper.Ended(w.jobs, []*jobs.Job{w.end("closed/train", jobs.Failed, 5000, ended("one", jobs.Errored, "main", 1, 4900))}, false)
	w.until("it is refused", func() bool { return w.counted(refused) == 1 })
	for i := range 20 {
		name := fmt.Sprint("pod-", i)
		w.says("open/"+name, text("hello"))
		w.keeper.Ended(w.jobs, []*jobs.Job{w.end(fmt.Sprint("open/job-", i), jobs.Failed, 5000, ended(name, jobs.Errored, "main", 1, 4900))}, false)
	}
	w.until("the others' are kept", func() bool { return w.counted(kept) == 20 })
	if n := w.counted(refused); n != 1 {
		t.Errorf("%d were refused", n)
	}
}

// Nodes of one namespace's pods do not answer. Nobody waits for them: neither who records, nor others' logs.
func TestLogsThatDoNotComeHoldUpNobodyElse(t *testing.T) {
	w := newWorld(t, 1000)
	w.run()
	for i := range 20 {
		name := fmt.Sprint("pod-", i)
		w.says("slow/"+name, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		w.keeper.Ended(w.jobs, []*jobs.Job{w.end(fmt.Sprint("slow/job-", i), jobs.Failed, 5000, ended(name, jobs.Errored, "main", 1, 4900))}, false)
	}
	w.says("calm/one", text("hello"))
	job := w.end("calm/train", jobs.Succeeded, 5000, ended("one", jobs.Completed, "", 0, 4900))
	w.keeper.Ended(w.jobs, []*jobs.Job{job}, false)
	w.until("the other's is kept", func() bool { return w.kept(job) == "hello" })
}

// A recorder that takes over tells again of what ended a moment before: what was kept is not read
// again, and what was not is.
func TestWhatWasKeptBeforeATakeoverIsNotReadAgain(t *testing.T) {
	w := newWorld(t, 1000)
	w.says("a/one", text("first"))
	w.says("a/two", text("lost"))
	one, two := w.end("a/one", jobs.Failed, 5000, ended("one", jobs.Errored, "main", 1, 4900)), w.end("a/two", jobs.Failed, 5000, ended("two", jobs.Errored, "main", 1, 4900))
	w.run()
	w.keeper.Ended(w.jobs, []*jobs.Job{one}, false)
	w.until("one is kept", func() bool { return w.counted(kept) == 1 })
	w.says("a/one", func(http.ResponseWriter, *http.Request) { t.Error("it is read again") })
	w.keeper.Ended(w.jobs, []*jobs.Job{one, two}, true)
	w.until("both are", func() bool { return w.counted(kept) == 3 })
	if w.kept(one) != "first" || w.kept(two) != "lost" {
		t.Errorf("%q, %q", w.kept(one), w.kept(two))
	}
}

// A pod that is being ended writes its last words after its job has ended: they are kept once they
// are there, and what was there before is if it goes at once.
func TestLastWordsAreKept(t *testing.T) {
	w := newWorld(t, 1000)
	w.keeper.pauses = []time.Duration{time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond}
	running := ended("one", "", "", 0, 0)
	running.ExitCode = nil
	w.says("a/one", text("step 1\n"))
	job := w.end("a/train", jobs.Failed, 5000, running)
	w.run()
	w.keeper.Ended(w.jobs, []*jobs.Job{job}, false)
	w.until("what was written is kept", func() bool { return w.kept(job) == "step 1\n" })
	w.says("a/one", text("step 1\nterminated\n"))
	w.until("the last words are", func() bool { return w.kept(job) == "step 1\nterminated\n" })
	w.api.Delete("pods", "a/one")
	w.until("no more is to come", func() bool { return w.counted(kept) == 1 })
}

// Of which pod the log is kept.
func TestTheLogIsOfTheRunThatExplainsTheEnd(t *testing.T) {
	began := func(name string, at jobs.Time) *jobs.Run {
		return &jobs.Run{ObjectID: jobs.ObjectID{Name: name, UID: name}, Created: 10, Scheduled: 20, Started: at}
	}
	never := &jobs.Run{ObjectID: jobs.ObjectID{Name: "never"}, Created: 10, Reason: "ImagePullBackOff", Container: "main"}
	for name, c := range map[string]struct {
		state  jobs.State
		reason string
		runs   []*jobs.Run
		want   string
	}{
		"nobody has run":                {jobs.Failed, "", []*jobs.Run{never}, ""},
		"it completed":                  {jobs.Succeeded, "", []*jobs.Run{ended("first", jobs.Completed, "", 0, 3000), ended("last", jobs.Completed, "", 0, 4000)}, "last"},
		"workers are ended afterwards":  {jobs.Succeeded, "", []*jobs.Run{ended("launcher", jobs.Completed, "", 0, 4900), ended("worker", jobs.Removed, "", 0, 9000)}, "launcher"},
		"it had failed before":          {jobs.Succeeded, "", []*jobs.Run{ended("failed", jobs.Errored, "main", 1, 3000), ended("good", jobs.Completed, "", 0, 4000)}, "good"},
		"a deadline, while it ran":      {jobs.Failed, "DeadlineExceeded", []*jobs.Run{began("runs", 40)}, "runs"},
		"a deadline, after a failure":   {jobs.Failed, "DeadlineExceeded", []*jobs.Run{began("runs", 40), ended("failed", jobs.Errored, "main", 1, 35)}, "failed"},
		"it was cancelled while it ran": {jobs.Cancelled, "", []*jobs.Run{began("early", 40), began("late", 50)}, "late"},
	} {
		job := &jobs.Job{ObjectID: jobs.ObjectID{Name: "train"}, State: c.state, Reason: c.reason, Since: 5000, Ended: 5000}
		got := ""
		if run := deciding(job, c.runs); run != nil {
			got = run.Name
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}
