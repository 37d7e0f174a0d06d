package recorder

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubecast/kubecast/internal/cluster"
)

// A job's namespace may be gone, and another one of its name there, before it is known which one it
// was. It is the one that lives if it was there before the job; and where the two are of nearly one
// time, if the job is there after it is known which one lives: no namespace goes before what is in
// it. Of any other job it stays unknown, until its next transition.

const (
	// namespacesWithin is how long the recorder waits for an answer of which namespaces live, and then whether jobs do.
	namespacesWithin = 2 * time.Second
	// namespacesPause is how long it does not ask after it was refused, or had no answer.
	namespacesPause = 10 * time.Second
	// oneTime is how much later than another something must have been created so that it was,
	// whichever API servers' clocks say so.
	oneTime = time.Minute
)

// place finds the namespaces of jobs of which they are not known. The jobs and transitions are this
// batch's own until it is written. The error is that the API server is away, or the context's.
func (r *Recorder) place(ctx context.Context, b *batch) error {
	if len(b.unplaced) == 0 || time.Now().Before(r.placeNext) {
		return nil
	}
	var names []string
	there := map[string]bool{}
	for _, o := range b.unplaced {
		if name := o.GetNamespace(); !there[name] {
			there[name], names = true, append(names, name)
		}
	}
	asking, cancel := context.WithTimeout(ctx, namespacesWithin)
	defer cancel()
	living, err := r.opts.Cluster.Namespaces(asking, names)
	if err != nil {
		return r.placeLater(ctx, err)
	}
	byName := make(map[string]cluster.Namespace, len(living))
	for _, n := range living {
		byName[n.Name] = n
	}
	var mu sync.Mutex
	found := map[string]string{}
	var looking errgroup.Group
	looking.SetLimit(findersAtOnce)
	for uid, o := range b.unplaced {
		n, lives := byName[o.GetNamespace()]
		switch younger := time.Unix(o.Created(), 0).Sub(n.Created); {
		case !lives, younger < -oneTime:
		case younger > oneTime:
			mu.Lock()
			found[uid] = n.UID
			mu.Unlock()
		default:
			looking.Go(func() error {
				if now, err := r.opts.Cluster.Get(asking, r.opts.Store.Kind(), o.GetNamespace(), o.GetName()); err == nil && now.UID() == uid {
					mu.Lock()
					defer mu.Unlock()
					found[uid] = n.UID
				}
				return nil // it stays unknown
			})
		}
	}
	_ = looking.Wait()
	for i, t := range b.transitions {
		if namespace := found[t.UID]; namespace != "" {
			t.NamespaceUID, b.after[i].NamespaceUID = namespace, namespace
		}
	}
	for uid, namespace := range found {
		b.changed[uid].NamespaceUID = namespace // it may have been counted after its transition
	}
	return ctx.Err()
}

// placeLater decides what a failure to ask means.
func (r *Recorder) placeLater(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !apierrors.IsForbidden(err) {
		if away := r.opts.Cluster.Answers(ctx); away != nil {
			return away
		}
	}
	r.placeNext = time.Now().Add(namespacesPause)
	if err.Error() != r.placeTold {
		r.placeTold = err.Error()
		r.log.Warn("the gateway cannot ask which namespaces there are, so callers who may see single namespaces are not shown what is recorded now", "error", err)
	}
	return nil
}
