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

// ErrRevoked means that the token or session was good, and was ended before its time. It is an ErrBadToken, too.
var ErrRevoked = errors.New("revoked")

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
	// revocationsWrite bounds one write.
	revocationsWrite = 5 * time.Second
	// unreadFor is for how long the ConfigMap may be unreadable, whatever the reason, while the API server answers
	// other requests. After that, all credentials are refused.
	unreadFor = time.Minute
	// revocationsConfirm is how often the API server is sent another request while the ConfigMap cannot be read.
	revocationsConfirm = 5 * time.Second
	// maxOwnRevocations bounds the entries that wait to be shared, or cannot be shared.
	maxOwnRevocations = 100_000

	// logoutPrefix is the prefix of the keys of entries that the provider caused. Users can cause any number of
	// these, by signing in and out. A ConfigMap holds 1 MiB, so such entries get only logoutsRoom, in bytes; the rest
	// is for operators.
	logoutPrefix = "logout-"
	logoutsRoom  = 512 << 10
	// maxLogoutsEach is how many entries for single sessions of one subject are kept at the same time. The next
	// logout becomes an entry that ends all earlier sessions of the subject, and replaces the others.
	maxLogoutsEach = 16
)

// ConfigMaps is the API for the ConfigMaps of one namespace. client-go's CoreV1().ConfigMaps(namespace) implements
// it.
type ConfigMaps interface {
	List(ctx context.Context, opts metav1.ListOptions) (*corev1.ConfigMapList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.ConfigMap, error)
}

// RevocationOptions configure Revocations.
type RevocationOptions struct {
	// ConfigMap is the name of the ConfigMap that replicas share, if there is one. Its values are entries, under any
	// keys.
	ConfigMap string
	// Keep is how long after its Before an entry without an Until counts. It must be longer than any token lasts.
	Keep       time.Duration
	Registerer prometheus.Registerer // may be nil
	Log        *slog.Logger          // may be nil
}

// Revocations knows what was ended before its time: the entries of a ConfigMap in the default cluster, which it
// watches, and this replica's own entries until the ConfigMap has them. Its methods may be called concurrently.
//
// While the cluster is away, the known entries count. Nothing can be confirmed, and so all credentials are refused,
// before the ConfigMap has been read once. The same holds when it could not be read for unreadFor while the API
// server answered other requests.
type Revocations struct {
	opts RevocationOptions

	known atomic.Pointer[revocationIndex]
	home  atomic.Pointer[revocationsHome]

	mu        sync.Mutex
	shared    map[string]Revocation
	own       map[string]Revocation // by key: entries not seen in the ConfigMap yet
	synced    bool
	failed    error // why the ConfigMap cannot be read; nil: it can
	since     time.Time
	lost      time.Duration   // for how long of that time the API server answered other requests
	unread    map[string]bool // keys of malformed entries that were logged
	listeners map[*func()]struct{}
	unwritten chan struct{} // has a token when there is something to write
	unreadNow chan struct{} // has a token when the ConfigMap has just become unreadable
	live      prometheus.Gauge
}

// revocationsHome is the cluster that has the ConfigMap.
type revocationsHome struct {
	maps     ConfigMaps
	answers  func(context.Context) error
	replaced context.Context // done once another cluster has it
	replace  context.CancelFunc
}

// NewRevocations returns a Revocations that knows nothing before Run.
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

// Settle sets the cluster that has the ConfigMap from now on. Answers sends the API server there another request, and
// returns nil if it is answered.
func (r *Revocations) Settle(configMaps ConfigMaps, answers func(context.Context) error) {
	next := &revocationsHome{maps: configMaps, answers: answers}
	next.replaced, next.replace = context.WithCancel(context.Background())
	if before := r.home.Swap(next); before != nil {
		before.replace()
	}
}

// Check returns nil if an identity was not revoked. The error wraps ErrRevoked, or ErrUnavailable if that is not
// known.
func (r *Revocations) Check(id Identity) error {
	if err := r.Ready(); err != nil {
		return err
	}
	if entry, found := r.known.Load().find(id, time.Now()); found {
		return fmt.Errorf("%w by %v", ErrRevoked, entry)
	}
	return nil
}

// Ready says why it is not known what was revoked; nil if it is known.
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

// Changes arranges for changed to be called when something was revoked. Changed must return at once. The caller must
// call stop in the end; further calls do nothing.
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

// Revoke adds an entry under a name. It counts here at once, and at the other replicas once it is written to the
// ConfigMap. Revoke returns when it is written. An error means that it was not; Run tries again. The same name twice
// makes one entry.
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

// revokeLogout is Revoke for what an issuer ended, by the logout token with the id jti.
func (r *Revocations) revokeLogout(ctx context.Context, issuer, jti string, entry Revocation) error {
	sum := sha256.Sum256([]byte(issuer + "\n" + jti))
	return r.Revoke(ctx, logoutPrefix+strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])), entry)
}

// Run follows the ConfigMap until the context ends. Settle must have been called before.
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

// followAll follows the ConfigMap in whichever cluster has it.
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

// confirmAll counts for how long the ConfigMap cannot be read, as mode rbac does for permissions. Time counts only if
// the API server answered another request in it: while it is away, nothing changes there.
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
			passed := min(time.Since(asked), 2*revocationsConfirm) // a machine that slept did not ask in that time
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

// count adds to the time for which the ConfigMap could not be read although the API server answered.
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

// rebuild makes the index anew, and returns the listeners. The caller holds the lock, and must release it before it
// calls them.
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

// write adds the missing entries to the ConfigMap, and removes those that are over. Each entry has its own key, so
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
	// The entries stay in own until the watch has seen them in the ConfigMap.
	_, err = home.maps.Patch(ctx, r.opts.ConfigMap, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubecast"})
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", r.opts.ConfigMap, err)
	}
	if full != nil {
		return fmt.Errorf("ConfigMap %s: %w", r.opts.ConfigMap, full)
	}
	return nil
}

// brief is an entry in the form in which it is written: without an Until that follows from Before, since room is
// scarce.
func (r *Revocations) brief(entry Revocation) string {
	if entry.Until.Equal(entry.Before.Add(r.opts.Keep)) {
		entry.Until = time.Time{}
	}
	return entry.String()
}

// size is the room that an entry takes, in bytes.
func (r *Revocations) size(name string, entry Revocation) int { return len(name) + len(r.brief(entry)) }

func isLogoutEntry(name string) bool { return strings.HasPrefix(name, logoutPrefix) }

// gather returns the entry for a logout. Once a subject has maxLogoutsEach entries, that is one which ends all
// earlier sessions of the subject, and own entries that it covers are dropped. The caller holds the lock.
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

// logouts are the entries that end all sessions of a subject, by issuer and subject.
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

// cover reports whether one of them ends all that another logout ends, for at least as long.
func (l logouts) cover(name string, entry Revocation) bool {
	wide, found := l[[2]string{entry.Issuer, entry.Subject}]
	return found && isLogoutEntry(name) && !entry.Before.After(wide.Before) && !entry.Until.After(wide.Until)
}

// writeAgain writes the entries that could not be written at once.
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

// forgetAll forgets entries that are over, once an hour.
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

// forget forgets this replica's own entries that are over. The caller holds the lock.
func (r *Revocations) forget(now time.Time) {
	maps.DeleteFunc(r.own, func(_ string, entry Revocation) bool { return entry.over(now) })
}
