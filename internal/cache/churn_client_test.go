package cache

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// client is a client with a filter, and the objects that it has.
type client struct {
	*world
	scope    stream.NamespaceSet
	selector Selector

	replica  int
	epoch    string
	cursor   *Cursor // nil: not connected
	position uint64  // 0: none
	knows    uint64  // up to where it was told of some changes, if not of all
	has      map[string]string
	told     map[string]bool // on this connection
}

// step takes one random action.
func (c *client) step() {
	switch n := c.IntN(10); {
	case c.cursor == nil:
		c.come()
	case n == 0:
		c.leave()
	case n == 1:
		c.read(1 + c.IntN(5)) // slow
	default:
		for c.cursor != nil && c.read(1+c.IntN(40)) {
		}
	}
}

func (c *client) leave() { c.cursor = nil }

// epochOf is the epoch that a replica gives: the cluster's, until the replica sees versions go back.
func (c *client) epochOf(i int) string {
	if n := c.replicas[i].restarts.Load(); n > 0 {
		return fmt.Sprintf("%p-%d", c.replicas[i], n)
	}
	return "cluster"
}

// come connects to some replica as the gateway's streams do: after the client's position if possible, else with a
// snapshot.
func (c *client) come() {
	if !c.restores {
		c.replica = c.IntN(len(c.replicas))
	}
	store := c.replicas[c.replica]
	if !store.Upstream().Synced {
		return
	}
	c.told = map[string]bool{}
	epoch := c.epochOf(c.replica)
	if c.position > 0 && epoch == c.epoch {
		known := stream.Known{All: c.position, Some: max(c.position, c.knows)}
		cursor, err := store.Topic().Resume(known, c.scope)
		switch {
		case err == nil:
			c.seen["resumed"]++
			c.cursor = cursor
			return
		case errors.Is(err, stream.ErrAhead) && c.position <= c.api.Version() && !c.restored:
			c.seen["ahead"]++
			if c.cursor, err = store.Topic().Ahead(known, c.scope); err == nil {
				return
			}
		}
		c.seen["expired"]++
	}
	c.seen["snapshot"]++
	snapshot := store.Snapshot()
	known := snapshot.Head.Known()
	c.cursor, c.position, c.epoch = store.Topic().From(snapshot.Head, c.scope), known.All, epoch
	c.has, c.knows = map[string]string{}, known.Some
	for o := range snapshot.List(c.scope, c.selector, "", "") {
		c.upsert(o)
	}
	c.check()
}

func (c *client) upsert(o *cluster.Object) {
	c.once("is", o)
	c.has[o.GetNamespace()+"/"+o.GetName()] = fmt.Sprintf("%s@%d", o.UID(), o.Version())
}

func (c *client) once(what string, o *cluster.Object) {
	line := fmt.Sprintf("%s %s@%d", what, o.UID(), o.Version())
	if c.told[line] {
		c.t.Errorf("a client is told twice that %s %s", o.Key(), line)
	}
	c.told[line] = true
}

// read reads one batch. It reports whether there may be more.
func (c *client) read(room int) (more bool) {
	batch, position, err := c.cursor.Next(make([]*Event, 0, room), nil)
	switch {
	case errors.Is(err, stream.ErrSlow), errors.Is(err, stream.ErrExpired):
		c.seen["slow"]++
		c.cursor, c.position = nil, 0
		return false
	case errors.Is(err, stream.ErrEpoch):
		c.seen["epoch"]++
		c.cursor, c.position = nil, 0
		return false
	case err != nil:
		c.t.Errorf("Next: %v", err)
		return false
	}
	for _, e := range batch {
		kind, o, tell := e.For(c.selector.Match())
		if tell {
			c.knows = max(c.knows, e.Pos)
		}
		switch {
		case !tell:
		case kind == stream.Deleted:
			c.once("is gone", o)
			delete(c.has, o.GetNamespace()+"/"+o.GetName())
		default:
			c.upsert(o)
		}
	}
	if position < c.position {
		c.t.Errorf("the position goes back from %d to %d", c.position, position)
	}
	c.position = position
	if len(batch) == room {
		return true
	}
	c.check()
	return false
}

// check compares what the client has with what the API server had at the client's position.
func (c *client) check() {
	if c.restored || c.knows > c.position {
		return
	}
	c.seen["checked"]++
	want := c.filtered(c.position)
	for key, version := range want {
		if c.has[key] != version {
			c.t.Errorf("at %d a client of %v has %s %q, not %q", c.position, c.scope, key, c.has[key], version)
		}
	}
	for key, version := range c.has {
		if _, there := want[key]; !there {
			c.t.Errorf("at %d a client of %v has %s %q, which is gone", c.position, c.scope, key, version)
		}
	}
}

func (c *client) filtered(version uint64) map[string]string {
	found := map[string]string{}
	for _, o := range c.at(version) {
		if (c.scope.All() || slices.Contains(c.scope.Namespaces(), o.GetNamespace())) && c.selector.Matches(o) {
			found[o.GetNamespace()+"/"+o.GetName()] = fmt.Sprintf("%s@%d", o.UID(), o.Version())
		}
	}
	return found
}

func (w *world) at(version uint64) []*cluster.Object {
	if _, known := w.past[version]; !known {
		w.past[version] = []*cluster.Object{}
		for _, text := range w.api.At("pods", version) {
			o, err := cluster.NewObject(text)
			if err != nil {
				w.t.Fatal(err)
			}
			w.past[version] = append(w.past[version], o)
		}
	}
	return w.past[version]
}
