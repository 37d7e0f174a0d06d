package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/batch/v1"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/kubecast/kubecast/internal/history/dbtest"
)

// Jobs live random lives while gateways and databases are killed. Each change of each job's state is in each database once,
// in order, at its version, and in time. Then the API server restarts and forgets: from then on a change may be late, or have
// been overcome by one that is, but nothing is told twice, and each job ends in its state.
//
// Readers who are cut at random, and come back to any replica, are told each of them once.
//
// Whoever lives the jobs says what there was: nobody else changes them, so nothing here rests on a watch.
func TestEachTransitionIsRecordedOnceWhateverIsKilled(t *testing.T) {
	t.Parallel()
	s := onFaultStage(t)
	s.namespaces(t, "recorded")
	random := seed(t)
	records := s.startRecording(t)
	allTold := s.follow(t, random, records)
	l := &lives{jobs: s.kube.BatchV1().Jobs("recorded"), states: map[string][]stateAt{}}

	finish := l.live(t, random, 6*time.Second)
	for i := range 4 {
		time.Sleep(500 * time.Millisecond)
		records[i%len(records)].hurt(t, random)
	}
	finish()
	complete := l.version
	for _, r := range records {
		eventually(t, "all is recorded in "+r.name, func() error { return r.check(t, l, complete) })
	}

	finish = l.live(t, random, 2*time.Second)
	if err := s.cluster.Fault(t.Context(), "apiserver-restart"); err != nil {
		t.Error(err)
	}
	finish()
	for _, r := range records {
		eventually(t, "all that is known is recorded in "+r.name, func() error { return r.check(t, l, complete) })
	}
	allTold()
	if len(l.states) < 40 {
		t.Errorf("there were only %d jobs", len(l.states))
	}
}

// lives makes jobs, and changes their states, as their controller.
type lives struct {
	jobs typed.JobInterface

	mu      sync.Mutex
	states  map[string][]stateAt // by uid, each state once until it changes
	version uint64               // the newest that is known
	made    int
}

// stateAt is a job's state and the version at which it came to it. Of a deletion nobody tells the version: it is 0.
type stateAt struct {
	state   string
	version uint64
}

// live lets some jobs at once live for a time. The returned function waits for its end.
func (l *lives) live(t *testing.T, random *rand.Rand, lasts time.Duration) (finish func()) {
	t.Helper()
	ends := time.Now().Add(lasts)
	var living sync.WaitGroup
	for range 5 {
		random := rand.New(rand.NewPCG(random.Uint64(), 0))
		living.Go(func() {
			for time.Now().Before(ends) {
				if err := l.one(random, ends); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return living.Wait
}

// one lets a job live. Names come again.
func (l *lives) one(random *rand.Rand, ends time.Time) error {
	l.mu.Lock()
	l.made++
	name := fmt.Sprintf("job-%d", l.made%40)
	l.mu.Unlock()
	suspend, manager := random.IntN(4) == 0, "e2e.kubecast.io/lives"
	job := shortJob(name)
	job.Spec.Suspend, job.Spec.ManagedBy = &suspend, &manager
	job, err := l.write(job, func() (*batchv1.Job, error) { return l.jobs.Create(context.Background(), job, metav1.CreateOptions{}) })
	if apierrors.IsAlreadyExists(err) {
		return nil // another with that name still lives
	}
	for err == nil && time.Now().Before(ends) {
		time.Sleep(time.Duration(10+random.IntN(60)) * time.Millisecond)
		next := job.DeepCopy()
		now := metav1.Now()
		status := &next.Status
		over := len(status.Conditions) > 0
		end := func(conditions ...batchv1.JobConditionType) {
			status.Active, status.Ready = 0, new(int32)
			for _, c := range conditions {
				status.Conditions = append(status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now})
			}
		}
		switch n := random.IntN(10); {
		case over && n < 5, n == 0:
			return l.remove(job)
		case over:
			continue
		case n == 1, *next.Spec.Suspend:
			*next.Spec.Suspend = !*next.Spec.Suspend
			job, err = l.write(next, func() (*batchv1.Job, error) { return l.jobs.Update(context.Background(), next, metav1.UpdateOptions{}) })
			continue
		case status.StartTime == nil:
			status.StartTime, status.Active, status.Ready = &now, 1, new(int32)
		case n == 2:
			status.Failed, status.Active, status.Ready = status.Failed+1, 0, new(int32)
		case n == 3:
			end(batchv1.JobFailureTarget, batchv1.JobFailed)
		case n == 4:
			status.CompletionTime, status.Succeeded = &now, 2
			end(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
		default:
			one := int32(1)
			status.Active, status.Ready = 1, &one
		}
		job, err = l.write(next, func() (*batchv1.Job, error) {
			return l.jobs.UpdateStatus(context.Background(), next, metav1.UpdateOptions{})
		})
	}
	return err
}

// stateOf is what docs/history.md says.
func stateOf(job *batchv1.Job) string {
	is := map[batchv1.JobConditionType]bool{}
	for _, c := range job.Status.Conditions {
		is[c.Type] = c.Status == corev1.ConditionTrue
	}
	switch status := job.Status; {
	case is[batchv1.JobComplete]:
		return "Succeeded"
	case is[batchv1.JobFailed]:
		return "Failed"
	case *job.Spec.Suspend:
		return "Suspended"
	case status.Ready != nil && *status.Ready > 0:
		return "Running"
	case status.Failed > 0:
		return "Retrying"
	case status.Active > 0 || status.StartTime != nil:
		return "Pending"
	}
	return "Submitted"
}

// write tries until it is known whether something was written: an API server that ends may not say so.
func (l *lives) write(want *batchv1.Job, try func() (*batchv1.Job, error)) (*batchv1.Job, error) {
	for deadline := time.Now().Add(eventuallyWithin); ; time.Sleep(100 * time.Millisecond) {
		job, err := try()
		if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsAlreadyExists(err) {
			var found error
			if job, found = l.jobs.Get(context.Background(), want.Name, metav1.GetOptions{}); found == nil && job.ResourceVersion != want.ResourceVersion {
				err = nil
			}
		}
		switch {
		case err == nil:
			version, err := strconv.ParseUint(job.ResourceVersion, 10, 64)
			l.note(job, stateAt{stateOf(job), version})
			return job, err
		case apierrors.IsInvalid(err), apierrors.IsAlreadyExists(err), time.Now().After(deadline):
			return nil, err
		}
	}
}

func (l *lives) remove(job *batchv1.Job) error {
	background := metav1.DeletePropagationBackground
	for deadline := time.Now().Add(eventuallyWithin); ; time.Sleep(100 * time.Millisecond) {
		err := l.jobs.Delete(context.Background(), job.Name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &job.UID}})
		switch {
		case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err): // another has its name already
			l.note(job, stateAt{"Deleted", 0})
			return nil
		case time.Now().After(deadline):
			return err
		}
	}
}

func (l *lives) note(job *batchv1.Job, s stateAt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	states := l.states[string(job.UID)]
	if len(states) == 0 || states[len(states)-1].state != s.state {
		l.states[string(job.UID)] = append(states, s)
	}
	l.version = max(l.version, s.version)
}

// record is a database with the gateways that write to it.
type record struct {
	name     string
	gateways []*gateway
	server   *dbtest.Server // nil: a file
	db       *sql.DB
}

// urls are the addresses of the gateways.
func (r *record) urls() (all []string) {
	for _, g := range r.gateways {
		all = append(all, g.url)
	}
	return all
}

// startRecording starts a gateway with a file, and, where these are installed, two at a PostgreSQL and one at a MariaDB.
func (s *stage) startRecording(t *testing.T) (records []*record) {
	t.Helper()
	begin := func(r *record, gateways int, driver, dsn, address string) {
		var err error
		if r.db, err = sql.Open(driver, dsn); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.db.Close() })
		for range gateways {
			r.gateways = append(r.gateways, s.startGateway(t, gatewayOptions{listen: fixedAddress(t), config: fmt.Sprintf("history: {database: %q}\n", address)}))
		}
		records = append(records, r)
	}
	file := t.TempDir() + "/history.db"
	begin(&record{name: "SQLite"}, 1, "sqlite", "file:"+file+"?mode=ro&_pragma=busy_timeout(5000)", "sqlite://"+file)
	for _, server := range []*dbtest.Server{dbtest.Postgres(), dbtest.MariaDB()} {
		if server.Missing() {
			t.Logf("not with %s, which is not installed", server.Kind)
			continue
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Stop)
		address := server.Database(t)
		if server.Kind == "postgres" {
			begin(&record{name: server.Kind, server: server}, 2, "pgx", address, address)
		} else {
			host, database, _ := strings.Cut(strings.TrimPrefix(address, "mysql://root@"), "/")
			begin(&record{name: server.Kind, server: server}, 1, "mysql", "root@tcp("+host+")/"+database, address)
		}
	}
	for _, r := range records {
		r.mustBegin(t)
	}
	return records
}

// mustBegin waits until jobs are recorded.
func (r *record) mustBegin(t *testing.T) {
	t.Helper()
	for _, g := range r.gateways {
		g.waitReady(t)
	}
	eventually(t, "jobs are recorded in "+r.name, func() error {
		var n int
		return errors.Join(r.db.QueryRow("SELECT id FROM logs WHERE resource = 'jobs.batch' AND version > 0").Scan(&n))
	})
}

// hurt kills a gateway, or the database.
func (r *record) hurt(t *testing.T, random *rand.Rand) {
	t.Helper()
	if r.server != nil && random.IntN(2) == 0 {
		r.server.Kill()
		time.Sleep(300 * time.Millisecond)
		if err := r.server.Up(); err != nil {
			t.Error(err)
		}
		return
	}
	g := r.gateways[random.IntN(len(r.gateways))]
	g.kill()
	time.Sleep(300 * time.Millisecond)
	g.restart(t)
}

// recorded is one row.
type recorded struct {
	uid, from, to string
	seq, version  uint64
	late          bool
}

// check compares the table with what there was. Up to a version the API server has forgotten nothing.
func (r *record) check(t *testing.T, l *lives, complete uint64) error {
	late := 0
	rows, err := r.db.Query("SELECT uid, from_state, to_state, seq, version, late FROM transitions ORDER BY seq")
	if err != nil {
		return err
	}
	defer rows.Close()
	jobs := map[string][]recorded{}
	last := recorded{}
	for rows.Next() {
		var row recorded
		if err := rows.Scan(&row.uid, &row.from, &row.to, &row.seq, &row.version, &row.late); err != nil {
			return err
		}
		if row.seq != last.seq+1 || !row.late && !last.late && row.version < last.version {
			return fmt.Errorf("%+v follows %+v", row, last)
		}
		last = row
		if l.states[row.uid] != nil { // the others are of other tests
			jobs[row.uid] = append(jobs[row.uid], row)
			if row.late {
				late++
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for uid, states := range l.states {
		if err := compare(states, jobs[uid], complete); err != nil {
			return fmt.Errorf("%s: %w; recorded is %+v, of %+v", uid, err, jobs[uid], states)
		}
	}
	t.Logf("%s: %d transitions of %d jobs, %d of them late", r.name, last.seq, len(jobs), late)
	return nil
}

// compare looks for each row among the states. Beyond the version that is complete, a row may follow on what nobody knows: a
// late one on anything, another on states that led back to the one that was recorded.
func compare(states []stateAt, rows []recorded, complete uint64) error {
	next, from := 0, ""
	for _, row := range rows {
		i := next
		if row.version > complete {
			i = slices.IndexFunc(states, func(s stateAt) bool { return s.version > row.version || s.state == "Deleted" })
			if i < 0 {
				i = len(states)
			}
			if row.to != "Deleted" {
				i-- // the state that the job was in at that version
			}
		}
		switch {
		case row.late && row.version <= complete:
			return fmt.Errorf("%+v is late", row)
		case i < next, i >= len(states), row.to != states[i].state, row.from != from:
			return fmt.Errorf("%+v is not what is next, %d of %d", row, i, len(states))
		case !row.late && (states[i].version != 0 && row.version != states[i].version || i > 0 && states[i-1].state != from):
			return fmt.Errorf("%+v does not follow on %s, %d of %d", row, from, i, len(states))
		}
		next, from = i+1, row.to
	}
	last := states[len(states)-1]
	switch {
	case len(rows) == 0 && states[0].version > complete && last.state == "Deleted": // it came and went
	case from != last.state, next < len(states) && states[next].version <= complete && states[next].version != 0:
		return fmt.Errorf("%d of %d are recorded", next, len(states))
	}
	return nil
}
