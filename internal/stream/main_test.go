package stream

import (
	"context"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// item is an object for tests.
type item struct {
	namespace string
	name      string
	label     string
	version   uint64
	size      int
}

func (i *item) GetNamespace() string { return i.namespace }

func (i *item) GetName() string { return i.name }

func (i *item) Size() int { return max(1, i.size) }

func (i *item) WithVersion(version uint64) *item {
	moved := *i
	moved.version = version
	return &moved
}

// added is a change that adds an object.
func added(namespace string, version uint64) Change[*item] {
	return Change[*item]{Type: Added, Object: &item{namespace: namespace, version: version}}
}

var roomy = Options{Events: 1000, Bytes: 1 << 20}

// newTestTopic returns a topic that has begun at version 100.
func newTestTopic(opts Options) *Topic[*item] {
	t := NewTopic[*item](opts)
	t.Begin(100)
	return t
}

// run starts a topic; the returned function stops it, and waits until it has ended.
func run(topic *Topic[*item]) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = topic.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// versions reads a cursor to its end, a few events at a time, and returns the versions of the events.
func versions(t *testing.T, c *Cursor[*item]) (read []uint64, position uint64) {
	t.Helper()
	for {
		batch, at, err := c.Next(make([]*Event[*item], 0, 3), nil)
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		position = at
		for _, e := range batch {
			read = append(read, e.Object.version)
		}
		if len(batch) < 3 {
			return read, position
		}
	}
}

// resume calls Resume with a position that must be accepted.
func resume(t *testing.T, topic *Topic[*item], version uint64, namespaces NamespaceSet) *Cursor[*item] {
	t.Helper()
	c, err := topic.Resume(UpTo(version), namespaces)
	if err != nil {
		t.Fatalf("Resume(%d): %v", version, err)
	}
	return c
}

// Arm asks for a waiter to be woken, and reports true, unless there is something to read already. It reads nothing.
func (c *Cursor[O]) Arm(w Waiter) bool {
	c.topic.mu.Lock()
	defer c.topic.mu.Unlock()
	if c.check() != nil || c.behind() {
		return false
	}
	c.arm(w)
	return true
}

// behind reports whether there are events of the namespaces to read.
func (c *Cursor[O]) behind() bool {
	t := c.topic
	if c.namespaces.All() {
		return c.next < t.ring.next
	}
	for _, namespace := range c.namespaces.names {
		if _, ok := t.chains[namespace].after(c.next); ok {
			return true
		}
	}
	return false
}
