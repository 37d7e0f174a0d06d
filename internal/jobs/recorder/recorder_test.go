package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/owners"
	"github.com/kubecast/kubecast/internal/jobs/reasons"
	"github.com/kubecast/kubecast/internal/jobs/rules"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/stream"
)

func TestMain(m *testing.M) {
	klog.LogToStderr(false) // client-go's warnings of what is done to it on purpose
	klog.SetOutput(io.Discard)
	goleak.VerifyTestMain(m)
}

// memory is a database as package store promises it, with faults on demand.
type memory struct {
	mu          sync.Mutex
	log         store.Log
	holder      string
	until       time.Time
	jobs        map[string]*jobs.Job
	transitions []jobs.Transition
	calls       int
	expired     []expiry
	runs        map[string]store.Run  // by the pod's uid, as they are
	written     []store.Run           // each as it was written
	parents     map[jobs.Ref]jobs.Ref // of which job one is recorded to be a part
	of          map[jobs.Ref]int64    // the logs of jobs that are recorded, for recorders of pods
	deleted     map[jobs.Ref]jobs.Time
	began       []jobs.Time // when the log of pods began anew

	refused int                   // questions with texts that PostgreSQL does not take, or that are longer than a column
	parked  map[string]bool       // pods of which there is a row that nobody is shown
	kept    map[string]store.Kept // specs, by uid

	away      bool
	takes     func() time.Duration // how long a write takes; nil: no time
	fault     func() error         // nil: none
	forgetful bool                 // leases are not given up, as when a recorder is killed
}

var errAway = errors.New("the database is away")

func (m *memory) Take(_ context.Context, name store.LogName, _, holder string, lease time.Duration) (store.Log, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	switch {
	case m.away:
		return store.Log{}, errAway
	case m.holder != holder && time.Now().Before(m.until):
		return store.Log{}, store.ErrHeld
	}
	m.holder, m.until, m.log.LogName = holder, time.Now().Add(lease), name
	return m.log, nil
}

func (m *memory) Release(_ context.Context, _ store.LogName, holder string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holder == holder && !m.forgetful {
		m.until = time.Time{}
	}
	return nil
}

func (m *memory) Living(context.Context, store.Log) (living []*jobs.Job, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.away {
		return nil, errAway
	}
	for _, j := range m.jobs {
		if j.Deleted == 0 {
			living = append(living, j)
		}
	}
	return living, nil
}

func (m *memory) TransitionsAfter(_ context.Context, _ store.Log, f store.Filter, after, upTo uint64, _ int) (found []*jobs.Transition, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nil, errAway
	}
	for _, t := range m.transitions {
		if t.Seq > after && t.Seq <= upTo && slices.Contains(f.States, t.To) {
			found = append(found, &t)
		}
	}
	return found, nil
}

func (m *memory) LivingRuns(context.Context, store.Log) (living []*store.Run, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.away {
		return nil, errAway
	}
	for _, run := range m.runs {
		if run.Parked = run.Of == 0; run.Gone == 0 || run.Parked {
			living = append(living, &run)
		}
	}
	return living, nil
}

func (m *memory) JobsOf(_ context.Context, _ string, wanted map[string][]string) (map[jobs.Ref]store.OwningJob, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nil, errAway
	}
	for _, uids := range wanted {
		for _, uid := range uids {
			if jobs.Name(uid) != uid {
				m.refused++
				return nil, errors.New("invalid byte sequence")
			}
		}
	}
	found := map[jobs.Ref]store.OwningJob{}
	for ref, of := range m.of {
		if slices.Contains(wanted[ref.Resource], ref.UID) {
			found[ref] = store.OwningJob{Of: of, Namespace: "n", Owner: "owner of " + ref.Name, NamespaceUID: "namespace of " + ref.Name, Deleted: m.deleted[ref], Parent: m.parents[ref]}
		}
	}
	return found, nil
}

func (m *memory) RunsOfJobs(_ context.Context, _ store.Log, uids []string) (map[string][]*jobs.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nil, errAway
	}
	found := map[string][]*jobs.Run{}
	for _, uid := range uids {
		found[uid] = nil
	}
	for _, pod := range slices.Sorted(maps.Keys(m.runs)) {
		if run := m.runs[pod]; run.Of != 0 && slices.Contains(uids, run.Job.UID) {
			found[run.Job.UID] = append(found[run.Job.UID], run.Run)
		}
	}
	return found, nil
}

// Write may fail before it has written, and after.
func (m *memory) Write(_ context.Context, log store.Log, b store.Batch) (store.Log, error) {
	var takes func() time.Duration
	if m.set(func() { takes = m.takes }); takes != nil {
		time.Sleep(takes())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	broken := func() error {
		if m.fault == nil {
			return nil
		}
		return m.fault()
	}
	if m.away {
		return log, errAway
	}
	if err := broken(); err != nil {
		return log, err
	}
	if log.Version != m.log.Version || log.Seq != m.log.Seq {
		return log, store.ErrMoved
	}
	for _, t := range b.Transitions {
		m.log.Seq++
		t.Seq = m.log.Seq
		m.transitions = append(m.transitions, *t)
	}
	for _, j := range b.Jobs {
		m.jobs[j.UID] = j
	}
	for _, known := range b.Causes {
		i := slices.IndexFunc(m.transitions, func(t jobs.Transition) bool {
			return t.UID == known.UID && t.Version == known.Version && t.To == known.To && !t.GaveUp()
		})
		m.transitions[i].Cause = known.Cause
		if known.Reason != "" && m.transitions[i].Reason == "" {
			m.transitions[i].Reason, m.transitions[i].Message = known.Reason, known.Message
		}
		if job := m.jobs[known.UID]; known.Ended != 0 && job.State == jobs.Deleted && job.Ended == known.Ended {
			job := *job
			job.Cause = known.Cause
			m.jobs[known.UID] = &job
		}
	}
	for _, run := range b.Runs {
		m.log.Seq++
		run := *run
		run.Seq = m.log.Seq
		if was, there := m.runs[run.UID]; there && was.Of != 0 && was.Of != run.Of || there && was.Gone != 0 && run.Gone == 0 {
			panic("a run is written behind its end, or leaves its job")
		}
		m.runs[run.UID], m.written = run, append(m.written, run)
		if run.Of == 0 {
			m.parked[run.UID] = true
		} else if run.Parked {
			delete(m.parked, run.UID)
		}
	}
	for _, g := range b.Gone {
		run, there := m.runs[g.Pod]
		if !there || run.Of != g.Of {
			panic("a pod is gone that has no run there")
		}
		run.Gone = g.At
		m.runs[g.Pod] = run
	}
	for _, k := range b.Kept {
		if m.jobs[k.UID] == nil || k.Kind != store.KeptSpec {
			panic("something is kept of no job")
		}
		m.kept[k.UID] = k
	}
	m.log.Version = b.To
	if err := broken(); err != nil {
		return log, err
	}
	return m.log, nil
}

func (m *memory) Began(_ context.Context, _ store.Log, at jobs.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return errAway
	}
	m.began = append(m.began, at)
	return nil
}

// expireTakes is how long the database takes to remove a batch.
const expireTakes = 150 * time.Millisecond

func (m *memory) Expire(_ context.Context, _ store.Log, before jobs.Time, limit int) (removed store.Removed, _ error) {
	time.Sleep(expireTakes)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return removed, errAway
	}
	for uid, j := range m.jobs {
		if j.Deleted != 0 && j.Deleted < before && removed.Jobs < limit {
			delete(m.jobs, uid)
			removed.Jobs++
		}
	}
	m.expired = append(m.expired, expiry{time.Now(), removed.Jobs})
	removed.More = removed.Jobs == limit
	return removed, nil
}

// expiry is one batch of what retention removed.
type expiry struct {
	at   time.Time
	jobs int
}

func (m *memory) told() []jobs.Transition {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.transitions)
}

// stands is where the log is, after how many calls.
func (m *memory) stands() (version uint64, calls int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.Version, m.calls
}

func (m *memory) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func batchRule(t testing.TB) *rules.Rule { return ruleSet(t).For(rules.Jobs) }

func ruleSet(t testing.TB) *rules.Set {
	t.Helper()
	set, err := rules.New(rules.Options{Key: "history"})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// replica is a gateway as far as it records.
type replica struct {
	stop     func()
	recorder atomic.Pointer[Recorder]
}

// ring is small, so that a recorder that was away does not find everything there.
var ring = stream.Options{Events: 20, Bytes: 1 << 20, Gather: 5 * time.Millisecond}

// keep is how long jobs are kept.
const keep = 24 * time.Hour

type expiringDatabase interface {
	Database
	Expiring
}

func start(t *testing.T, api *apitest.API, db expiringDatabase, name string, opts stream.Options) *replica {
	t.Helper()
	return startOn(t, api.Connect(t), db, name, opts)
}

func startOn(t *testing.T, connection *cluster.Cluster, db expiringDatabase, name string, opts stream.Options) *replica {
	t.Helper()
	return startOf(t, connection, db, name, opts, apitest.Jobs, nil)
}

// startOf starts a replica that records jobs, or pods, where other kinds are recorded, too.
func startOf(t *testing.T, connection *cluster.Cluster, db expiringDatabase, name string, opts stream.Options, kind cluster.Kind, ended EndedFunc, others ...string) *replica {
	t.Helper()
	return startTelling(t, connection, db, name, opts, kind, Options{Ended: ended}, others...)
}

// startTelling starts a replica whose recorder tells those who are named in tells.
func startTelling(t *testing.T, connection *cluster.Cluster, db expiringDatabase, name string, opts stream.Options, kind cluster.Kind, tells Options, others ...string) *replica {
	t.Helper()
	rule := batchRule(t)
	if kind == apitest.Pods {
		rule = nil
	}
	quiet := slog.New(slog.DiscardHandler)
	kinds, err := cache.NewKinds(connection, cache.Options{Topic: opts, CatchUp: cache.CatchUpBound{Events: 10_000, Bytes: 1 << 24, Timeout: 20 * time.Second}}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	r := &replica{stop: func() {
		cancel()
		running.Wait()
	}}
	running.Go(func() { _ = kinds.Run(ctx) })
	waits := reasons.New(reasons.Options{Kinds: kinds, Jobs: append([]string{rules.Jobs}, others...), Serves: func(string, string) bool { return true }, Log: quiet})
	running.Go(func() { _ = waits.Run(ctx) })
	running.Go(func() {
		using, release, err := kinds.Use(kind, "")
		if ctx.Err() != nil && err != nil {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		defer release()
		r.recorder.Store(New(Options{Database: db, Expiring: db, Cluster: kinds.Cluster(), Store: using, Rule: rule, Waits: waits, Owners: owners.New(kinds.Cluster(), ruleSet(t), quiet), Holder: name, Keep: keep, KeepSpec: true, Ended: tells.Ended, Ending: tells.Ending, Log: quiet}))
		if err := r.recorder.Load().Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

// lives are jobs' fields, by the state that they say.
var lives = map[jobs.State][]string{
	jobs.Submitted: {},
	jobs.Suspended: {"spec.suspend:=true"},
	jobs.Pending:   {"status.active:=1"},
	jobs.Running:   {"status.active:=1", "status.ready:=1"},
	jobs.Retrying:  {"status.failed:=1"},
	jobs.Succeeded: {`status.conditions:=[{"type":"Complete","status":"True"}]`},
	jobs.Failed:    {`status.conditions:=[{"type":"Failed","status":"True"}]`},
}

// observer knows all that happened, from who did it.
type observer struct {
	api   *apitest.API
	rule  *rules.Rule
	jobs  map[string]*jobs.Job // by uid
	names map[string]string    // the uid of the job that has a name
	lines []string
}

func (o *observer) put(name string, state jobs.State) {
	version := o.api.Put("jobs", "n/"+name, lives[state]...)
	uid := o.api.UID("jobs", "n/"+name)
	o.names[name] = uid
	object, err := cluster.NewObject(o.api.Objects("jobs")["n/"+name])
	if err != nil {
		panic(err)
	}
	said, err := o.rule.Read(object, o.jobs[uid])
	if err != nil {
		panic(err)
	}
	o.see(jobs.Seen{ObjectID: jobs.ObjectID{UID: uid, Namespace: "n", Name: name}, Version: version, Said: said})
}

// remove removes those that are there, all in one revision.
func (o *observer) remove(names ...string) {
	var keys []string
	names = slices.DeleteFunc(names, func(name string) bool { return o.names[name] == "" })
	for _, name := range names {
		keys = append(keys, "n/"+name)
	}
	if len(keys) == 0 {
		return
	}
	version := o.api.Delete("jobs", keys...)
	for _, name := range names {
		o.see(jobs.Seen{ObjectID: jobs.ObjectID{UID: o.names[name]}, Version: version, Deleted: true})
		delete(o.names, name)
	}
}

// isWhatThereWas checks that each transition was recorded once, and in time.
func (o *observer) isWhatThereWas(t *testing.T, db *memory) {
	t.Helper()
	told := db.told()
	inOrder(t, told)
	for i, got := range linesOf(told) {
		if i >= len(o.lines) || got != o.lines[i] || told[i].Late {
			t.Fatalf("place %d of %d: %s (late: %v); there was %s", i, len(told), got, told[i].Late, strings.Join(o.lines[min(i, len(o.lines)):min(i+1, len(o.lines))], ""))
		}
	}
	if len(told) != len(o.lines) {
		t.Fatalf("%d transitions were recorded, of %d; the next is %s", len(told), len(o.lines), o.lines[len(told)])
	}
}

// keepsSpecs checks that the spec is kept of each job that has ended, of its last end, and of no other.
func (m *memory) keepsSpecs(t *testing.T, told []jobs.Transition) {
	t.Helper()
	ends := map[string]jobs.Time{}
	for _, tr := range told {
		if tr.To.Ended() || tr.To == jobs.Deleted && !tr.From.Ended() {
			ends[tr.UID] = tr.At
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, k := range m.kept {
		text, err := store.Unpack(k.Data)
		if err != nil || ends[uid] != k.At || !strings.Contains(string(text), uid) || strings.Contains(string(text), "status") {
			t.Errorf("the spec of %s is of %d, %v, and not of its end at %d: %s", uid, k.At, err, ends[uid], text)
		}
	}
	if len(m.kept) != len(ends) {
		t.Errorf("%d specs are kept, of %d jobs that have ended", len(m.kept), len(ends))
	}
}

func (o *observer) see(seen jobs.Seen) {
	next, transition := jobs.Next(o.jobs[seen.UID], seen)
	if next != nil {
		o.jobs[seen.UID] = next
	}
	if transition != nil {
		o.lines = append(o.lines, line(*transition))
	}
}

func line(t jobs.Transition) string {
	return fmt.Sprintf("%s %d %s→%s attempt %d", t.UID, t.Version, t.From, t.To, t.Attempt)
}

func linesOf(transitions []jobs.Transition) (lines []string) {
	for _, t := range transitions {
		lines = append(lines, line(t))
	}
	return lines
}

func newWorld() (*observer, *memory) {
	api := apitest.New(apitest.Jobs)
	api.Skip(1) // or the first position is where its history begins, and a catch-up reads from the version before
	set, err := rules.New(rules.Options{Key: "history"})
	if err != nil {
		panic(err)
	}
	return &observer{api: api, rule: set.For(rules.Jobs), jobs: map[string]*jobs.Job{}, names: map[string]string{}}, &memory{jobs: map[string]*jobs.Job{}, runs: map[string]store.Run{}, of: map[jobs.Ref]int64{}, kept: map[string]store.Kept{}}
}

// inOrder checks what holds whatever happens: numbers without gaps, each job's states a chain, no
// time before the one before.
func inOrder(t *testing.T, transitions []jobs.Transition) map[string]jobs.State {
	t.Helper()
	states, at := map[string]jobs.State{}, map[string]jobs.Time{}
	for i, tr := range transitions {
		if tr.Seq != uint64(i+1) || tr.From != states[tr.UID] || tr.To == tr.From || tr.At < at[tr.UID] {
			t.Errorf("place %d: %+v after %s", i, tr, states[tr.UID])
		}
		states[tr.UID], at[tr.UID] = tr.To, tr.At
	}
	return states
}

// settle lets everything happen that is under way, back-offs and leases included.
func settle() {
	time.Sleep(2 * time.Minute)
	synctest.Wait()
}

// trouble has the database fail at random, before it has written and after, and of two seeds in
// three take its time. Sequence tells the random numbers of one test from those of another.
func (m *memory) trouble(seed, sequence uint64) {
	faults, slow := rand.New(rand.NewPCG(seed, sequence)), rand.New(rand.NewPCG(seed, sequence+1))
	m.set(func() {
		m.fault = func() error {
			if faults.IntN(6) == 0 {
				return errAway
			}
			return nil
		}
		if seed%3 > 0 {
			var turn sync.Mutex // for one replica at a time, since the calls of two are not in any order
			m.takes = func() time.Duration {
				turn.Lock()
				defer turn.Unlock()
				return time.Duration(slow.IntN(300)*slow.IntN(2)) * time.Millisecond
			}
		}
	})
}

// calm ends that, and stops the recorders once they have written what is left.
func (m *memory) calm(replicas []*replica) {
	m.set(func() { m.away, m.fault = false, nil })
	settle()
	for _, r := range replicas {
		r.stop()
	}
}

// While jobs live at random, recorders are killed and started, two at once, and the database fails
// at random, before it has written and after: the table is what one sees who was there, each
// transition once.
func TestRecordersThatAreKilledWriteEachTransitionOnce(t *testing.T) {
	for seed := range uint64(12) {
		t.Logf("seed %d", seed)
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			world, db := newWorld()
			replicas := []*replica{start(t, world.api, db, "r0", ring), start(t, world.api, db, "r1", ring)}
			settle()
			db.trouble(seed, 2)
			states := slices.Sorted(maps.Keys(lives))
			for step := range 400 {
				name := fmt.Sprintf("job-%d", random.IntN(12))
				switch n := random.IntN(100); {
				case n < 70:
					world.put(name, states[random.IntN(len(states))])
				case n < 83:
					world.remove(name)
				case n < 85: // as when a lease ends
					world.remove(fmt.Sprintf("job-%d", random.IntN(6)), fmt.Sprintf("job-%d", 6+random.IntN(3)), fmt.Sprintf("job-%d", 9+random.IntN(3)))
				case n < 86:
					[]func(){func() { world.api.CutWatches() }, world.api.EndWatches, world.api.EndWatchesWithin}[random.IntN(3)]()
				case n < 88:
					i := random.IntN(2)
					db.set(func() { db.forgetful = random.IntN(2) == 0 })
					replicas[i].stop()
					for range random.IntN(40) {
						world.put(name, states[random.IntN(len(states))])
					}
					replicas[i] = start(t, world.api, db, fmt.Sprintf("r%d-%d", i, step), ring)
				case n < 90:
					db.set(func() { db.away = !db.away })
				case n < 92: // the recorder with the lease is taken for dead, and goes on
					db.set(func() { db.until = time.Time{} })
				default:
					time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
				}
			}
			db.calm(replicas)
			world.isWhatThereWas(t, db)
			db.keepsSpecs(t, db.told())
		})
	}
}

// The watch is lost, and what it ended with is gone: all is listed anew. As long as the API server has what happened
// meanwhile, that is recorded, and in time; also of what came and went, which is no difference between the lists.
func TestWhatHappensWhileTheWatchIsLostIsRecorded(t *testing.T) {
	for name, happens := range map[string]func(*observer){
		"changes": func(o *observer) {
			o.put("a", jobs.Running)
			o.put("a", jobs.Failed)
			o.put("b", jobs.Running)
			o.remove("b")
			o.put("b", jobs.Pending)
		},
		"nothing is left": func(o *observer) {
			o.put("c", jobs.Running)
			o.remove("c")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, db := newWorld()
				r := start(t, world.api, db, "r", ring)
				defer r.stop()
				time.Sleep(time.Second)
				world.put("a", jobs.Pending)
				world.put("b", jobs.Pending)
				world.put("last", jobs.Pending)
				world.remove("last") // what proves nothing when the watch comes back
				settle()
				world.api.Away(true)
				time.Sleep(time.Second)
				happens(world)
				world.api.Away(false)
				settle()
				world.put("a", jobs.Succeeded) // and goes on
				settle()
				world.isWhatThereWas(t, db)
			})
		})
	}
}

// So it is with what the API server has forgotten, except that it is late: what lay between is not known.
func TestWhatIsForgottenWhileTheWatchIsLostIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		r := start(t, world.api, db, "r", ring)
		defer r.stop()
		time.Sleep(time.Second)
		world.put("a", jobs.Pending)
		settle()
		world.api.Away(true)
		time.Sleep(time.Second)
		world.put("a", jobs.Running)
		world.put("a", jobs.Failed)
		world.api.Compact()
		world.api.Away(false)
		settle()
		world.put("a", jobs.Running)
		settle()
		var got []string
		for _, tr := range db.told() {
			got = append(got, fmt.Sprintf("%s→%s %v", tr.From, tr.To, tr.Late))
		}
		if want := []string{"→Pending false", "Pending→Failed true", "Failed→Running false"}; !slices.Equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	})
}

// A deletion claims only the version before it. A recorder that follows another is at that version:
// it sees the job that the other has recorded as deleted, and then its deletion. Neither is news.
func TestADeletionThatAnotherRecordedIsNotRecordedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		r := start(t, world.api, db, "first", ring)
		time.Sleep(time.Second)
		world.put("a", jobs.Running)
		settle()
		r.stop()
		db.set(func() { // as a recorder does whose watch is further than the next one's
			uid := world.names["a"]
			job, transition := jobs.Next(db.jobs[uid], jobs.Seen{Version: db.log.Version + 1, Deleted: true, Observed: jobs.At(time.Now())})
			db.log.Seq++
			transition.Seq = db.log.Seq
			db.jobs[uid], db.transitions = job, append(db.transitions, *transition)
		})
		r = start(t, world.api, db, "second", ring)
		defer r.stop()
		settle()
		world.remove("a")
		settle()
		world.put("b", jobs.Running)
		settle()
		world.isWhatThereWas(t, db)
	})
}

// Recorders die within revisions, between batches, and at the end of each write, and others go on
// from the ring or from the API server's history: of many deletions in one revision each is
// recorded once.
func TestARevisionOverSeveralBatchesIsRecordedOnce(t *testing.T) {
	for name, opts := range map[string]stream.Options{"caught up": ring, "from the ring": {Events: 10_000, Bytes: 1 << 24}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, db := newWorld()
				replicas := []*replica{start(t, world.api, db, "r0", opts), start(t, world.api, db, "r1", opts)}
				settle()
				db.set(func() { db.away = true })
				var all []string
				for i := range batchSize - 3 {
					all = append(all, fmt.Sprintf("job-%d", i))
					world.put(all[i], jobs.Running)
				}
				world.remove(all[:7]...) // over the end of the first batch
				world.remove(all[7:]...)
				written := false
				db.set(func() {
					db.away = false
					db.fault = func() error { // once it has written
						written = !written
						if !written {
							return errAway
						}
						return nil
					}
				})
				settle()
				world.put("a", jobs.Running)
				world.put("b", jobs.Running)
				settle()
				world.api.EndWatchesWithin() // in the midst of what comes next
				world.remove("a", "b")
				settle()
				for _, r := range replicas {
					r.stop()
				}
				world.isWhatThereWas(t, db)
			})
		})
	}
}

// An API server that was restarted has forgotten what was before, and not what came after, also
// while nobody watched: only what it has forgotten is late, and lacks what lay between.
func TestOnlyWhatAnAPIServerForgotIsLate(t *testing.T) {
	for _, running := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			world, db := newWorld()
			r := start(t, world.api, db, "r", ring)
			time.Sleep(time.Second)
			world.put("a", jobs.Pending)
			world.put("b", jobs.Pending)
			settle()
			if !running {
				r.stop()
			}
			world.api.Away(true)
			time.Sleep(time.Second)
			world.put("b", jobs.Running) // which no watch was told
			world.put("b", jobs.Failed)
			world.api.Compact()
			world.put("c", jobs.Submitted)
			world.put("a", jobs.Running)
			world.put("a", jobs.Failed)
			world.put("d", jobs.Running)
			world.remove("d")
			world.put("b", jobs.Running)
			world.api.Away(false)
			if !running {
				r = start(t, world.api, db, "r", ring)
			}
			settle()
			world.put("a", jobs.Running) // and goes on
			settle()
			r.stop()
			var got []string
			for _, tr := range db.told() {
				got = append(got, fmt.Sprintf("%s %s→%s %v", tr.Name, tr.From, tr.To, tr.Late))
			}
			want := []string{"a →Pending false", "b →Pending false", "b Pending→Failed true", "c →Submitted false", "a Pending→Running false", "a Running→Failed false",
				"d →Running false", "d Running→Deleted false", "b Failed→Running false", "a Failed→Running false"}
			if !slices.Equal(got, want) {
				t.Errorf("running %v: %q, not %q", running, got, want)
			}
			inOrder(t, db.told())
		})
	}
}

// A recorder is taken for dead, replaced, and gets the lease back once the other is gone. It finds
// out that it knows nothing of what was recorded meanwhile, and does not go on from where it was.
func TestAZombieThatGetsItsLeaseBackBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		zombie := &frozen{memory: db}
		first := start(t, world.api, zombie, "first", ring)
		time.Sleep(time.Second)
		world.put("a", jobs.Pending)
		settle()
		thawed := make(chan struct{})
		zombie.thawed.Store(&thawed)
		second := start(t, world.api, db, "second", ring)
		settle()
		world.put("a", jobs.Running)
		settle()
		second.stop()
		close(thawed)
		settle()
		world.put("a", jobs.Succeeded)
		settle()
		first.stop()
		world.isWhatThereWas(t, db)
	})
}

// frozen holds back who renews a lease, as when a process is stopped.
type frozen struct {
	*memory
	thawed atomic.Pointer[chan struct{}]
}

func (f *frozen) Take(ctx context.Context, name store.LogName, people, holder string, lease time.Duration) (store.Log, error) {
	if thawed := f.thawed.Load(); thawed != nil {
		<-*thawed
	}
	return f.memory.Take(ctx, name, people, holder, lease)
}

// Where the API server itself has no history any more, or another one, what differs is late, and
// the table still ends at the cluster's state: each job in the state that it is in, and deleted if
// it is gone.
func TestWhatCannotBeKnownIsLate(t *testing.T) {
	for name, lose := range map[string]func(*observer){
		"compacted": func(o *observer) { o.api.Compact() },
		"restored":  func(o *observer) { o.api.Restore(o.api.Version() - 3) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, db := newWorld()
				r := start(t, world.api, db, "r", ring)
				time.Sleep(time.Second)
				for _, job := range []string{"a", "b", "c"} {
					world.put(job, jobs.Pending)
				}
				time.Sleep(time.Minute)
				if told := db.told(); len(told) != 3 || told[0].Late {
					t.Fatalf("%v", linesOf(told))
				}
				r.stop()
				world.put("a", jobs.Running)
				world.put("a", jobs.Succeeded)
				world.remove("b")
				world.put("d", jobs.Running)
				lose(world)
				r = start(t, world.api, db, "r", ring)
				settle()
				told := db.told()
				states := inOrder(t, told)
				for i, tr := range told {
					if tr.Late != (i >= 3) {
						t.Errorf("%s: late %v", line(tr), tr.Late)
					}
				}
				there := world.api.Objects("jobs")
				var recorded map[string]*jobs.Job
				db.set(func() { recorded = maps.Clone(db.jobs) })
				for uid, job := range recorded {
					if _, is := there["n/"+job.Name]; is != (states[uid] != jobs.Deleted) {
						t.Errorf("%s is %s", job.Name, states[uid])
					}
				}
				if name == "compacted" && (states[told[0].UID] != jobs.Succeeded || len(told) != 6) {
					t.Errorf("%v", linesOf(told))
				}
				before := len(told)
				world.put("c", jobs.Running) // and goes on
				settle()
				if told = db.told(); len(told) != before+1 || told[before].Late || told[before].To != jobs.Running {
					t.Errorf("%v", linesOf(told[before:]))
				}
				r.stop()
			})
		})
	}
}

// Versions that go back under a recorder that runs cost nothing but that what differs is late. What
// was read before is recorded, also if the database has not come to it yet.
func TestARecorderOutlivesARestore(t *testing.T) {
	for _, slow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			world, db := newWorld()
			if slow {
				db.takes = func() time.Duration { return 5 * time.Second }
			}
			r := start(t, world.api, db, "r", ring)
			defer r.stop()
			time.Sleep(20 * time.Second)
			world.put("a", jobs.Pending)
			at := world.api.Version()
			world.put("a", jobs.Running)
			world.put("b", jobs.Running)
			if time.Sleep(100 * time.Millisecond); !slow {
				settle()
			}
			world.api.Restore(at)
			settle()
			world.put("a", jobs.Succeeded)
			settle()
			var got []string
			for _, tr := range db.told() {
				got = append(got, fmt.Sprintf("%s %s→%s %v", tr.Name, tr.From, tr.To, tr.Late))
			}
			want := []string{"a →Pending false", "a Pending→Running false", "b →Running false", "b Running→Deleted true", "a Running→Pending true", "a Pending→Succeeded false"}
			if !slices.Equal(got, want) {
				t.Errorf("slow %v: %q, not %q", slow, got, want)
			}
		})
	}
}

// What changes no state costs no call to the database, and a restart with finished jobs writes nothing.
func TestWhatChangesNoStateCostsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		for i := range 50 {
			world.put(fmt.Sprintf("done-%d", i), jobs.Succeeded)
		}
		roomy := stream.Options{Events: 10_000, Bytes: 1 << 24}
		r := start(t, world.api, db, "r", roomy)
		settle()
		if told := db.told(); len(told) != 50 || !told[0].Late {
			t.Fatalf("%d transitions at the first start", len(told))
		}
		r.stop()
		r = start(t, world.api, db, "r", roomy)
		time.Sleep(2 * renewal)
		_, before := db.stands()
		began := time.Now()
		for range 600 {
			world.put("done-1", jobs.Succeeded)
			time.Sleep(time.Millisecond)
		}
		most := 2*int(time.Since(began)/renewal) + 2
		if _, calls := db.stands(); calls-before > most {
			t.Errorf("%d calls while nothing changed, more than %d of the lease and the position", calls-before, most)
		}
		settle()
		if told := db.told(); len(told) != 50 {
			t.Errorf("%v", linesOf(told[50:]))
		}
		if version, _ := db.stands(); version != world.api.Version() {
			t.Errorf("the position is %d, not %d", version, world.api.Version())
		}
		r.stop()
	})
}

// A recorder that ends is replaced at once, and one that was killed within seconds.
func TestARecorderIsReplaced(t *testing.T) {
	for _, killed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			world, db := newWorld()
			db.forgetful = killed
			first := start(t, world.api, db, "first", ring)
			time.Sleep(time.Second)
			second := start(t, world.api, db, "second", ring)
			time.Sleep(time.Minute)
			first.stop()
			ended := time.Now()
			world.put("a", jobs.Running)
			for len(db.told()) == 0 && time.Since(ended) < time.Minute {
				time.Sleep(100 * time.Millisecond)
			}
			most := renewal + time.Second
			if killed {
				most += lease
			}
			if took := time.Since(ended); took > most {
				t.Errorf("killed %v: it took %v", killed, took)
			}
			second.stop()
		})
	}
}

// Jobs that a controller makes do not say whose they are. Each transition must know it, also of one
// batch, or nobody is told.
func TestAJobIsWhoseTheObjectAboveItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		world.api.Serve(apitest.Widgets, true)
		recorder := start(t, world.api, db, "a", ring)
		defer recorder.stop()
		time.Sleep(time.Second)
		world.api.Put("widgets", "n/w", apitest.Set("metadata.annotations", map[string]string{"kubecast.io/owner": "ann"}))
		above := apitest.Set("metadata.ownerReferences", []map[string]any{{"apiVersion": "example.org/v1", "kind": "Widget", "name": "w", "uid": world.api.UID("widgets", "n/w"), "controller": true}})
		for _, state := range []jobs.State{jobs.Submitted, jobs.Running, jobs.Succeeded} {
			world.api.Put("jobs", "n/a", append(lives[state], above)...)
		}
		time.Sleep(time.Second)
		world.api.Put("jobs", "n/a", lives[jobs.Running]...) // it says no longer what controls it
		world.api.Delete("jobs", "n/a")
		time.Sleep(time.Second)
		told := db.told()
		for _, transition := range told {
			if transition.Owner != "ann" {
				t.Errorf("%s is of %q", line(transition), transition.Owner)
			}
		}
		if len(told) != 5 {
			t.Errorf("%d transitions, want 5", len(told))
		}
	})
}

// What is found of a job after its transition was read is also known of the job as later events of
// the same batch left it.
func TestWhoseAJobIsOutlivesWhatIsCountedInTheSameBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		world.api.Serve(apitest.Widgets, true)
		world.api.Put("widgets", "n/w", apitest.Set("metadata.annotations", map[string]string{"kubecast.io/owner": "ann"}))
		above := apitest.Set("metadata.ownerReferences", []map[string]any{{"apiVersion": "example.org/v1", "kind": "Widget", "name": "w", "uid": world.api.UID("widgets", "n/w"), "controller": true}})
		world.put("b", jobs.Running)
		recorder := start(t, world.api, db, "a", ring)
		settle()
		recorder.stop()
		world.api.Put("jobs", "n/a", append(slices.Clone(lives[jobs.Running]), above)...)
		world.api.Put("jobs", "n/a", append(slices.Clone(lives[jobs.Running]), "status.failed:=1", above)...)
		recorder = start(t, world.api, db, "b", ring) // it reads both at once
		defer recorder.stop()
		settle()
		uid := world.api.UID("jobs", "n/a")
		var job *jobs.Job
		if db.set(func() { job = db.jobs[uid] }); job == nil || job.Failures != 1 || job.Owner != "ann" {
			t.Errorf("%+v", job)
		}
		world.api.Put("jobs", "n/a", append(slices.Clone(lives[jobs.Succeeded]), above)...)
		settle()
		for _, transition := range db.told() {
			if transition.Name == "a" && transition.Owner != "ann" {
				t.Errorf("%s is of %q", line(transition), transition.Owner)
			}
		}
	})
}

// What was deleted is removed once it was kept for long enough, by one of the replicas, little by
// little. What ended and still is in the cluster stays, or it would be recorded anew.
func TestWhatWasKeptForLongEnoughIsRemovedLittleByLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		for _, name := range []string{"first", "second"} {
			defer start(t, world.api, db, name, ring).stop()
		}
		time.Sleep(time.Second)
		const many = 3 * expireAtOnce
		for i := range many {
			world.put(fmt.Sprintf("gone-%d", i), jobs.Succeeded)
			world.remove(fmt.Sprintf("gone-%d", i))
			time.Sleep(time.Millisecond) // for the ring holds little
		}
		world.put("done", jobs.Succeeded)
		left := func() (n int) { db.set(func() { n = len(db.jobs) }); return n }
		time.Sleep(keep - time.Minute)
		if left() != many+1 {
			t.Fatalf("%d jobs are left before their time", left())
		}
		time.Sleep(time.Minute + expireAgain)
		for before := left(); before > 1; before = left() {
			time.Sleep(time.Second)
			if left() >= before {
				t.Fatalf("%d jobs are left, of %d", left(), before)
			}
		}
		var looks, most int
		db.set(func() {
			var last expiry
			for _, e := range db.expired {
				looks, most = looks+1, max(most, e.jobs)
				if last.jobs > 0 && e.at.Sub(last.at) < (1+expireRest)*expireTakes {
					t.Errorf("%+v follows %+v: readers had no rest", e, last)
				}
				last = e
			}
		})
		if most > expireAtOnce || looks > int((keep+2*expireAgain)/expireAgain)+2*many/expireAtOnce {
			t.Errorf("%d at once, in %d looks", most, looks)
		}
		world.put("next", jobs.Running)
		settle()
		world.isWhatThereWas(t, db)
	})
}

// silent is a database that does not answer a call any more, as where the network swallows what is sent.
type silent struct {
	*memory
	calls atomic.Int32 // that are not answered
}

func (s *silent) Write(ctx context.Context, log store.Log, b store.Batch) (store.Log, error) {
	if s.calls.Add(-1) >= 0 {
		<-ctx.Done()
		return log, ctx.Err()
	}
	return s.memory.Write(ctx, log, b)
}

// A call that is never answered is given up, and what it should have written is recorded within the
// minute, once. Meanwhile the recorder says that it is behind.
func TestADatabaseThatFallsSilentIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		quiet := &silent{memory: db}
		r := start(t, world.api, quiet, "r", ring)
		settle()
		quiet.calls.Store(1)
		world.put("a", jobs.Running)
		time.Sleep(5 * time.Second)
		if now := r.recorder.Load().Status(); !now.Behind || time.Since(now.Caught) < 4*time.Second {
			t.Errorf("it says that it is not behind: %+v", now)
		}
		time.Sleep(time.Minute)
		world.isWhatThereWas(t, db)
		r.stop()
	})
}

// The database takes a second for each transaction, and there is much more than the ring holds: the
// recorder reads on meanwhile, so that nothing is fetched again, and writes together what has come
// together.
func TestASlowDatabaseDoesNotKeepTheRecorderFromReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		db.takes = func() time.Duration { return time.Second }
		r := start(t, world.api, db, "r", ring)
		defer r.stop()
		settle()
		_, before := db.stands()
		const many = 300
		for i := range many {
			world.put(fmt.Sprintf("job-%d", i), jobs.Running)
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(4 * time.Second) // at most three transactions, and one that only saves the position
		if told := len(db.told()); told != many {
			t.Errorf("%d of %d transitions are written", told, many)
		}
		if _, calls := db.stands(); calls-before > 12 {
			t.Errorf("%d calls", calls-before)
		}
		world.isWhatThereWas(t, db)
	})
}

// There is more at once than the ring holds and the recorder could read: it goes on at once with
// what the API server has, as if nothing had happened.
func TestARecorderThatWasOvertakenGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		r := start(t, world.api, db, "r", ring)
		defer r.stop()
		settle()
		for i := range 300 {
			world.put(fmt.Sprintf("job-%d", i), jobs.Running)
		}
		time.Sleep(leastWait + leastWait/2) // the API server tells what happened within a second
		world.isWhatThereWas(t, db)
		if now := r.recorder.Load().Status(); now.Err != nil || now.Behind {
			t.Errorf("%+v", now)
		}
	})
}

// What is read at once never ends within a revision: a recorder that began there would be told,
// once more, states that are no longer true.
func TestABatchEndsWithAWholeRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, _ := newWorld()
		quiet := slog.New(slog.DiscardHandler)
		kinds, err := cache.NewKinds(world.api.Connect(t), cache.Options{Topic: stream.Options{Events: 10_000, Bytes: 1 << 24}}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go func() { _ = kinds.Run(ctx) }()
		using, release, err := kinds.Use(apitest.Jobs, "")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if err := using.WaitSynced(ctx); err != nil {
			t.Fatal(err)
		}
		before := using.Snapshot().Head
		var all []string
		for i := range batchSize - 3 {
			all = append(all, fmt.Sprintf("job-%d", i))
			world.put(all[i], jobs.Running)
		}
		world.remove(all[:7]...) // over the end of what is read at once
		world.remove(all[7:]...) // which is more than that
		settle()
		r := New(Options{Cluster: kinds.Cluster(), Store: using, Log: quiet})
		r.cursor = using.Topic().From(before, stream.AllNamespaces())
		read := 0
		for last, more := uint64(0), true; more; {
			var events []*cache.Event
			if events, _, more, err = r.next(); err != nil {
				t.Fatal(err)
			}
			if len(events) == 0 {
				break
			}
			if first := events[0].Pos; first == last {
				t.Errorf("after %d events, what was read ended within revision %d", read, first)
			}
			last, read = events[len(events)-1].Pos, read+len(events)
		}
		if want := 2 * (batchSize - 3); read != want {
			t.Errorf("%d events were read, not %d", read, want)
		}
	})
}
