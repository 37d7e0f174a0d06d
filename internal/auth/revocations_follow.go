package auth

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubecast/kubecast/internal/backoff"
)

const (
	// revocationsAgain is the first wait before the ConfigMap is read again after a failure. It is doubled up to
	// revocationsLast.
	revocationsAgain = 100 * time.Millisecond
	revocationsLast  = 5 * time.Second
	// revocationsWatch is how long one watch of the ConfigMap lasts. So a connection that died unnoticed hides
	// changes no longer than that.
	revocationsWatch = 2 * time.Minute
	// revocationsRead bounds one list, and the beginning of a watch.
	revocationsRead = 10 * time.Second
)

// ConfigMaps is the API for the ConfigMaps of one namespace. client-go's CoreV1().ConfigMaps(namespace) implements
// it.
type ConfigMaps interface {
	List(ctx context.Context, opts metav1.ListOptions) (*corev1.ConfigMapList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.ConfigMap, error)
}

// revocationsHome is the cluster that has the ConfigMap.
type revocationsHome struct {
	maps     ConfigMaps
	answers  func(context.Context) error
	replaced context.Context // done once another cluster has it
	replace  context.CancelFunc
}

// SetHome sets the cluster that has the ConfigMap from now on. Answers sends the API server there another request, and
// returns nil if it is answered.
func (r *Revocations) SetHome(configMaps ConfigMaps, answers func(context.Context) error) {
	next := &revocationsHome{maps: configMaps, answers: answers}
	next.replaced, next.replace = context.WithCancel(context.Background())
	if before := r.home.Swap(next); before != nil {
		before.replace()
	}
}

// Run follows the ConfigMap until the context ends. SetHome must have been called before.
func (r *Revocations) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { r.forgetAll(ctx) })
	if r.opts.ConfigMap != "" {
		wg.Go(func() { r.writeAgain(ctx) })
		wg.Go(func() { r.followAll(ctx) })
		wg.Go(func() { CountUnread(ctx, r.unreadNow, r.isUnread, r.answers, r.count) })
	}
	wg.Wait()
	return nil
}

// followAll follows the ConfigMap in whichever cluster has it.
func (r *Revocations) followAll(ctx context.Context) {
	retry := backoff.New(revocationsAgain, revocationsLast)
	for ctx.Err() == nil {
		home := r.home.Load()
		following, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(home.replaced, cancel)
		err := r.follow(following, home.maps, retry.Reset)
		stop()
		cancel()
		switch {
		case home.replaced.Err() != nil:
			continue
		case err != nil:
			r.fail(err)
		}
		select {
		case <-ctx.Done():
		case <-home.replaced.Done():
		case <-time.After(retry.Next()):
		}
	}
}

// follow reads the ConfigMap, and watches it for a while.
func (r *Revocations) follow(ctx context.Context, configMaps ConfigMaps, stands func()) error {
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", r.opts.ConfigMap).String()}
	listing, cancel := context.WithTimeout(ctx, revocationsRead)
	list, err := configMaps.List(listing, only)
	cancel()
	if err != nil {
		return err
	}
	var data map[string]string
	for _, item := range list.Items {
		if item.Name == r.opts.ConfigMap {
			data = item.Data
		}
	}
	r.read(data)
	seconds := int64(revocationsWatch.Seconds())
	only.ResourceVersion, only.TimeoutSeconds = list.ResourceVersion, &seconds
	ctx, cancel = context.WithTimeout(ctx, revocationsWatch+revocationsRead)
	defer cancel()
	slow := time.AfterFunc(revocationsRead, cancel)
	watching, err := configMaps.Watch(ctx, only)
	slow.Stop()
	if err != nil {
		return err
	}
	defer watching.Stop()
	r.live.Set(1)
	stands()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-watching.ResultChan():
			if !open {
				return nil
			}
			item, ok := event.Object.(*corev1.ConfigMap)
			switch {
			case event.Type == watch.Error:
				return apierrors.FromObject(event.Object)
			case !ok || item.Name != r.opts.ConfigMap:
			case event.Type == watch.Deleted:
				r.read(nil)
			default:
				r.read(item.Data)
			}
		}
	}
}

// fail records that the ConfigMap cannot be followed.
func (r *Revocations) fail(err error) {
	r.live.Set(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.since, r.lost = time.Now(), 0
		r.opts.Log.Warn("what was revoked cannot be read; after a minute in which the cluster answers otherwise, nobody is let in",
			"configMap", r.opts.ConfigMap, "error", err)
		select {
		case r.unreadNow <- struct{}{}:
		default:
		}
	}
	r.failed = err
}

// answers sends another request to the API server of the cluster that has the ConfigMap now.
func (r *Revocations) answers(ctx context.Context) error { return r.home.Load().answers(ctx) }

func (r *Revocations) isUnread() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed != nil
}

// count adds to the time for which the ConfigMap could not be read although the API server answered.
func (r *Revocations) count(passed time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		return
	}
	before := r.lost
	r.lost = min(before+passed, time.Since(r.since))
	if before < UnreadFor && r.lost >= UnreadFor {
		r.opts.Log.Error("nobody is let in any more: what was revoked cannot be read, though the cluster answers",
			"configMap", r.opts.ConfigMap, "error", r.failed)
	}
}

// read takes the content of the ConfigMap.
func (r *Revocations) read(data map[string]string) {
	notify(r.take(data))
}

func (r *Revocations) take(data map[string]string) (listeners []*func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		r.opts.Log.Info("what was revoked can be read again", "configMap", r.opts.ConfigMap)
	}
	r.synced, r.failed, r.lost = true, nil, 0
	r.shared = make(map[string]Revocation, len(data))
	for key, text := range data {
		entry, err := parseRevocation(text, r.opts.Keep)
		if err != nil {
			if !r.unread[key] {
				r.unread[key] = true
				r.opts.Log.Error("an entry of what was revoked is not understood, and has no effect", "configMap", r.opts.ConfigMap, "key", key, "error", err)
			}
			continue
		}
		delete(r.unread, key)
		r.shared[key] = entry
		delete(r.own, key)
	}
	maps.DeleteFunc(r.unread, func(key string, _ bool) bool { _, there := data[key]; return !there })
	return r.rebuild()
}
