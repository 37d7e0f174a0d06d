package livepage

import (
	"context"
	"hash/maphash"
	"strconv"

	"github.com/kubecast/kubecast/internal/http/eventstream"
)

// counts is the eventstream.Source of how many objects there are of each value.
type counts struct {
	source
	sum uint64 // of the counts that the client was told last
}

var seed = maphash.MakeSeed()

func (c *counts) Read(_ context.Context, to eventstream.Sink) eventstream.ReadResult {
	return c.progress(c.read(to))
}

func (c *counts) read(to eventstream.Sink) eventstream.ReadResult {
	view, outcome := c.look(to, nil)
	switch {
	case view == nil:
		return eventstream.ReadResult{Outcome: outcome}
	case view.Ref == c.told && !c.anew:
		c.tellLive(to, view)
		return eventstream.ReadResult{}
	}
	text := view.Tally.AppendJSON([]byte(`{"counts":`), c.limit)
	sum := maphash.Bytes(seed, text)
	to.Step(len(text))
	first := c.told.IsZero() || c.anew
	c.complete(view, first || sum != c.sum)
	if first || sum != c.sum {
		c.sum = sum
		text = strconv.AppendUint(append(text, `,"resourceVersion":"`...), view.Version, 10)
		c.emit(to, "counts", string(append(text, `"}`...)))
		c.tellLive(to, view)
		return eventstream.ReadResult{More: c.last, At: view.At, Outcome: to.Relay()}
	}
	c.tellLive(to, view)
	return eventstream.ReadResult{}
}
