package stream_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/kubecast/kubecast/internal/stream"
)

// pod is the least that a topic carries.
type pod struct {
	namespace, name string
	version         uint64
}

func (p pod) GetNamespace() string     { return p.namespace }
func (p pod) GetName() string          { return p.name }
func (p pod) Size() int                { return len(p.namespace) + len(p.name) }
func (p pod) WithVersion(v uint64) pod { p.version = v; return p }
func added(p pod) stream.Change[pod]   { return stream.Change[pod]{Type: stream.Added, Object: p} }
func modified(old pod) stream.Change[pod] {
	return stream.Change[pod]{Type: stream.Modified, Object: old, Old: old}
}

// A reader goes on where it was; whoever was away for longer than the ring reaches back is told so,
// and never misses something in silence.
func ExampleTopic() {
	topic := stream.NewTopic[pod](stream.Options{Events: 3, Bytes: 1 << 20, Gather: time.Millisecond})
	topic.Begin(10) // the version of the list
	topic.Append(11, added(pod{"team-a", "trainer-0", 11}))
	topic.Append(12, added(pod{"team-b", "server", 12}))

	reader, err := topic.Resume(stream.UpTo(10), stream.Namespaces("team-a"))
	if err != nil {
		fmt.Println(err)
		return
	}
	batch, position, err := reader.Next(make([]*stream.Event[pod], 0, 16), nil)
	for _, e := range batch {
		fmt.Println(e.Type, e.Object.name, "at", e.Pos)
	}
	fmt.Println("told up to", position, err)

	for version := range uint64(4) {
		topic.Append(13+version, modified(pod{"team-b", "server", 13 + version}))
	}
	_, err = topic.Resume(stream.UpTo(11), stream.AllNamespaces())
	fmt.Println("too far back:", errors.Is(err, stream.ErrExpired))
	// Output:
	// added trainer-0 at 11
	// told up to 12 <nil>
	// too far back: true
}
