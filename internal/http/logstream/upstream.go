package logstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/logs"
)

// upstream is a cluster as a logs.Backend.
type upstream struct{ cluster *cluster.Cluster }

const (
	// lookWithin bounds a question, and a look at the end of a log.
	lookWithin = 30 * time.Second
	// readWithin bounds a look at all of a log.
	readWithin = 10 * time.Minute
)

// errChanged means that a container was started again while its log was asked for: it may be of another run.
var errChanged = errors.New("the container was started again meanwhile")

// errUnknown means that the pod is there, and its node does not know of it.
var errUnknown = errors.New("the node does not know the pod")

func (u upstream) Ended(ctx context.Context, of logs.ContainerRun) (bool, error) {
	found, err := u.find(ctx, of)
	return found.ended, err
}

// Read implements logs.Backend. A log is asked for by the name of its pod, which may be another
// pod's by now. So the pod is read before and after.
func (u upstream) Read(ctx context.Context, of logs.ContainerRun, q logs.ReadOptions) (_ io.ReadCloser, err error) {
	before, err := u.find(ctx, of)
	if err != nil {
		return nil, err
	}
	query := url.Values{"container": {of.Container}, "timestamps": {"true"}}
	if q.Follow {
		query.Set("follow", "true")
	}
	if before.previous {
		query.Set("previous", "true")
	}
	if q.Tail >= 0 {
		query.Set("tailLines", strconv.Itoa(q.Tail))
	}
	if !q.Since.IsZero() {
		query.Set("sinceTime", q.Since.UTC().Format(time.RFC3339))
	}
	end := func() {}
	if !q.Follow {
		within := lookWithin
		if q.Tail < 0 {
			within = readWithin
		}
		ctx, end = context.WithTimeout(ctx, within)
		defer func() {
			if err != nil {
				end()
			}
		}()
	}
	answer, err := u.cluster.PodLog(ctx, of.Namespace, of.Pod, query)
	if err != nil {
		return nil, err
	}
	body := &ending{answer.Body, end}
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound: // a kubelet that has just been started does not know its pods yet
		if _, err = u.find(ctx, of); err == nil {
			err = errUnknown
		}
	default:
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 16<<10))
		err = fmt.Errorf("the API server answers %s: %s", answer.Status, gjson.GetBytes(text, "message").Str)
	}
	if err == nil {
		var after containerRun
		if after, err = u.find(ctx, of); err == nil && after.previous != before.previous {
			err = errChanged
		}
	}
	if err != nil {
		_ = answer.Body.Close() // its error would say less
		return nil, err
	}
	return body, nil
}

// ending is a body that ends something with it.
type ending struct {
	io.ReadCloser
	end func()
}

func (e *ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

// find asks how a run is now. An error wraps logs.ErrGone if its log will not be had any more.
func (u upstream) find(ctx context.Context, of logs.ContainerRun) (containerRun, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	pod, err := u.cluster.Pod(ctx, of.Namespace, of.Pod)
	switch {
	case errors.Is(err, cluster.ErrNoPod):
		return containerRun{}, fmt.Errorf("%w: %w", logs.ErrGone, err)
	case err != nil:
		return containerRun{}, err
	case pod.UID() != of.UID:
		return containerRun{}, fmt.Errorf("%w: the pod is another one", logs.ErrGone)
	}
	all := statuses(pod)
	if i := slices.IndexFunc(all, func(s status) bool { return s.container == of.Container }); i >= 0 {
		if found, ok := all[i].find(of.Restart); ok {
			return found, nil
		}
		if _, later := all[i].after(of.Restart); later {
			return containerRun{}, fmt.Errorf("%w: later runs have taken its place", logs.ErrGone)
		}
	}
	return containerRun{}, fmt.Errorf("container %s has not begun", of.Container)
}
