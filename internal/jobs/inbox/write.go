package inbox

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/jobs/wire"
)

// Write implements store.Writer: it writes what the owners of jobs want to be told of a batch.
//
// A batch without owners takes no statement. One of which nobody wants to be told takes one, to
// read what users want.
func (i *Inbox) Write(ctx context.Context, tx *store.Tx, log store.Log, b store.Batch) error {
	of := tellable(log, b)
	if len(of) == 0 {
		return nil
	}
	known, err := find(ctx, tx, slices.Sorted(maps.Keys(of)))
	if err != nil {
		return err
	}
	maps.DeleteFunc(of, func(owner string, all []*jobs.Transition) bool {
		c := chosen{digest: byDefault}
		if h := known[owner]; h != nil {
			c = h.chosen
		}
		return !slices.ContainsFunc(all, func(t *jobs.Transition) bool { return t.IsWanted(i.settings(c).wants) })
	})
	if len(of) == 0 {
		return nil
	}
	locked, err := lock(ctx, tx, slices.Sorted(maps.Keys(of)), known)
	if err != nil {
		return err
	}
	for owner, all := range of {
		h := locked[owner]
		s := i.settings(h.chosen)
		if s.Digest > 0 && h.waiting+len(all) > maxItems {
			if h.share, err = shares(ctx, tx, "inbox_waiting", owner); err != nil {
				return err
			}
		}
		for _, t := range all {
			if !t.IsWanted(s.wants) {
				continue
			}
			body, err := json.Marshal(wire.TransitionOf(t, log.People, log.Resource))
			if err != nil {
				return err
			}
			job := JobRef{Cluster: log.Cluster, Resource: log.Resource, Namespace: t.Namespace, Name: t.Name, NamespaceUID: t.NamespaceUID}
			if s.Digest > 0 {
				h.wait(s, string(t.To), job, string(body))
				continue
			}
			h.add(string(t.To), job, h.now < s.PausedUntil, 0, string(body))
			i.metrics.written.WithLabelValues(string(t.To)).Inc()
		}
	}
	return save(ctx, tx, inOrder(locked))
}

func inOrder(locked map[string]*head) []*head {
	all := make([]*head, 0, len(locked))
	for _, owner := range slices.Sorted(maps.Keys(locked)) {
		all = append(all, locked[owner])
	}
	return all
}

// tellable are the transitions of a batch that may be told, by owner.
//
// What a first start finds is told to nobody. What was found late is told only if it is the newest
// transition of its job in the batch: its owner has missed that one. Of a job that is a part of
// another one, nobody is told.
func tellable(log store.Log, b store.Batch) map[string][]*jobs.Transition {
	if log.Version == 0 {
		return nil
	}
	newest := make(map[string]*jobs.Transition, len(b.Jobs))
	for _, t := range b.Transitions {
		newest[t.UID] = t
	}
	of := map[string][]*jobs.Transition{}
	for i, t := range b.Transitions {
		if t.Owner == "" || len(t.Owner) > maxOwner || t.Late && newest[t.UID] != t || b.IsOfPart(i) {
			continue
		}
		of[t.Owner] = append(of[t.Owner], t)
	}
	return of
}
