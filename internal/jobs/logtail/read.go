package logtail

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/pods"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// mostRuns is of how many pods of a job, the newest, one is chosen.
const mostRuns = 1000

// keep keeps the log of an item, as far as it is there by now. More says that there may be more, or
// another one's, a moment later. The error says why nothing was kept, unless there was nothing.
func (k *Keeper) keep(ctx context.Context, it *item) (more bool, err error) {
	if it.pod != nil {
		return k.keepOfPod(ctx, it)
	}
	return k.keepOfJob(ctx, it)
}

// keepOfPod keeps what a pod wrote, with its job.
func (k *Keeper) keepOfPod(ctx context.Context, it *item) (more bool, err error) {
	kind := store.KeptOfPod(it.pod.UID)
	if it.again && it.tries == 0 && it.pod.Terminal() {
		keeps, err := k.opts.Database.Keeps(ctx, it.log, []string{it.job.UID})
		if err != nil {
			return true, databaseError{err}
		}
		if it.kept = keeps[it.job.UID][kind] >= it.pod.Ended; it.kept { // else it was read before the last words
			return false, nil
		}
		if readSince(keeps[it.job.UID], it.pod.Ended) >= store.MostPodLogs { // its own has given way to newer ones
			return false, nil
		}
	}
	at := jobs.At(k.opts.Cluster.Now())
	text, err := k.read(ctx, it.pod)
	if errors.Is(err, cluster.ErrNoPod) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	if data, ok := store.Pack(text); ok && len(text) > 0 {
		if more, err := k.write(ctx, it, kind, at, data); err != nil {
			return more, err
		}
	}
	return !it.pod.Terminal(), nil
}

// readSince is of how many pods a log is kept that was read at a time or later.
func readSince(keeps map[store.KeptKind]jobs.Time, since jobs.Time) (n int) {
	for kind, at := range keeps {
		if kind.IsOfPod() && at >= since {
			n++
		}
	}
	return n
}

// write keeps what was read of an item; more is keep's.
func (k *Keeper) write(ctx context.Context, it *item, kind store.KeptKind, at jobs.Time, data []byte) (more bool, err error) {
	err = k.opts.Database.Keep(ctx, it.log, store.Kept{UID: it.job.UID, Namespace: it.job.Namespace, Kind: kind, At: at, Data: data})
	switch {
	case errors.Is(err, store.ErrOverBudget):
		return false, err
	case err != nil:
		return true, databaseError{err}
	}
	it.kept = true
	return false, nil
}

// ofPod is what was kept of a run's pod when that ended, or was to be deleted; nil if there is
// nothing. Whole says that it was read after the end.
func (k *Keeper) ofPod(ctx context.Context, it *item, run *jobs.Run) (data []byte, whole bool, err error) {
	kept, err := k.opts.Database.Kept(ctx, it.log, it.job.UID, store.KeptOfPod(run.UID))
	switch {
	case errors.Is(err, store.ErrNotKept), errors.Is(err, store.ErrOverBudget):
		return nil, false, nil
	case err != nil:
		return nil, false, databaseError{err}
	}
	return kept.Data, run.Terminal() && kept.At >= run.Ended, nil
}

// keepOfJob keeps the log of a job's end.
func (k *Keeper) keepOfJob(ctx context.Context, it *item) (more bool, err error) {
	if it.again && it.tries == 0 {
		keeps, err := k.opts.Database.Keeps(ctx, it.log, []string{it.job.UID})
		if err != nil {
			return true, databaseError{err}
		}
		if it.kept = keeps[it.job.UID][store.KeptLog] == it.job.Ended; it.kept {
			return false, nil
		}
	}
	rows, err := k.opts.Database.Runs(ctx, it.log, store.Filter{UIDs: []string{it.job.UID}}, store.RunAfter{}, mostRuns)
	if err != nil {
		return true, databaseError{err}
	}
	runs := make([]*jobs.Run, len(rows))
	for i, row := range rows {
		runs[i] = row.Run
	}
	run := deciding(it.job, runs)
	if run == nil {
		return true, nil
	}
	data, whole, err := k.ofPod(ctx, it, run)
	if err != nil {
		return true, err
	}
	var unread error
	if !whole {
		text, err := k.read(ctx, run)
		if err != nil && !errors.Is(err, cluster.ErrNoPod) {
			unread = err // what was kept of the pod is more than nothing
		}
		if packed, ok := store.Pack(text); ok && len(text) > 0 {
			data = packed
		}
	}
	if data != nil {
		if more, err := k.write(ctx, it, store.KeptLog, it.job.Ended, data); err != nil {
			return more, err
		}
	}
	if unread != nil {
		return true, unread
	}
	// Of a failure, the pod that decided it may be known by now to be another one.
	return !run.Terminal() || it.job.State == jobs.Failed && slices.ContainsFunc(runs, func(r *jobs.Run) bool { return !r.Terminal() }), nil
}

// endSlack is how much later than a job a pod may be seen to have ended that ended before it: they are watched apart.
const endSlack = 2000

// deciding is the run whose log tells of a job's end: that which is the cause of it; else that
// which failed last; else the last that completed, or ended, before the job did. It is nil if none
// of these has written anything.
func deciding(j *jobs.Job, runs []*jobs.Run) *jobs.Run {
	named := ""
	if cause := jobs.CauseOf(j, runs, jobs.Circumstances{}); cause != nil {
		named = cause.Pod
	}
	rank := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	var best *jobs.Run
	for _, r := range runs {
		if r.Started == 0 && r.ExitCode == nil {
			continue // no container of it has run
		}
		if best == nil || cmp.Or(
			cmp.Compare(rank(named != "" && r.Name == named), rank(named != "" && best.Name == named)),
			cmp.Compare(rank(j.State == jobs.Failed && r.EndedBadly()), rank(j.State == jobs.Failed && best.EndedBadly())),
			cmp.Compare(rank(r.Reason == jobs.Completed), rank(best.Reason == jobs.Completed)),
			cmp.Compare(rank(r.Terminal() && r.Ended <= j.Ended+endSlack), rank(best.Terminal() && best.Ended <= j.Ended+endSlack)),
			cmp.Compare(max(r.Ended, r.Started), max(best.Ended, best.Started)),
		) > 0 {
			best = r
		}
	}
	if named != "" && best != nil && best.Name != named {
		return nil // what another pod wrote does not explain it
	}
	return best
}

const (
	// lineBytes is how long a line of a log is at least, in most of them. So many lines are asked
	// for that there is enough if they are.
	lineBytes = 16
	// readAtMost is how much of a log is read to find its end, as a multiple of what is kept of it.
	readAtMost = 16
)

// read reads the end of what a pod wrote. A log is asked for by its pod's name, so it is looked
// afterwards whether the pod is still the same. An error wraps cluster.ErrNoPod if it is gone.
func (k *Keeper) read(ctx context.Context, run *jobs.Run) ([]byte, error) {
	pod, err := k.find(ctx, run)
	if err != nil {
		return nil, err
	}
	container := run.Container
	if container == "" {
		if all := pods.Containers(pod); len(all) > 0 {
			container = all[0].Get("name").Str
		}
	}
	for lines := max(k.opts.Bytes/lineBytes, 1); ; lines = max(lines/readAtMost, 1) {
		text, whole, err := k.lines(ctx, run, container, lines)
		if err != nil {
			return nil, err
		}
		if !whole && lines > 1 {
			continue // lines are longer than usual
		}
		if !whole {
			return nil, errors.New("its last line has no end")
		}
		if _, err := k.find(ctx, run); err != nil {
			return nil, err
		}
		return end(text, k.opts.Bytes), nil
	}
}

// find reads the pod of a run.
func (k *Keeper) find(ctx context.Context, run *jobs.Run) (*cluster.Object, error) {
	pod, err := k.opts.Cluster.Pod(ctx, run.Namespace, run.Name)
	if err == nil && pod.UID() != run.UID {
		return nil, fmt.Errorf("%w: another one has its name", cluster.ErrNoPod)
	}
	return pod, err
}

// nodeSays begins what a kubelet answers in place of a log that its container runtime does not give.
var nodeSays = []byte("unable to retrieve container logs for ")

// lines reads the last lines of a log; whole is false if these are too much.
func (k *Keeper) lines(ctx context.Context, run *jobs.Run, container string, lines int) (text []byte, whole bool, err error) {
	most := readAtMost * k.opts.Bytes
	query := url.Values{"tailLines": {strconv.Itoa(lines)}, "limitBytes": {strconv.Itoa(most + 1)}} // the limit cuts off the end
	if container != "" {
		query.Set("container", container)
	}
	answer, err := k.opts.Cluster.PodLog(ctx, run.Namespace, run.Name, query)
	if err != nil {
		return nil, false, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 16<<10))
		return nil, false, fmt.Errorf("the API server answers %s: %s", answer.Status, gjson.GetBytes(text, "message").Str)
	}
	text, err = io.ReadAll(io.LimitReader(answer.Body, int64(most)+1))
	if bytes.HasPrefix(text, nodeSays) {
		return nil, false, fmt.Errorf("the node answers: %s", text[:min(len(text), 256)])
	}
	return text, len(text) <= most, err
}

// end is the end of a text, of at most so many bytes, by whole lines unless the last one is longer
// than that. It is valid UTF-8, whatever was written.
func end(text []byte, most int) []byte {
	text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	if len(text) <= most {
		return text
	}
	before := text[len(text)-most-1]
	text = text[len(text)-most:]
	if i := bytes.IndexByte(text, '\n'); before != '\n' && i >= 0 && i < len(text)-1 {
		return text[i+1:]
	}
	return bytes.ToValidUTF8(text, nil) // a character may be cut
}
