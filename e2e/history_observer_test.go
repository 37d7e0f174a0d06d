package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typed "k8s.io/client-go/kubernetes/typed/batch/v1"
)

// observer sees what becomes of the jobs of a namespace by a watch of its own at the API server,
// without any code of the gateway's.
//
// An API server that was restarted refuses to watch from a version before its start. But etcd still
// has what happened, and the API server lists what was at any version of it. So the observer lists
// each version that it has not seen.
type observer struct {
	jobs typed.JobInterface

	mu      sync.Mutex
	states  map[string][]stateAt // by uid, each state once until it changes
	failed  map[string]int32     // by uid: the failures that were seen
	living  map[string]string    // uids of the jobs that there are, by name
	version uint64               // all up to here was seen
	marks   int
	err     error
}

// stateAt is a job's state and the version at which it came to it.
type stateAt struct {
	state   string
	version uint64
}

// observe observes an empty namespace until the test ends.
func (s *stage) observe(t *testing.T, namespace string) *observer {
	t.Helper()
	o := &observer{jobs: s.kube.BatchV1().Jobs(namespace), states: map[string][]stateAt{}, failed: map[string]int32{}, living: map[string]string{}}
	list, err := o.jobs.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Fatalf("%d jobs, %v", len(list.Items), err)
	}
	o.version = mustVersion(t, list.ResourceVersion)
	ctx, cancel := context.WithCancel(context.Background())
	var observing sync.WaitGroup
	observing.Go(func() {
		for ctx.Err() == nil {
			if err := o.watch(ctx); err != nil {
				time.Sleep(50 * time.Millisecond) // the API server is away
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		observing.Wait()
	})
	return o
}

func mustVersion(t *testing.T, text string) uint64 {
	t.Helper()
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// watch watches until the watch ends.
func (o *observer) watch(ctx context.Context) error {
	o.mu.Lock()
	from := o.version
	o.mu.Unlock()
	opened, err := o.jobs.Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.FormatUint(from, 10), AllowWatchBookmarks: true})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return o.lookBack(ctx)
	}
	if err != nil {
		return err
	}
	defer opened.Stop()
	for event := range opened.ResultChan() {
		job, ok := event.Object.(*batchv1.Job)
		if !ok {
			err := apierrors.FromObject(event.Object)
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return o.lookBack(ctx)
			}
			return err
		}
		version, err := strconv.ParseUint(job.ResourceVersion, 10, 64)
		if err != nil {
			return err
		}
		o.mu.Lock()
		switch event.Type {
		case watch.Added, watch.Modified:
			o.saw(job, version)
		case watch.Deleted:
			o.gone(job.Name, version)
		}
		o.version = version
		o.mu.Unlock()
	}
	return nil
}

// lookBack lists each version from the last that was seen until now.
func (o *observer) lookBack(ctx context.Context) error {
	now, err := o.jobs.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	to, err := strconv.ParseUint(now.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	for version := o.version + 1; version <= to; version++ {
		then, err := o.jobs.List(ctx, metav1.ListOptions{ResourceVersion: strconv.FormatUint(version, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		if err != nil {
			return err
		}
		o.mu.Lock()
		there := map[string]bool{}
		for i := range then.Items {
			job := &then.Items[i]
			there[job.Name] = true
			o.saw(job, version)
		}
		for name := range o.living {
			if !there[name] {
				o.gone(name, version)
			}
		}
		o.version = version
		o.mu.Unlock()
	}
	return nil
}

// saw takes a job as it was at a version. The lock is held.
func (o *observer) saw(job *batchv1.Job, version uint64) {
	uid := string(job.UID)
	if before := o.living[job.Name]; before != "" && before != uid {
		o.err = errors.Join(o.err, fmt.Errorf("%s is another at %d, and the one before was not deleted", job.Name, version))
	}
	o.living[job.Name] = uid
	states, was := o.states[uid], ""
	if len(states) > 0 {
		was = states[len(states)-1].state
	}
	state := stateOf(job, was, o.failed[uid])
	o.failed[uid] = job.Status.Failed
	if state != was {
		o.states[uid] = append(states, stateAt{state, version})
	}
}

// gone takes a deletion. The lock is held.
func (o *observer) gone(name string, version uint64) {
	uid := o.living[name]
	delete(o.living, name)
	o.states[uid] = append(o.states[uid], stateAt{"Deleted", version})
}

// known is up to which version all was seen.
func (o *observer) known() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.version
}

// seen is all that has happened until now.
func (o *observer) seen(t *testing.T) map[string][]stateAt {
	t.Helper()
	o.mu.Lock()
	o.marks++
	name := fmt.Sprintf("mark-%d", o.marks)
	o.mu.Unlock()
	job := shortJob(name)
	suspend, manager := true, livesManager
	job.Spec.Suspend, job.Spec.ManagedBy = &suspend, &manager
	if _, err := o.jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	all := map[string][]stateAt{}
	eventually(t, "the observer has seen all", func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.living[name] == "" && o.err == nil {
			return fmt.Errorf("it is at version %d", o.version)
		}
		for uid, states := range o.states {
			all[uid] = states[:len(states):len(states)]
		}
		return nil
	})
	if o.err != nil {
		t.Fatal(o.err)
	}
	return all
}

// span are the versions behind the first one, up to the second.
type span struct{ after, upTo uint64 }

var oldest = regexp.MustCompile(`too old resource version: 1 \((\d+)\)`)

// forgets restarts the API server, which forgets what happened before, and tells up to which
// version. The function is called while it is away.
func (s *stage) forgets(t *testing.T, meanwhile func()) (upTo uint64) {
	t.Helper()
	if err := s.cluster.Fault(t.Context(), "apiserver-restart"); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	eventually(t, "the API server says what it has forgotten", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		opened, err := s.kube.BatchV1().Jobs("").Watch(ctx, metav1.ListOptions{ResourceVersion: "1"})
		if err == nil {
			defer opened.Stop()
			event := <-opened.ResultChan()
			err = apierrors.FromObject(event.Object)
		}
		match := oldest.FindStringSubmatch(err.Error())
		if match == nil {
			return err
		}
		upTo = mustVersion(t, match[1])
		return nil
	})
	return upTo
}

// compare demands a row for each state of a job, in order and at its version. Only what the API
// server had forgotten may be late, or have been overcome by what is late.
func compare(states []stateAt, rows []recorded, forgotten []span) error {
	next, from := 0, ""
	passed := func(some ...stateAt) error {
		for _, state := range some {
			if !isWithin(forgotten, state.version) {
				return fmt.Errorf("%+v is late, or not recorded, and the API server had it", state)
			}
		}
		return nil
	}
	for _, row := range rows {
		i := next
		for i < len(states) && states[i].version < row.version {
			i++
		}
		if row.late && (i == len(states) || states[i].version > row.version) {
			i-- // the state in which it was
		}
		if i < next || i == len(states) || row.to != states[i].state || row.from != from {
			return fmt.Errorf("%+v is not what is next, %d of %d", row, next, len(states))
		}
		if row.late {
			if err := passed(states[next : i+1]...); err != nil {
				return err
			}
		} else if err := passed(states[next:i]...); err != nil {
			return err
		} else if states[i].version != row.version || i > 0 && states[i-1].state != from {
			return fmt.Errorf("%+v does not follow on %s, %d of %d", row, from, i, len(states))
		}
		next, from = i+1, row.to
	}
	if err := passed(states[next:]...); err != nil {
		return err
	}
	if last := states[len(states)-1].state; last != from && (len(rows) > 0 || last != "Deleted") { // else it came and went
		return fmt.Errorf("its last state is %s", last)
	}
	return nil
}

func isWithin(spans []span, version uint64) bool {
	for _, s := range spans {
		if version > s.after && version <= s.upTo {
			return true
		}
	}
	return false
}

// The comparison finds each sort of error.
func TestWhatIsRecordedWrongIsSeen(t *testing.T) {
	t.Parallel()
	states := []stateAt{{"Submitted", 10}, {"Running", 20}, {"Retrying", 30}, {"Running", 40}, {"Deleted", 50}}
	row := func(from, to string, version uint64, late bool) recorded {
		return recorded{from: from, to: to, version: version, late: late}
	}
	right := []recorded{row("", "Submitted", 10, false), row("Submitted", "Running", 20, false), row("Running", "Retrying", 30, false),
		row("Retrying", "Running", 40, false), row("Running", "Deleted", 50, false)}
	with := func(at int, rows ...recorded) []recorded {
		return append(append(append([]recorded(nil), right[:at]...), rows...), right[at+1:]...)
	}
	for name, test := range map[string]struct {
		rows      []recorded
		forgotten []span
		wrong     bool
	}{
		"all":                                  {rows: right},
		"nothing":                              {wrong: true},
		"one is missing":                       {rows: with(2), wrong: true},
		"the end is missing":                   {rows: right[:4], wrong: true},
		"one is there twice":                   {rows: with(1, right[1], right[1]), wrong: true},
		"the order is another":                 {rows: with(1, right[2], right[1]), wrong: true},
		"one is late for nothing":              {rows: with(3, row("Retrying", "Running", 40, true)), wrong: true},
		"one is at another version":            {rows: with(3, row("Retrying", "Running", 41, false)), wrong: true},
		"one comes from another":               {rows: with(3, row("Pending", "Running", 40, false)), wrong: true},
		"one that was forgotten is late":       {rows: with(3, row("Retrying", "Running", 45, true)), forgotten: []span{{39, 45}}},
		"two that were forgotten led back":     {rows: append(right[:2:2], right[4]), forgotten: []span{{25, 45}}},
		"one was forgotten, and led elsewhere": {rows: right[:4], forgotten: []span{{45, 55}}, wrong: true},
		"it was forgotten that it was there":   {forgotten: []span{{5, 55}}},
		"more is missing than was forgotten":   {rows: append(right[:2:2], right[4]), forgotten: []span{{35, 45}}, wrong: true},
		"a late one passes over another":       {rows: append(right[:2:2], row("Running", "Deleted", 55, true)), forgotten: []span{{25, 55}}},
	} {
		if err := compare(states, test.rows, test.forgotten); (err != nil) != test.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}
