package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace is one namespace of its name: another one may come after it, of somebody else.
type Namespace struct {
	Name, UID string
	Created   time.Time
}

const (
	// namespacesByName is up to how many namespaces are asked for one by one. For more, all are listed.
	namespacesByName = 32
	// namespacesAtOnce is how many are asked for at once.
	namespacesAtOnce = 8
)

var namespaceKind = Kind{Version: "v1", Resource: "namespaces", Kind: "Namespace", Watchable: true}

// Namespaces are those of some names that there are, asked for no earlier than at the call, past
// all caches: whatever was permitted before it was permitted in these, or in ones that are gone.
// Callers who ask for the same at the same time share a request. An error wraps ErrUnavailable, and
// what the API server answered, if it did.
func (c *Cluster) Namespaces(ctx context.Context, names []string) (living []Namespace, err error) {
	if len(names) > namespacesByName {
		all, err := fresh(ctx, c, "namespaces", c.listNamespaces)
		wanted := make(map[string]bool, len(names))
		for _, name := range names {
			wanted[name] = true
		}
		return slices.DeleteFunc(slices.Clone(all), func(n Namespace) bool { return !wanted[n.Name] }), err
	}
	var mu sync.Mutex
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(namespacesAtOnce)
	for _, name := range names {
		asking.Go(func() error {
			found, err := fresh(ctx, c, "namespace "+name, func(ctx context.Context) ([]Namespace, error) {
				o, err := c.Get(ctx, namespaceKind, "", name)
				if apierrors.IsNotFound(err) {
					return nil, nil
				}
				if err != nil {
					return nil, err
				}
				return []Namespace{namespaceOf(o)}, nil
			})
			mu.Lock()
			defer mu.Unlock()
			living = append(living, found...)
			return err
		})
	}
	err = asking.Wait()
	return living, err
}

func namespaceOf(o *Object) Namespace {
	return Namespace{strings.Clone(o.GetName()), strings.Clone(o.UID()), time.Unix(o.Created(), 0)}
}

func (c *Cluster) listNamespaces(ctx context.Context) ([]Namespace, error) {
	list, err := listMetadata(ctx, c.lists, namespaceKind, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("%w: namespaces of cluster %s: %w", ErrUnavailable, c.name, err)
	}
	all := make([]Namespace, 0, len(list.Items))
	for _, o := range list.Items {
		all = append(all, namespaceOf(o))
	}
	return all, nil
}

// fresh is once for an answer that must have been asked for no earlier than at the call.
func fresh[T any](ctx context.Context, c *Cluster, question string, ask func(context.Context) (T, error)) (found T, err error) {
	type dated struct {
		asked time.Time
		found T
	}
	for called := time.Now(); ; {
		answer, err := c.once(ctx, question, func(ctx context.Context) (any, error) {
			asked := time.Now()
			found, err := ask(ctx)
			return dated{asked, found}, err
		})
		if err != nil {
			return found, err
		}
		if d := answer.(dated); !d.asked.Before(called) {
			return d.found, nil
		}
	}
}
