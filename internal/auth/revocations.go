package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// ErrRevoked: the token or session was good, and was ended before its time. It is an ErrBadToken, too.
var ErrRevoked = errors.New("revoked")

const (
	// revocationsAgain is how soon the ConfigMap is read again after that failed, at first; doubled up to a few seconds.
	revocationsAgain = 100 * time.Millisecond
	revocationsLast  = 5 * time.Second
	// revocationsWatch is how long one watch of it lasts, so that a connection that died unnoticed does not blind for longer.
	revocationsWatch = 2 * time.Minute
	// revocationsRead bounds one list, and how long a watch may take to begin.
	revocationsRead = 10 * time.Second
	// revocationsWrite bounds one write.
	revocationsWrite = 5 * time.Second
	// unreadFor is for how long the ConfigMap may not be read, whatever the reason, while the API server answers otherwise, until
	// nobody is let in.
	unreadFor = time.Minute
	// revocationsConfirm is how often the API server is asked for something else while the ConfigMap cannot be read.
	revocationsConfirm = 5 * time.Second
	// maxOwnRevocations bounds what waits to be shared, or cannot be.
	maxOwnRevocations = 100_000

	// logoutPrefix begins the keys of what the provider ended. Users cause these entries, by signing in and out again and again,
	// and a ConfigMap holds 1 MiB: the rest of it is for operators.
	logoutPrefix = "logout-"
	logoutsRoom  = 512 << 10
	// maxLogoutsEach is how many sessions of one subject are ended one by one while the entries last. The next logout ends all
	// of theirs that began before it, and is the only entry.
	maxLogoutsEach = 16
)

// ConfigMaps are those of one namespace. client-go's CoreV1().ConfigMaps(namespace) is one.
type ConfigMaps interface {
	List(ctx context.Context, opts metav1.ListOptions) (*corev1.ConfigMapList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.ConfigMap, error)
}

// RevocationOptions configure Revocations.
type RevocationOptions struct {
	// ConfigMap is its name, if there is one that replicas share; its values are entries, under keys of any name.
	ConfigMap string
	// Keep is for how long after its time an entry counts that does not say itself: longer than any token lasts.
	Keep       time.Duration
	Registerer prometheus.Registerer // may be nil
	Log        *slog.Logger          // may be nil
}

// Revocations know what was ended before its time: what a ConfigMap of the default cluster says, which is watched, and what
// this replica was told itself, until the ConfigMap has it. Safe for concurrent use.
//
// While the cluster is away, what was known counts on. Before the ConfigMap has been read once, and when it cannot be read for a
// minute in which the API server answers otherwise, nothing can be confirmed, so nobody is let in.
type Revocations struct {
	opts RevocationOptions

	known atomic.Pointer[revocationIndex]
	home  atomic.Pointer[revocationsHome]

	mu        sync.Mutex
	shared    map[string]Revocation
	own       map[string]Revocation // by their key in the ConfigMap: not seen there yet
	synced    bool
	failed    error // why it cannot be read; nil: it can
	since     time.Time
	lost      time.Duration   // for how long of that the API server has answered otherwise
	unread    map[string]bool // keys of entries that were complained of
	listeners map[*func()]struct{}
	unwritten chan struct{} // holds one: there is something to write
	unreadNow chan struct{} // holds one: it cannot be read since a moment ago
	live      prometheus.Gauge
}

// revocationsHome is where the ConfigMap is.
type revocationsHome struct {
	maps     ConfigMaps
	answers  func(context.Context) error
	replaced context.Context // done: it is somewhere else by now
	replace  context.CancelFunc
}

// NewRevocations knows nothing until it runs.
func NewRevocations(opts RevocationOptions) *Revocations {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	r := &Revocations{
		opts: opts, own: map[string]Revocation{}, unread: map[string]bool{}, listeners: map[*func()]struct{}{},
		unwritten: make(chan struct{}, 1), unreadNow: make(chan struct{}, 1),
		live: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubecast_auth_revocations_live", Help: "1 if the list of what was revoked is watched, 0 if not; -1 if none is configured.",
		}),
	}
	r.known.Store(&revocationIndex{})
	if opts.ConfigMap == "" {
		r.live.Set(-1)
	}
	if opts.Registerer != nil {
		opts.Registerer.MustRegister(r.live, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kubecast_auth_revocations", Help: "Entries of what was revoked.",
		}, func() float64 {
			r.mu.Lock()
			defer r.mu.Unlock()
			return float64(len(r.shared) + len(r.own))
		}))
	}
	return r
}

// Settle says where the ConfigMap is, from now on. answers asks the API server there for something else, and is nil if it answers.
func (r *Revocations) Settle(configMaps ConfigMaps, answers func(context.Context) error) {
	next := &revocationsHome{maps: configMaps, answers: answers}
	next.replaced, next.replace = context.WithCancel(context.Background())
	if before := r.home.Swap(next); before != nil {
		before.replace()
	}
}

// Check says whether an identity was revoked (ErrRevoked), or whether nobody can tell (ErrUnavailable).
func (r *Revocations) Check(id Identity) error {
	if err := r.Ready(); err != nil {
		return err
	}
	if entry, found := r.known.Load().find(id, time.Now()); found {
		return fmt.Errorf("%w by %v", ErrRevoked, entry)
	}
	return nil
}

// Ready says why it cannot be told what was revoked, if so.
func (r *Revocations) Ready() error {
	if r.opts.ConfigMap == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.synced && r.failed != nil:
		return fmt.Errorf("%w: ConfigMap %s: what was revoked: %w", ErrUnavailable, r.opts.ConfigMap, r.failed)
	case !r.synced:
		return fmt.Errorf("%w: ConfigMap %s: what was revoked is not read yet", ErrUnavailable, r.opts.ConfigMap)
	case r.failed != nil && r.lost >= unreadFor:
		return fmt.Errorf("%w: ConfigMap %s: what was revoked cannot be read any more, though the cluster answers: %w", ErrUnavailable, r.opts.ConfigMap, r.failed)
	}
	return nil
}

// Changes has changed called when something was revoked; it must return at once. stop must be called, and may be called again.
func (r *Revocations) Changes(changed func()) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners[&changed] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.listeners, &changed)
	}
}

// Revoke ends what an entry says: here at once, and at the other replicas once it is written to the ConfigMap. It returns
// when that is done. An error says that it was not, and is tried again by Run. The same name twice is one entry.
func (r *Revocations) Revoke(ctx context.Context, name string, entry Revocation) error {
	if entry.Until.IsZero() && !entry.Before.IsZero() {
		entry.Until = entry.Before.Add(r.opts.Keep)
	}
	r.mu.Lock()
	r.forget(time.Now())
	if len(r.own) >= maxOwnRevocations {
		r.mu.Unlock()
		return errors.New("too many entries wait to be shared")
	}
	entry = r.gather(name, entry)
	r.own[name] = entry
	listeners := r.rebuild()
	r.mu.Unlock()
	tell(listeners)
	if r.opts.ConfigMap == "" {
		return nil
	}
	err := r.write(ctx)
	if err != nil {
		select {
		case r.unwritten <- struct{}{}:
		default:
		}
	}
	return err
}

// revokeLogout is Revoke for what an issuer ended, by a logout token of that name.
func (r *Revocations) revokeLogout(ctx context.Context, issuer, jti string, entry Revocation) error {
	sum := sha256.Sum256([]byte(issuer + "\n" + jti))
	return r.Revoke(ctx, logoutPrefix+strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])), entry)
}

// Run follows the ConfigMap until the context ends. Settle must have said where it is.
func (r *Revocations) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { r.forgetAll(ctx) })
	if r.opts.ConfigMap != "" {
		wg.Go(func() { r.writeAgain(ctx) })
		wg.Go(func() { r.followAll(ctx) })
		wg.Go(func() { r.confirmAll(ctx) })
	}
	wg.Wait()
	return nil
}

// followAll follows the ConfigMap wherever it is.
func (r *Revocations) followAll(ctx context.Context) {
	pause := revocationsAgain
	for ctx.Err() == nil {
		home := r.home.Load()
		following, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(home.replaced, cancel)
		err := r.follow(following, home.maps, func() { pause = revocationsAgain })
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
		case <-time.After(pause):
		}
		if err != nil {
			pause = min(2*pause, revocationsLast)
		}
	}
}

// follow reads the ConfigMap, and what becomes of it for a while.
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

// fail notes that the ConfigMap cannot be followed.
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

// confirmAll counts for how long the ConfigMap cannot be read, as mode rbac does for permissions: time counts only if the API server
// was asked for something else in it, and answered. While it is away nothing changes there.
func (r *Revocations) confirmAll(ctx context.Context) {
	asked := time.Now()
	for {
		var again <-chan time.Time
		if r.isUnread() {
			again = time.After(max(revocationsConfirm-time.Since(asked), 0))
		}
		select {
		case <-ctx.Done():
			return
		case <-r.unreadNow:
			if again == nil {
				asked = time.Now()
			}
		case <-again:
			passed := min(time.Since(asked), 2*revocationsConfirm) // a machine that slept has asked nobody meanwhile
			asked = time.Now()
			if r.home.Load().answers(ctx) == nil {
				r.count(passed)
			}
		}
	}
}

func (r *Revocations) isUnread() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed != nil
}

// count adds to the time for which the ConfigMap cannot be read though the API server answers.
func (r *Revocations) count(passed time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		return
	}
	before := r.lost
	r.lost = min(before+passed, time.Since(r.since))
	if before < unreadFor && r.lost >= unreadFor {
		r.opts.Log.Error("nobody is let in any more: what was revoked cannot be read, though the cluster answers",
			"configMap", r.opts.ConfigMap, "error", r.failed)
	}
}

// read takes the content of the ConfigMap.
func (r *Revocations) read(data map[string]string) {
	tell(r.take(data))
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

// rebuild makes the index anew, and returns those who are to be told, without the lock. It is held here.
func (r *Revocations) rebuild() (listeners []*func()) {
	index, now := revocationIndex{}, time.Now()
	for _, entries := range []map[string]Revocation{r.shared, r.own} {
		for _, entry := range entries {
			if !entry.over(now) {
				index.add(entry)
			}
		}
	}
	r.known.Store(&index)
	return slices.Collect(maps.Keys(r.listeners))
}

func tell(listeners []*func()) {
	for _, changed := range listeners {
		(*changed)()
	}
}

// write adds to the ConfigMap what it does not have yet, and takes out what is over. Each entry has a key of its own, so
// that replicas can write at the same time without reading first.
func (r *Revocations) write(ctx context.Context) error {
	now := time.Now()
	data := map[string]*string{}
	home := r.home.Load()
	var full error
	r.mu.Lock()
	room := logoutsRoom
	if len(r.own) > 0 {
		wide := wideLogouts(r.own)
		for key, entry := range r.shared {
			switch {
			case entry.over(now), wide.cover(key, entry):
				data[key] = nil
			case isLogoutEntry(key):
				room -= r.size(key, entry)
			}
		}
	}
	left := len(data)
	for name, entry := range r.own {
		if isLogoutEntry(name) {
			if room -= r.size(name, entry); room < 0 {
				full = errors.New("no room is left for what the provider ends: the rest is for operators")
				continue
			}
		}
		text := r.brief(entry)
		data[name] = &text
	}
	written := len(data) - left
	r.mu.Unlock()
	switch {
	case written == 0 && (left == 0 || full == nil):
		return full
	case home == nil:
		return errors.New("the cluster is not known yet")
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, revocationsWrite)
	defer cancel()
	// What was written is kept here until the watch has seen it.
	_, err = home.maps.Patch(ctx, r.opts.ConfigMap, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubecast"})
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", r.opts.ConfigMap, err)
	}
	if full != nil {
		return fmt.Errorf("ConfigMap %s: %w", r.opts.ConfigMap, full)
	}
	return nil
}

// brief is an entry as it is written: without what goes without saying, since space is short.
func (r *Revocations) brief(entry Revocation) string {
	if entry.Until.Equal(entry.Before.Add(r.opts.Keep)) {
		entry.Until = time.Time{}
	}
	return entry.String()
}

// size is the room that an entry takes.
func (r *Revocations) size(name string, entry Revocation) int { return len(name) + len(r.brief(entry)) }

func isLogoutEntry(name string) bool { return strings.HasPrefix(name, logoutPrefix) }

// gather makes of one logout more than enough of a subject the end of all that began before it. The lock is held.
func (r *Revocations) gather(name string, entry Revocation) Revocation {
	if !isLogoutEntry(name) || entry.Subject == "" {
		return entry
	}
	before := 0
	for _, entries := range []map[string]Revocation{r.shared, r.own} {
		for key, known := range entries {
			if isLogoutEntry(key) && known.Issuer == entry.Issuer && known.Subject == entry.Subject {
				before++
			}
		}
	}
	if before >= maxLogoutsEach {
		entry.Session = ""
	}
	wide := wideLogouts(map[string]Revocation{name: entry})
	maps.DeleteFunc(r.own, wide.cover)
	return entry
}

// logouts are those of whole subjects, by issuer and subject.
type logouts map[[2]string]Revocation

func wideLogouts(entries map[string]Revocation) logouts {
	wide := logouts{}
	for name, entry := range entries {
		who := [2]string{entry.Issuer, entry.Subject}
		if isLogoutEntry(name) && entry.Subject != "" && entry.Session == "" && !wide[who].Before.After(entry.Before) {
			wide[who] = entry
		}
	}
	return wide
}

// cover reports whether one of them ends all that an earlier logout does, for as long.
func (l logouts) cover(name string, entry Revocation) bool {
	wide, found := l[[2]string{entry.Issuer, entry.Subject}]
	return found && isLogoutEntry(name) && !entry.Before.After(wide.Before) && !entry.Until.After(wide.Until)
}

// writeAgain writes what could not be written at once.
func (r *Revocations) writeAgain(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.unwritten:
		}
		for ctx.Err() == nil {
			err := r.write(ctx)
			if err == nil {
				break
			}
			r.opts.Log.Error("what was revoked cannot be written down: other replicas do not know of it", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(revocationsLast):
			}
		}
	}
}

// forgetAll lets go of what is over, now and then.
func (r *Revocations) forgetAll(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			r.mu.Lock()
			r.forget(now)
			r.mu.Unlock()
		}
	}
}

// forget lets go of this replica's own entries that are over. The lock is held.
func (r *Revocations) forget(now time.Time) {
	maps.DeleteFunc(r.own, func(_ string, entry Revocation) bool { return entry.over(now) })
}
