package http

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
)

// pages remembers the snapshots that lists with a limit are walking, so that all pages of a walk are of one version.
// A token whose snapshot is gone, or was another replica's, is answered with 410 and a token that goes on at the same
// place in the newest snapshot, as the API server does after a compaction.
type pages struct {
	mu       sync.Mutex
	kept     []keptSnapshot // the least recently used first
	sweeping bool           // forget will be called when the first of them is too old

	sorted sortedLists
}

type keptSnapshot struct {
	store    *cache.Store
	snapshot *cache.Snapshot
	version  uint64 // under which it was told; if it is not the snapshot's own, it is so in one part only
	of       partKey
	used     time.Time
}

const (
	maxKept = 64              // snapshots remembered
	keepFor = 5 * time.Minute // after the last page; etcd's default compaction interval
)

func newPages() *pages { return &pages{} }

// page is where a list goes on.
type page struct {
	store    *cache.Store
	part     part
	snapshot *cache.Snapshot
	version  uint64         // that the list is told to be of: the snapshot's, or another one that has the same in this part
	changed  uint64         // when this part of the snapshot last changed
	after    *cache.SortKey // of the last object of the page before; nil on the first
}

// rest is what a page leaves for later.
type rest struct {
	token string // "" if it is the last
	items int    // how many are left; 0 if that is not known
}

// token is what a client hands back. A version of 0 asks for the newest snapshot.
type token struct {
	Version   uint64            `json:"v"`
	Namespace string            `json:"ns,omitempty"`
	Name      string            `json:"n"`
	Order     string            `json:"s,omitempty"` // what the list was sorted by
	Values    []cache.SortValue `json:"k,omitempty"` // of the last object, at the paths of the order
	Sight     string            `json:"p,omitempty"` // of the caller, by which the pages until now were made
}

// token makes one that goes on with this page's list behind a place.
func (p page) token(at token) string {
	at.Version, at.Sight = p.version, p.part.sight.tag()
	return at.encode()
}

func (t token) encode() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // plain fields, and no number that JSON lacks
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodeToken(text string, order cache.Order) (t token, key *cache.SortKey, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &t) != nil || t.Name == "" {
		return t, nil, badRequest("continue key is not valid")
	}
	key = &cache.SortKey{Values: t.Values, Namespace: t.Namespace, Name: t.Name}
	if t.Order != order.String() || !order.Fits(*key) {
		return t, nil, badRequest("continue key is not valid: it is of a list in another order")
	}
	return t, key, nil
}

// open finds the snapshot, and the place in it, that a request asks for.
func (p *pages) open(store *cache.Store, visible part, req listRequest) (page, error) {
	newest, changed := store.View(visible.scope())
	found := page{store: store, part: visible, snapshot: newest, version: newest.Version(), changed: changed}
	switch {
	case req.token != "":
		return p.resume(found, req)
	case req.asked.exactly && !p.at(&found, req.asked.version):
		return page{}, expired(fmt.Sprintf("The resourceVersion for the provided list is too old: %d, current: %d",
			req.asked.version, newest.Version()), "")
	}
	return found, nil
}

func (p *pages) resume(found page, req listRequest) (page, error) {
	t, key, err := decodeToken(req.token, req.order)
	if err != nil {
		return page{}, err
	}
	// Pages that were made under other permissions lack what stands before the key and is seen by now, or have what is not
	// seen any more: together they are the list of no version.
	if t.Version != 0 && (t.Sight != found.part.sight.tag() || !p.at(&found, t.Version)) {
		t.Version = 0
		return page{}, expired("The provided continue parameter is too old to display a consistent list result. You can start a "+
			"new list without the continue parameter, or use the continue token in this response to retrieve the remainder of "+
			"the results. Continuing with the provided token results in an inconsistent list - objects that were created, "+
			"modified, or deleted between the time the first chunk was returned and now may show up in the list.", t.encode())
	}
	found.after = key
	return found, nil
}

// at moves a page of the newest snapshot to a version: to the snapshot that is kept, or nowhere if nothing in this part has
// changed since, which makes tokens of other replicas good, too.
func (p *pages) at(found *page, version uint64) bool {
	if kept := p.find(found.store, found.part.key(), version); kept != nil { // first, since events may share a version
		found.snapshot, found.version, found.changed = kept, version, min(found.changed, version)
		return true
	}
	if found.changed <= version && version <= found.version {
		found.version = version
		return true
	}
	return false
}

// read collects a page's objects, and says what is left. The snapshot is kept if anything is.
func (p *pages) read(page page, req listRequest) (items []*cluster.Object, left rest) {
	if req.order.String() != "" {
		items, left = p.readSorted(page, req)
	} else {
		items, left = readPlain(page, req)
	}
	if left.token != "" {
		p.keep(page)
	}
	return items, left
}

func readPlain(page page, req listRequest) (items []*cluster.Object, left rest) {
	var namespace, name string
	if page.after != nil {
		namespace, name = page.after.Namespace, page.after.Name
	}
	for o := range page.part.list(page.snapshot, req.selector, namespace, name) {
		if req.limit == 0 || len(items) < req.limit {
			items = append(items, o)
			continue
		}
		if left.token == "" {
			last := items[len(items)-1]
			left.token = page.token(token{Namespace: last.GetNamespace(), Name: last.GetName()})
		}
		if !req.selector.Empty() {
			break // as at the API server, it is not known how many are left
		}
		left.items++
	}
	return items, left
}

func (p *pages) readSorted(page page, req listRequest) (items []*cluster.Object, left rest) {
	sorted := p.sorted.get(page.snapshot, page.part, req)
	first := 0
	if page.after != nil {
		first = sorted.After(*page.after)
	}
	end := sorted.Len()
	if req.limit > 0 {
		end = min(end, first+req.limit)
	}
	for i := first; i < end; i++ {
		items = append(items, sorted.At(i))
	}
	if left.items = sorted.Len() - end; left.items > 0 {
		last := sorted.Key(end - 1)
		left.token = page.token(token{Namespace: last.Namespace, Name: last.Name, Order: req.order.String(), Values: last.Values})
	}
	return items, left
}

func (p *pages) find(store *cache.Store, of partKey, version uint64) *cache.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
	for _, k := range p.kept {
		if k.store == store && k.version == version && (k.version == k.snapshot.Version() || k.of == of) {
			return k.snapshot
		}
	}
	return nil
}

func (p *pages) keep(page page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = slices.DeleteFunc(p.kept, func(k keptSnapshot) bool {
		return k.store == page.store && k.snapshot == page.snapshot && k.version == page.version
	})
	p.kept = append(p.kept, keptSnapshot{page.store, page.snapshot, page.version, page.part.key(), time.Now()})
	p.forget()
}

// forget drops what was not used for long, or is too much; and sees to it that what is left will be, though nobody
// should ask for another page.
func (p *pages) forget() {
	drop := 0
	for drop < len(p.kept) && (len(p.kept)-drop > maxKept || time.Since(p.kept[drop].used) >= keepFor) {
		drop++
	}
	p.kept = slices.Delete(p.kept, 0, drop)
	if len(p.kept) == 0 || p.sweeping {
		return
	}
	p.sweeping = true
	time.AfterFunc(time.Until(p.kept[0].used.Add(keepFor)), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sweeping = false
		p.forget()
	})
}

func expired(message, fresh string) error {
	return &reply{
		code:    http.StatusGone,
		reason:  metav1.StatusReasonExpired,
		message: message,
		list:    metav1.ListMeta{Continue: fresh},
	}
}
