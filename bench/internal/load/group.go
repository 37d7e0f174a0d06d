//go:build linux

package load

import (
	"fmt"
	"io"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/mark"
)

// Stats are the observations of a group of clients since Begin.
type Stats struct {
	Clients int // how many there should be
	Open    int // connections that were answered and have not ended
	Error   string

	Delivered  uint64 // events, each counted once for each client
	Repeated   uint64 // events that a client already had
	Disordered uint64 // events older than one before them
	Bytes      uint64 // on the wire, heads included
	Latency    figures.Histogram

	Synced, Resets, Goodbyes uint64
	Objects                  uint64 // in snapshots

	// A client is live once it has got a change that was committed after it had connected.
	Live      int
	Lost      int               // connections that ended before that
	LiveAfter figures.Histogram // since the client connected
	LastLive  time.Time         // when the last one became live
}

// group is a set of clients that are opened, measured and closed together. The Client's mutex guards it.
type group struct {
	stats   Stats
	base    uint64        // events with lower numbers do not count
	fresh   time.Duration // nor older ones; 0: however old they are
	passed  time.Duration // between changes, of which one tells those before it; 0: it does not
	clients []*client
	closing bool            // connections that end are no failure
	shared  map[int]*shared // connections of HTTP/2, by number
}

// client is one client of a group. It outlives its connection.
type client struct {
	group     *group
	index     int
	fd        int       // -1: none
	conn      io.Closer // instead of fd, for TLS, and for answers that are compressed
	stream    stream
	connected int64 // when, in nanoseconds since 1970
	now       int64 // when the bytes came that are being read
	paused    bool
	open      bool
	live      bool
	snapshot  bool // a snapshot is coming, until synced
	seen      bitset
	newest    uint64
}

func newClient(g *group, index int) *client { return &client{group: g, index: index, fd: -1} }

// begin begins a connection.
func (c *client) begin(fd int, snapshot bool) {
	id := c.stream.id
	c.stream = stream{id: id, onHead: c.head, onEvent: c.event}
	c.fd, c.snapshot, c.live, c.paused = fd, snapshot, false, false
	c.connected = time.Now().UnixNano()
}

func (c *client) head() {
	c.open = true
	c.group.stats.Open++
}

// end ends a connection. One that was not answered as expected fails the group.
func (c *client) end(err error) {
	c.fd = -1
	if c.open {
		c.open = false
		c.group.stats.Open--
		if !c.live {
			c.group.stats.Lost++
		}
	} else if err == nil {
		err = fmt.Errorf("closed before it was answered: %q", c.stream.part)
	}
	if err != nil && !c.group.closing && c.group.stats.Error == "" {
		c.group.stats.Error = err.Error()
	}
}

// read takes bytes that came at a time.
func (c *client) read(p []byte, now int64) error {
	c.group.stats.Bytes += uint64(len(p))
	c.now = now
	return c.stream.feed(p)
}

func (c *client) event(name eventName, m mark.Mark, marked bool) {
	stats := &c.group.stats
	switch name {
	case nameSynced:
		stats.Synced++
		c.snapshot = false
	case namePage:
		if c.snapshot {
			stats.Synced++
			c.snapshot = false
		}
	case nameReset:
		stats.Resets++
		c.snapshot = true
	case nameGoodbye:
		stats.Goodbyes++
	case nameObject:
		if c.snapshot {
			stats.Objects++
			return
		}
		if marked {
			c.change(m)
		}
	}
}

func (c *client) change(m mark.Mark) {
	stats := &c.group.stats
	if m.At > c.connected && !c.live {
		c.live = true
		stats.Live++
		stats.LiveAfter.Add(time.Duration(c.now - c.connected))
		stats.LastLive = time.Unix(0, c.now)
	}
	if m.Seq < c.group.base || c.group.fresh > 0 && time.Duration(c.now-m.At) > c.group.fresh {
		return
	}
	if !c.seen.add(m.Seq - c.group.base) {
		stats.Repeated++
		return
	}
	if m.Seq < c.newest {
		stats.Disordered++
	}
	if last := max(c.newest, c.group.base-1); c.group.passed > 0 {
		for seq := last + 1; seq < m.Seq; seq++ {
			stats.Delivered++
			stats.Latency.Add(time.Duration(c.now-m.At) + time.Duration(m.Seq-seq)*c.group.passed)
		}
	}
	c.newest = max(c.newest, m.Seq)
	stats.Delivered++
	stats.Latency.Add(time.Duration(c.now - m.At))
}

// bitset is a set of small numbers.
type bitset []uint64

// add adds a number. It reports false if the set had it.
func (b *bitset) add(n uint64) bool {
	for uint64(len(*b)) <= n/64 {
		*b = append(*b, 0)
	}
	word, bit := &(*b)[n/64], uint64(1)<<(n%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}
