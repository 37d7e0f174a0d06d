package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// Jobs live random lives, and their names come again, while gateways, databases and the API server
// are killed. Each change of each job's state is in each database once, in order, at its version,
// and in time. Only what an API server forgot, since it was restarted before it was recorded, may
// be late, or have been overcome by what is. An observer with a watch of its own says what there
// was.
//
// Readers who are cut at random, and come back to any replica, are told each of them once. The
// owner of a job has a notification of each of its ends in each database, and of nothing else. Each
// transition arrives at webhooks, with one unchanging id, as a message and in a digest.
//
// $KUBECAST_SOAK says how long the test lasts, as in `make soak`, with 1,000 names rather than 40.
func TestEachTransitionIsRecordedOnceWhateverIsKilled(t *testing.T) {
	t.Parallel()
	s := onFaultStage(t)
	names, faults, pause, lasts := 40, 5, 300*time.Millisecond, time.Duration(0)
	if text := os.Getenv("KUBECAST_SOAK"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal("KUBECAST_SOAK: ", err)
		}
		names, faults, pause = 1000, 20, 2*time.Second // so that gateways mostly get to record before they are killed again
	}
	s.namespaces(t, "recorded")
	random := seed(t)
	records := s.startRecording(t, random, s.gateway)
	o := s.observe(t, "recorded")
	allTold := s.follow(t, random, records)
	l := &lives{jobs: o.jobs, names: names}
	for ends := time.Now().Add(lasts); ; {
		finish := l.live(t, random)
		for i := range faults {
			time.Sleep(pause + time.Duration(random.IntN(700))*time.Millisecond)
			if i == faults-1 { // at the end, so that a short test has also what no API server forgot
				if random.IntN(4) > 0 { // else a gateway that was killed often may miss most
					for _, r := range records {
						r.goesOn(t, o)
					}
				}
				s.forget(t, random, records)
			} else {
				records[i%len(records)].hurt(t, random)
			}
		}
		time.Sleep(time.Second)
		finish()
		seen := o.seen(t)
		for _, r := range records {
			r.hasAll(t, seen)
		}
		if t.Failed() || time.Now().After(ends) {
			break
		}
	}
	allTold()
	for _, r := range records {
		t.Logf("%s: %d transitions in %d messages came in %d requests", r.name, len(r.hooks.ids["/each"]), len(r.hooks.bodies), r.hooks.arrivals)
	}
	if l.made < names {
		t.Errorf("there were only %d jobs", l.made)
	}
}

// forget restarts the API server, sometimes while a gateway is away.
func (s *stage) forget(t *testing.T, random *rand.Rand, records []*record) {
	t.Helper()
	for _, r := range records {
		var after uint64
		if err := r.db.QueryRow("SELECT version FROM logs WHERE resource = 'jobs.batch'").Scan(&after); err != nil {
			t.Fatal(err)
		}
		r.forgotten = append(r.forgotten, span{after: after})
	}
	back := func() {}
	if random.IntN(2) == 0 {
		gateways := records[random.IntN(len(records))].gateways
		g := gateways[random.IntN(len(gateways))]
		g.kill()
		back = func() { g.restart(t) }
	}
	upTo := s.forgets(t, back)
	for _, r := range records {
		r.forgotten[len(r.forgotten)-1].upTo = upTo
	}
}

// lives makes jobs, and changes their states, as their controller.
type lives struct {
	jobs  typed.JobInterface
	names int // of jobs: names come again

	mu   sync.Mutex
	made int
}

// livesManager keeps the cluster's own controller from the jobs.
const livesManager = "e2e.kubecast.io/lives"

// live lets some jobs at once live, until the returned function is called, which waits for them.
func (l *lives) live(t *testing.T, random *rand.Rand) (finish func()) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	var living sync.WaitGroup
	for range max(5, l.names/50) {
		random := rand.New(rand.NewPCG(random.Uint64(), 0))
		living.Go(func() {
			for ctx.Err() == nil {
				if err := l.one(ctx, random); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		stop()
		living.Wait()
	}
}

// one lets a job live, at most until the context ends.
func (l *lives) one(ctx context.Context, random *rand.Rand) error {
	l.mu.Lock()
	l.made++
	name := fmt.Sprintf("job-%d", l.made%l.names)
	l.mu.Unlock()
	suspend, manager := random.IntN(4) == 0, livesManager
	job := shortJob(name)
	job.Spec.Suspend, job.Spec.ManagedBy = &suspend, &manager
	if owner := random.IntN(6); owner > 0 {
		job.Annotations = map[string]string{"kubecast.io/owner": fmt.Sprintf("recorded-%d@example.org", owner)}
	}
	job, err := l.write(job, func() (*batchv1.Job, error) { return l.jobs.Create(context.Background(), job, metav1.CreateOptions{}) })
	if apierrors.IsAlreadyExists(err) {
		return nil // another with that name still lives
	}
	for err == nil && ctx.Err() == nil {
		time.Sleep(time.Duration(10+random.IntN(60)) * time.Millisecond)
		next := job.DeepCopy()
		now := metav1.Now()
		status := &next.Status
		is := conditionsOf(job)
		over := is[batchv1.JobComplete] || is[batchv1.JobFailed]
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
		case *next.Spec.Suspend && status.StartTime == nil && !is[batchv1.JobSuspended]:
			status.Conditions = append(status.Conditions, batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now})
		case n == 1 && status.Failed == 0, *next.Spec.Suspend: // of one that had failed, who was not there cannot tell why it waits
			*next.Spec.Suspend = !*next.Spec.Suspend
			job, err = l.write(next, func() (*batchv1.Job, error) { return l.jobs.Update(context.Background(), next, metav1.UpdateOptions{}) })
			continue
		case status.StartTime == nil:
			status.StartTime, status.Active, status.Ready = &now, 1, new(int32)
			for i := range status.Conditions {
				status.Conditions[i].Status = corev1.ConditionFalse // it is resumed
			}
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

func conditionsOf(job *batchv1.Job) map[batchv1.JobConditionType]bool {
	is := map[batchv1.JobConditionType]bool{}
	for _, c := range job.Status.Conditions {
		is[c.Type] = c.Status == corev1.ConditionTrue
	}
	return is
}

// stateOf is what docs/history.md says of a job that was in a state ("": it is new), with so many failures.
func stateOf(job *batchv1.Job, was string, failures int32) string {
	is := conditionsOf(job)
	held := was == "Suspended" || was == ""
	switch status := job.Status; {
	case is[batchv1.JobComplete]:
		return "Succeeded"
	case is[batchv1.JobFailed]:
		return "Failed"
	case *job.Spec.Suspend, is[batchv1.JobSuspended] && held:
		return "Suspended"
	case status.Ready != nil && *status.Ready > 0:
		return "Running"
	case status.Failed > failures && status.Active == 0:
		return "Retrying"
	case was == "Running", was == "Retrying":
		return was
	case status.Active > 0 || status.StartTime != nil:
		return "Pending"
	case was == "":
		return "Submitted"
	}
	return was
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
			return job, nil
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
			return nil
		case time.Now().After(deadline):
			return err
		}
	}
}

// record is a database with the gateways that write to it.
type record struct {
	name     string
	gateways []*gateway
	server   *dbtest.Server // nil: a file
	db       *sql.DB
	hooks    *hookReceiver

	forgotten []span // what an API server forgot before it was recorded
}

// urls are the addresses of the gateways.
func (r *record) urls() (all []string) {
	for _, g := range r.gateways {
		all = append(all, g.url)
	}
	return all
}

// startRecording starts a program as a gateway with a file, and, where these are installed, two at a
// PostgreSQL and one at a MariaDB.
func (s *stage) startRecording(t *testing.T, random *rand.Rand, program string) (records []*record) {
	t.Helper()
	begin := func(r *record, gateways int, driver, dsn, address string) {
		var err error
		if r.db, err = sql.Open(driver, dsn); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.db.Close() })
		r.hooks = receiveHooks(t, random)
		for range gateways {
			r.gateways = append(r.gateways, s.startGateway(t, gatewayOptions{program: program, listen: harness.Address(t), config: fmt.Sprintf("history: {database: %q}\n", address) + r.hooks.config}))
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

// reaches reports whether all up to a version is recorded.
func (r *record) reaches(version uint64) error {
	var at uint64
	err := r.db.QueryRow("SELECT version FROM logs WHERE resource = 'jobs.batch'").Scan(&at)
	if err == nil && at < version {
		err = fmt.Errorf("only up to %d of %d", at, version)
	}
	return err
}

const transitionsOfLives = "SELECT COUNT(*) FROM transitions WHERE namespace = 'recorded'"

// counts counts by a question to the database.
func (r *record) counts(question string) func() (int, error) {
	return func() (n int, err error) {
		err = r.db.QueryRow(question).Scan(&n)
		return n, err
	}
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

// checkInbox compares what was told with the transitions: each that was not late, and led to an end
// of a job with an owner, once, and one that was late at most once.
func (r *record) checkInbox() (ends int, err error) {
	told := map[string]int{}
	rows, err := r.db.Query("SELECT owner, kind, body FROM inbox WHERE kind <> 'read'")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var owner, kind, body string
		var of struct{ Resource, Seq, Owner, To string }
		if err := rows.Scan(&owner, &kind, &body); err != nil {
			return 0, err
		}
		if err := json.Unmarshal([]byte(body), &of); err != nil || of.Owner != owner || of.To != kind {
			return 0, fmt.Errorf("%s was told %s: %s, %w", owner, kind, body, err)
		}
		told[of.Resource+" "+of.Seq+" "+owner]++
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	ended, err := r.db.Query("SELECT t.seq, t.owner, t.late, t.version, l.resource FROM transitions t JOIN logs l ON l.id = t.log WHERE t.to_state IN ('Succeeded', 'Failed') AND t.owner <> ''")
	if err != nil {
		return 0, err
	}
	defer ended.Close()
	for ended.Next() {
		var seq, owner, resource string
		var late bool
		var version uint64
		if err := ended.Scan(&seq, &owner, &late, &version, &resource); err != nil {
			return 0, err
		}
		key := resource + " " + seq + " " + owner
		if n := told[key]; n > 1 || n == 0 && !late {
			return 0, fmt.Errorf("%s was told %d times, late: %t", key, n, late)
		}
		delete(told, key)
		ends++
	}
	if len(told) > 0 {
		return 0, fmt.Errorf("told was what is no end: %v", told)
	}
	return ends, ended.Err()
}

// check compares the table with what there was.
func (r *record) check(t *testing.T, seen map[string][]stateAt) error {
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
		if seen[row.uid] != nil { // the others are of other tests
			jobs[row.uid] = append(jobs[row.uid], row)
			if row.late {
				late++
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for uid, states := range seen {
		if err := compare(states, jobs[uid], r.forgotten); err != nil {
			return fmt.Errorf("%s: %w; recorded is %+v, of %+v", uid, err, jobs[uid], states)
		}
	}
	ends, err := r.checkInbox()
	if err != nil {
		return err
	}
	t.Logf("%s: %d ends were told to their owners", r.name, ends)
	t.Logf("%s: %d transitions, of %d of %d jobs, %d of them late", r.name, last.seq, len(jobs), len(seen), late)
	return nil
}
