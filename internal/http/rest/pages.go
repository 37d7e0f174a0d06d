package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/livequery"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// pages remembers the snapshots of lists that are read in pages, so that all pages of a walk are of one version. A
// token whose snapshot is gone, or was another replica's, gets a 410 with a token that goes on at the same place in
// the newest snapshot. The API server does the same after a compaction.
type pages struct {
	memory *budget.Memory
	sorted sortedLists

	mu   sync.Mutex
	kept map[*cache.Store][]*keptSnapshot // by revision
}

type keptSnapshot struct {
	snapshot *cache.Snapshot
	walks    map[walkKey]map[string]*budget.Entry // by user: one user's walk does not end with another's
	charges  int
}

// walkKey is the revision under which clients know a snapshot: its own, or another one that is the
// same in a part. A version is not enough: what deletes several objects comes in parts.
type walkKey struct {
	revision stream.Revision
	of       visibility.VisibleTargetKey // the zero value for the snapshot's own revision
}

func (k *keptSnapshot) key(revision stream.Revision, of visibility.VisibleTargetKey) walkKey {
	if revision == k.snapshot.Revision() {
		return walkKey{revision: revision}
	}
	return walkKey{revision, of}
}

// isOf reports whether the snapshot is known under a version that it has all of.
func (k *keptSnapshot) isOf(version uint64, of visibility.VisibleTargetKey) bool {
	if version == k.snapshot.Version() {
		return k.snapshot.Whole() && k.walks[k.key(k.snapshot.Revision(), of)] != nil
	}
	for walk := range k.walks {
		if walk.revision.Version == version && walk.of == of && version < k.snapshot.Version() {
			return true
		}
	}
	return false
}

const KeepFor = 5 * time.Minute // after the last page was read; etcd's default compaction interval

// reader is the user who reads a list, with the task that makes it.
type reader struct {
	user string
	task *budget.Task
}

func newPages(memory *budget.Memory, queries *livequery.Registry) *pages {
	return &pages{memory: memory, sorted: newSortedLists(memory, queries), kept: map[*cache.Store][]*keptSnapshot{}}
}

// page is the place at which a list goes on.
type page struct {
	store    *cache.Store
	part     visibility.VisibleTarget
	snapshot *cache.Snapshot
	epoch    string          // in which the revision counts
	revision stream.Revision // the list's: the snapshot's, or another one that is the same in this part
	changed  stream.Revision // when this part of the snapshot last changed
	after    *cache.SortKey  // the last object of the page before; nil on the first page
}

// whole reports whether this part of the snapshot is known to be all of what there was at its
// version. It is not as long as more of the revision may be to come that changed it last.
func (p page) whole() bool {
	return p.changed.Version < p.snapshot.Version() || p.snapshot.Whole()
}

// rest is what a page leaves for the next ones.
type rest struct {
	token string // "" on the last page
	items int    // how many are left; 0 if that is not known
}

// Token is a continue token. The version 0 asks for the newest snapshot.
type Token struct {
	Version    uint64            `json:"v"`
	Part       int               `json:"r,omitempty"` // of the version's revision; left out if it is 1
	Namespace  string            `json:"ns,omitempty"`
	Name       string            `json:"n"`
	Order      string            `json:"s,omitempty"` // the list's order
	Values     []cache.SortValue `json:"k,omitempty"` // the last object's values at the paths of the order
	Visibility string            `json:"p,omitempty"` // the visibility with which the pages so far were made
	Epoch      string            `json:"e,omitempty"` // in which the version counts
}

// token returns a token that goes on with this page's list behind a place.
func (p page) token(at Token) string {
	at.Version, at.Visibility, at.Epoch = p.revision.Version, p.part.Visible.Tag(), p.epoch
	if p.revision.Part > 1 {
		at.Part = p.revision.Part
	}
	return at.Encode()
}

func (t Token) revision() stream.Revision {
	return stream.Revision{Version: t.Version, Part: max(1, t.Part)}
}

func (t Token) Encode() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // plain fields, and no number that JSON lacks
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodeToken(text string, order cache.Order) (t Token, key *cache.SortKey, err error) {
	const invalid = "invalid continue token: continue key is not valid: " // in the API server's own words
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	if err != nil {
		return t, nil, reply.BadRequest(invalid+"%s", err)
	}
	if t.Name == "" {
		return t, nil, reply.BadRequest(invalid + "server does not recognize this encoded version ")
	}
	key = &cache.SortKey{Values: t.Values, Namespace: t.Namespace, Name: t.Name}
	if t.Order != order.String() || !order.Fits(*key) {
		return t, nil, reply.BadRequest(invalid + "it is of a list in another order")
	}
	return t, key, nil
}

// open returns the snapshot that a request asks for, and the place in it. The epoch was asked for
// before: that of a snapshot of another history is never taken for the one that has begun. Theirs
// reports whether the caller may be shown a snapshot that was kept.
func (p *pages) open(store *cache.Store, visible visibility.VisibleTarget, epoch string, req listRequest, theirs func(page) bool) (page, error) {
	newest, changed := store.View(visible.Namespaces())
	found := page{store: store, part: visible, snapshot: newest, epoch: epoch, revision: newest.Revision(), changed: changed}
	switch {
	case req.token != "":
		return p.resume(found, req, theirs)
	case req.asked.exactly && (!p.exactly(&found, req.asked.version) || found.snapshot != newest && !theirs(found)):
		return page{}, reply.Expired("The resourceVersion for the provided list is too old.", "")
	}
	return found, nil
}

func (p *pages) resume(found page, req listRequest, theirs func(page) bool) (page, error) {
	t, key, err := decodeToken(req.token, req.order)
	if err != nil {
		return page{}, err
	}
	newest := found.snapshot
	// Pages that were made under another visibility may lack objects before the key that are visible now, or have
	// objects that are not visible any more. All pages together would be the list of no version.
	if t.Version != 0 && (t.Epoch != found.epoch || t.Visibility != found.part.Visible.Tag() || !p.at(&found, t.revision()) || found.snapshot != newest && !theirs(found)) {
		t.Version = 0
		return page{}, reply.Expired("The provided continue parameter is too old to display a consistent list result. You can start a "+
			"new list without the continue parameter, or use the continue token in this response to retrieve the remainder of "+
			"the results. Continuing with the provided token results in an inconsistent list - objects that were created, "+
			"modified, or deleted between the time the first chunk was returned and now may show up in the list.", t.Encode())
	}
	found.after = key
	return found, nil
}

// at moves a page of the newest snapshot to a revision: to a kept snapshot, or nowhere if nothing in this part has
// changed since that revision. The latter makes tokens of other replicas valid, too. It reports false if neither is
// possible.
func (p *pages) at(found *page, revision stream.Revision) bool {
	of := found.part.Key()
	if kept := p.find(found.store, func(k *keptSnapshot) bool { return k.walks[k.key(revision, of)] != nil }); kept != nil {
		found.move(kept, revision)
		return true
	}
	if found.changed.Compare(revision) <= 0 && revision.Compare(found.revision) <= 0 {
		found.revision = revision
		return true
	}
	return false
}

// exactly moves a page of the newest snapshot to a version, all of it. It reports false if that is not possible.
func (p *pages) exactly(found *page, version uint64) bool {
	switch {
	case version == found.revision.Version && found.whole():
		return true
	case found.changed.Version <= version && version < found.revision.Version:
		found.revision = found.changed.Later(stream.Revision{Version: version, Part: 1})
		return true
	}
	of := found.part.Key()
	kept := p.find(found.store, func(k *keptSnapshot) bool { return k.isOf(version, of) })
	if kept == nil {
		return false
	}
	revision := kept.Revision()
	if version < revision.Version {
		revision = stream.Revision{Version: version, Part: 1}
	}
	found.move(kept, revision)
	return true
}

func (p *page) move(to *cache.Snapshot, revision stream.Revision) {
	p.snapshot, p.revision = to, revision
	if revision.Compare(p.changed) < 0 {
		p.changed = revision
	}
}

// read returns a page's objects, and what is left. The snapshot is kept if anything is left.
func (p *pages) read(ctx context.Context, page page, req listRequest, by reader) (items []*cluster.Object, left rest, err error) {
	if req.order.String() != "" {
		items, left, err = p.readSorted(ctx, page, req, by)
	} else {
		items, left = readPlain(page, req)
		err = by.task.Err()
	}
	if err == nil && left.token != "" {
		p.keep(page, by.user)
	}
	return items, left, err
}

func readPlain(page page, req listRequest) (items []*cluster.Object, left rest) {
	var namespace, name string
	if page.after != nil {
		namespace, name = page.after.Namespace, page.after.Name
	}
	for o := range page.part.List(page.snapshot, req.selector, namespace, name) {
		if req.limit == 0 || len(items) < req.limit {
			items = append(items, o)
			continue
		}
		if left.token == "" {
			last := items[len(items)-1]
			left.token = page.token(Token{Namespace: last.GetNamespace(), Name: last.GetName()})
		}
		if !req.selector.Empty() {
			break // as at the API server, the number of those left is not known
		}
		left.items++
	}
	return items, left
}

func (p *pages) readSorted(ctx context.Context, page page, req listRequest, by reader) (items []*cluster.Object, left rest, err error) {
	sorted, err := p.sorted.get(ctx, page, req, by)
	if err != nil {
		return nil, rest{}, err
	}
	first := min(req.offset, sorted.Len())
	if page.after != nil {
		first = sorted.After(*page.after)
	}
	end := sorted.Len()
	if req.limit > 0 {
		end = first + min(end-first, req.limit)
	}
	for i := first; i < end; i++ {
		items = append(items, sorted.At(i))
	}
	if left.items = sorted.Len() - end; left.items > 0 {
		last := sorted.Key(end - 1)
		left.token = page.token(Token{Namespace: last.Namespace, Name: last.Name, Order: req.order.String(), Values: last.Values})
	}
	return items, left, nil
}

func (p *pages) find(store *cache.Store, is func(*keptSnapshot) bool) *cache.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kept[store] {
		if is(k) {
			return k.snapshot
		}
	}
	return nil
}

const (
	// snapshotBytes is what a snapshot costs even if few objects change: the nodes above them in each tree.
	snapshotBytes = 32 << 10
	walkBytes     = 512 // what remembering a walk costs
)

// keep remembers a page's snapshot, charged to the user who reads the list.
func (p *pages) keep(page page, user string) {
	p.mu.Lock()
	k := p.snapshot(page)
	walk := k.key(page.revision, page.part.Key())
	if charge := k.walks[walk][user]; charge != nil {
		charge.Use()
		p.mu.Unlock()
		return
	}
	size := func() int64 { return p.size(page.store, k) }
	charge := p.memory.Enter(user, KeepFor, func() { p.drop(page.store, k, walk, user) }).Measure(size)
	if k.walks[walk] == nil {
		k.walks[walk] = map[string]*budget.Entry{}
	}
	k.walks[walk][user] = charge
	k.charges++
	p.mu.Unlock()
	charge.Set(size())
}

// snapshot returns the entry of a page's snapshot, and makes it if there is none.
func (p *pages) snapshot(page page) *keptSnapshot {
	kept := p.kept[page.store]
	at := len(kept)
	for ; at > 0 && kept[at-1].snapshot.Revision().Compare(page.snapshot.Revision()) >= 0; at-- {
		if kept[at-1].snapshot == page.snapshot {
			return kept[at-1]
		}
	}
	k := &keptSnapshot{snapshot: page.snapshot, walks: map[walkKey]map[string]*budget.Entry{}}
	p.kept[page.store] = slices.Insert(kept, at, k)
	return k
}

// size is a walk's share of what its snapshot holds and no later snapshot does, in bytes.
func (p *pages) size(store *cache.Store, k *keptSnapshot) int64 {
	p.mu.Lock()
	var later *cache.Snapshot
	if at := slices.Index(p.kept[store], k) + 1; at > 0 && at < len(p.kept[store]) {
		later = p.kept[store][at].snapshot
	}
	charges := int64(max(1, k.charges))
	p.mu.Unlock()
	return walkBytes + (snapshotBytes+store.HeldBeyond(k.snapshot, later))/charges
}

func (p *pages) drop(store *cache.Store, k *keptSnapshot, walk walkKey, user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k.charges--
	if delete(k.walks[walk], user); len(k.walks[walk]) == 0 {
		delete(k.walks, walk)
	}
	if len(k.walks) > 0 {
		return
	}
	kept := slices.DeleteFunc(p.kept[store], func(o *keptSnapshot) bool { return o == k })
	if p.kept[store] = kept; len(kept) == 0 {
		delete(p.kept, store)
	}
}
