package http

import (
	"encoding/base64"
	"encoding/json"
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
}

type keptSnapshot struct {
	store    *cache.Store
	snapshot *cache.Snapshot
	used     time.Time
}

const (
	maxKept = 64              // snapshots remembered
	keepFor = 5 * time.Minute // after the last page; etcd's default compaction interval
)

func newPages() *pages { return &pages{} }

// page is where a list goes on.
type page struct {
	snapshot        *cache.Snapshot
	namespace, name string // of the last object of the page before; "" for the first page
}

// token is what a client hands back. A version of 0 asks for the newest snapshot.
type token struct {
	Version   uint64 `json:"v"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"n"`
}

func (t token) encode() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // three plain fields
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// open finds the page that a token asks for; newest is the store's snapshot of now.
func (p *pages) open(store *cache.Store, text string, newest *cache.Snapshot) (page, error) {
	if text == "" {
		return page{snapshot: newest}, nil
	}
	var t token
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &t) != nil || t.Name == "" {
		return page{}, badRequest("continue key is not valid")
	}
	found := page{namespace: t.Namespace, name: t.Name}
	switch {
	case t.Version == 0:
		found.snapshot = newest
	default: // the one that is kept first, since events may share a version
		if found.snapshot = p.find(store, t.Version); found.snapshot == nil && t.Version == newest.Version() {
			found.snapshot = newest
		}
	}
	if found.snapshot == nil {
		return page{}, expired("The provided continue parameter is too old to display a consistent list result. You can start a "+
			"new list without the continue parameter, or use the continue token in this response to retrieve the remainder of "+
			"the results. Continuing with the provided token results in an inconsistent list - objects that were created, "+
			"modified, or deleted between the time the first chunk was returned and now may show up in the list.",
			token{Namespace: t.Namespace, Name: t.Name}.encode())
	}
	return found, nil
}

// next is the token for what follows the last object of a page, whose snapshot is kept for it.
func (p *pages) next(store *cache.Store, snapshot *cache.Snapshot, last *cluster.Object) string {
	p.keep(store, snapshot)
	return token{Version: snapshot.Version(), Namespace: last.GetNamespace(), Name: last.GetName()}.encode()
}

func (p *pages) find(store *cache.Store, version uint64) *cache.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
	for _, k := range p.kept {
		if k.store == store && k.snapshot.Version() == version {
			return k.snapshot
		}
	}
	return nil
}

func (p *pages) keep(store *cache.Store, snapshot *cache.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = slices.DeleteFunc(p.kept, func(k keptSnapshot) bool {
		return k.store == store && k.snapshot.Version() == snapshot.Version()
	})
	p.kept = append(p.kept, keptSnapshot{store, snapshot, time.Now()})
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
