package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

const (
	// maxItems is how many transitions a digest has. Of more it has the number.
	maxItems = 100
	// maxShare is how many transitions of a namespace wait for a digest at most, and maxWaiting how
	// many wait in all. Others are not counted.
	maxShare, maxWaiting = 1000, 10_000
	// digestsEach is how often it is looked for digests that are due.
	digestsEach = time.Second
	// countEach is how often those that wait are counted, for the metrics.
	countEach = 15 * time.Second
	// digestsAtOnce is how many of them are looked up at once.
	digestsAtOnce = 100
)

// wait keeps a transition for the next digest.
func (h *head) wait(s Settings, kind string, of JobRef, body string) {
	if h.due == 0 {
		h.due = h.now + jobs.Time(s.Digest.Milliseconds())
	}
	if h.share != nil {
		p := where(of)
		if h.share[p] >= maxShare || h.waiting >= maxWaiting {
			return
		}
		if h.share[p]++; h.share[p] > maxItems {
			body = ""
		}
	}
	h.waiting++
	h.waits = append(h.waits, []any{h.owner, h.waiting, kind, of.Cluster, of.Resource, of.Namespace, of.Name, known(of.NamespaceUID), body})
}

// hurryUp has digests looked for at once.
func (i *Inbox) hurryUp() {
	select {
	case i.hurry <- struct{}{}:
	default:
	}
}

// makeDigests makes the digests that are due, of all replicas' users. It returns when the context has ended.
func (i *Inbox) makeDigests(ctx context.Context) {
	var counted time.Time
	var news backoff.News
	for ctx.Err() == nil {
		more, err := i.makeDue(ctx)
		if err == nil && !more {
			i.metrics.oldestDue.made(time.Now())
		}
		// Those that cannot be made are counted as well: it is they who are overdue.
		if time.Since(counted) > countEach {
			counted = time.Now()
			err = errors.Join(err, i.countDigests(ctx))
		}
		switch {
		case err == nil:
			news.Over()
		case ctx.Err() == nil && news.Is(err):
			i.opts.Log.Warn("digests of notifications are not made for now", "error", err)
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-i.hurry:
		case <-time.After(digestsEach):
		}
	}
}

// makeDue makes some of the digests that are due; more says that there may be others.
func (i *Inbox) makeDue(ctx context.Context) (more bool, err error) {
	var owners []string
	err = i.ask(ctx, "look for digests", func(ctx context.Context) error {
		owners, err = i.owners(ctx, "SELECT owner FROM inbox_heads WHERE due > 0 AND due <= "+i.store.Now()+" ORDER BY due LIMIT ?", digestsAtOnce)
		return err
	})
	if err != nil {
		return false, err
	}
	for _, owner := range owners {
		if err := i.ask(ctx, "make a digest", func(ctx context.Context) error { return i.makeDigest(ctx, owner) }); err != nil {
			return false, err
		}
	}
	if len(owners) > 0 {
		i.Wake()
	}
	return len(owners) == digestsAtOnce, nil
}

// countDigests tells the metrics of the digests that wait.
func (i *Inbox) countDigests(ctx context.Context) error {
	return i.ask(ctx, "count digests", func(ctx context.Context) error {
		var waiting, overdue int64
		err := i.store.QueryRow(ctx, "SELECT COUNT(*), COALESCE("+i.store.Now()+" - MIN(due), 0) FROM inbox_heads WHERE due > 0").Scan(&waiting, &overdue)
		if err == nil {
			i.metrics.waiting.Set(float64(waiting))
			i.metrics.oldestDue.found(waiting > 0, time.Now().Add(-time.Duration(overdue)*time.Millisecond))
		}
		return err
	})
}

func (i *Inbox) owners(ctx context.Context, query string, args ...any) (owners []string, err error) {
	err = i.store.Each(ctx, func(scan store.Scan) error {
		var owner string
		err := scan(&owner)
		owners = append(owners, owner)
		return err
	}, query, args...)
	return owners, err
}

// waitingFor is what waits for a digest: rows that it may tell of, and others, which are only counted.
type waitingFor struct {
	n     int // all rows up to this number are among these
	items []row
	more  map[counted]int
}

func (w *waitingFor) count(r row) {
	w.more[counted{Cluster: r.job.Cluster, Resource: r.job.Resource, Namespace: r.job.Namespace, NamespaceUID: r.job.NamespaceUID, State: r.kind}]++
}

// read reads up to so many rows that follow those that were read before.
func (w *waitingFor) read(ctx context.Context, from interface {
	Each(context.Context, func(store.Scan) error, string, ...any) error
}, owner string, most int) (read int, err error) {
	err = from.Each(ctx, func(scan store.Scan) error {
		var r row
		if err := scan(&w.n, &r.kind, &r.job.Cluster, &r.job.Resource, &r.job.Namespace, &r.job.Name, &r.job.NamespaceUID, &r.body); err != nil {
			return err
		}
		if read++; r.body == "" {
			w.count(r)
		} else {
			w.items = append(w.items, r)
		}
		return nil
	}, "SELECT n, kind, cluster, resource, namespace, name, COALESCE(namespace_uid, ''), body FROM inbox_waiting WHERE owner = ? AND n > ? ORDER BY n LIMIT ?", owner, w.n, most)
	return read, err
}

// makeDigest makes a notification of what waits. It is read before anything is locked; only what
// has come since is read then. If another replica was quicker, nothing is made.
func (i *Inbox) makeDigest(ctx context.Context, owner string) error {
	before, err := headOf(ctx, i.store, owner)
	if err != nil {
		return err
	}
	waits := waitingFor{more: map[counted]int{}}
	for read := atOnce; read == atOnce; {
		if read, err = waits.read(ctx, i.store, owner, atOnce); err != nil {
			return err
		}
	}
	return i.store.Transact(ctx, func(tx *store.Tx) error {
		h, err := lockOne(ctx, tx, owner)
		if err != nil || h == nil || h.due != before.due || h.due == 0 || h.due > h.now {
			return err
		}
		all := waitingFor{waits.n, slices.Clone(waits.items), maps.Clone(waits.more)} // the transaction may be done again
		if _, err := all.read(ctx, tx, owner, maxWaiting); err != nil {
			return err
		}
		return i.tell(ctx, tx, h, &all)
	})
}

// tell writes a digest.
func (i *Inbox) tell(ctx context.Context, tx *store.Tx, h *head, all *waitingFor) error {
	var d digest
	var first row
	chosen := chosenOf(all.items, maxItems)
	for n, r := range all.items {
		if !chosen[n] {
			all.count(r)
			continue
		}
		first = r
		d.Items = append(d.Items, digested{r.job.Cluster, json.RawMessage(r.body)})
	}
	silent := int64(h.now) < h.chosen.paused
	switch {
	case len(d.Items) == 1:
		h.add(first.kind, first.job, silent, 0, first.body)
	case len(d.Items) > 1:
		for of, n := range all.more {
			of.N = n
			d.More = append(d.More, of)
		}
		body, err := json.Marshal(d)
		if err != nil {
			return err
		}
		first.kind = kindDigest
		h.add(kindDigest, JobRef{}, silent, 0, string(body))
	}
	if len(h.rows) > 0 {
		i.metrics.written.WithLabelValues(first.kind).Inc()
	}
	if _, err := tx.Exec(ctx, "DELETE FROM inbox_waiting WHERE owner = ?", h.owner); err != nil {
		return err
	}
	h.due, h.waiting = 0, 0
	return save(ctx, tx, []*head{h})
}
