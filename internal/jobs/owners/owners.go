// Package owners finds whose a job is that does not say so itself: whose the object is that
// controls it, such as a JobSet or a CronJob, and so on upwards; else whose its namespace is.
//
// What it promises: each object above is asked for once in a while, however many jobs it has. It
// reads past the caches, since most of these kinds are in none, and keeps nothing of the objects
// but the name.
//
// What it refuses: to read objects of the core group on the way up, of which none makes jobs, and
// some are large or secret.
package owners

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs/rules"
	"github.com/kubecast/kubecast/internal/ownerref"
)

const (
	maxKept = 10_000
	// keep is how long an answer holds. Who annotates a CronJob sees it at the jobs that begin a minute later.
	keep = time.Minute
	// The API server is asked so often before an object above counts as nobody's, and each time has
	// so long. A recorder waits meanwhile, so a kind whose server is broken must not hold it for
	// ever.
	tries, within, pause = 2, 2 * time.Second, 500 * time.Millisecond
)

// Finder finds the owners of the jobs of one cluster. Its methods may be called concurrently.
type Finder struct {
	cluster *cluster.Cluster
	rules   *rules.Set
	kept    *cache.LRUExpireCache // by place: the object there, and what is above it
	log     *slog.Logger
}

// New makes a Finder. The rules say what an object itself says.
func New(c *cluster.Cluster, set *rules.Set, log *slog.Logger) *Finder {
	return &Finder{cluster: c, rules: set, kept: cache.NewLRUExpireCache(maxKept), log: log}
}

// Of is the owner of an object that says nothing of one, in a namespace of a uid; "" if nobody is,
// or if what is above it cannot be read although the API server answers. What a namespace says that
// has another uid is not asked for, since it may be somebody else's. An error says that the API
// server is away, so that nothing is known, or is the context's.
func (f *Finder) Of(ctx context.Context, o *cluster.Object, namespace string) (string, error) {
	var found finding
	var err error
	ownerref.Above(controllerOf(o), func(above ownerref.ID) ([]ownerref.ID, bool) {
		found, err = f.look(ctx, above)
		return found.above, err == nil && found.owner == ""
	})
	if err != nil || found.owner != "" || namespace == "" {
		return found.owner, err
	}
	found, err = f.look(ctx, ownerref.ID{Kind: "Namespace", Name: o.GetNamespace(), UID: namespace})
	return found.owner, err
}

// finding is what is known of an object; the zero value is that it is not there, or that the gateway may not see it.
type finding struct {
	owner string
	above []ownerref.ID // what controls it
}

// brokenKind is a kind that cannot be asked for now, in a namespace or in all ("").
type brokenKind struct{ group, kind, namespace string }

func (f *Finder) look(ctx context.Context, at ownerref.ID) (finding, error) {
	if found, ok := f.kept.Get(at); ok {
		return found.(finding), nil
	}
	// A kind that does not answer is not asked again for each of its objects, nor one that answers
	// with errors in a namespace, where one user may have broken it: the recorder would wait for
	// longer than its lease.
	everywhere, here := brokenKind{at.Group, at.Kind, ""}, brokenKind{at.Group, at.Kind, at.Namespace}
	for _, broken := range []brokenKind{everywhere, here} {
		if _, is := f.kept.Get(broken); is {
			return finding{}, nil
		}
	}
	var found finding
	var err error
	for try := range tries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return finding{}, ctx.Err()
			case <-time.After(pause):
			}
		}
		if found, err = f.read(ctx, at); err == nil || isFinal(err) {
			break
		}
		if ctx.Err() != nil {
			return finding{}, ctx.Err()
		}
	}
	if err != nil {
		level := slog.LevelDebug
		if !isFinal(err) {
			if away := f.cluster.Answers(ctx); away != nil {
				return finding{}, away
			}
			level = slog.LevelWarn
			if errors.Is(err, context.DeadlineExceeded) {
				here = everywhere
			}
			f.kept.Add(here, finding{}, keep)
		}
		f.log.Log(ctx, level, "whose a job is cannot be read from what is above it", "kind", at.Kind, "namespace", at.Namespace, "name", at.Name, "error", err)
	}
	f.kept.Add(at.Clone(), found, keep)
	return found, nil
}

// isFinal reports whether asking again would give the same answer: there is no such thing, or the
// gateway may not see it.
func isFinal(err error) bool {
	return errors.Is(err, cluster.ErrNoKind) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// read reads an object. One without a namespace is nobody's owner but of others without one, since anybody can name it.
func (f *Finder) read(ctx context.Context, at ownerref.ID) (found finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	kind, err := f.cluster.KindOf(ctx, at.Group, at.Kind)
	if err != nil || kind.Namespaced != (at.Namespace != "") {
		return found, err
	}
	o, err := f.cluster.Get(ctx, kind, at.Namespace, at.Name)
	switch isNamespace := kind.Resource == "namespaces" && kind.Group == ""; {
	case err != nil:
		return found, err
	case o.UID() != at.UID: // another of the same name
	case isNamespace:
		found.owner = strings.Clone(f.rules.Owner(kind.String(), o))
		if found.owner == "" && o.Get("app.kubernetes.io/part-of") == "kubeflow-profile" {
			found.owner = strings.Clone(o.Path("metadata.annotations.owner").Str) // as Kubeflow's profile controller writes it
		}
	default:
		found.owner, found.above = strings.Clone(f.rules.Owner(kind.String(), o)), controllerOf(o)
	}
	return found, nil
}

// controllerOf is the object that controls another one; none if it is of the core group.
func controllerOf(o *cluster.Object) []ownerref.ID {
	above, ok := ownerref.Controller(o)
	if !ok || above.Group == "" {
		return nil
	}
	return []ownerref.ID{above.Clone()}
}
