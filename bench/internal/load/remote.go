//go:build linux

package load

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// Open says which group of clients to open.
type Open struct {
	Group   string
	Clients int
	Within  time.Duration // each connects at a random moment of this time
	Target  Target
}

// patience bounds each wait, whatever else comes in the meantime.
const patience = 2 * time.Minute

// dialers is how many connections are opened at the same time.
const dialers = 32

// Open opens a group's connections, and returns when all are answered.
func (c *Client) Open(args Open, _ *process.None) error {
	g := &group{base: 1}
	g.stats.Clients = args.Clients
	for i := range args.Clients {
		g.clients = append(g.clients, newClient(g, i))
	}
	c.mu.Lock()
	if c.groups[args.Group] != nil {
		c.mu.Unlock()
		return fmt.Errorf("group %s is open already", args.Group)
	}
	c.groups[args.Group] = g
	c.mu.Unlock()
	return c.connect(g, args.Target, args.Within, false)
}

// Reopen says which group to open again after its connections have ended.
type Reopen struct {
	Group  string
	Within time.Duration
	Resume bool // go on at each client's position, with Last-Event-ID
	Target Target
}

// Reopen opens a group's connections again, and returns when all are answered.
func (c *Client) Reopen(args Reopen, _ *process.None) error {
	c.mu.Lock()
	g, err := c.group(args.Group)
	if err == nil && g.stats.Open > 0 {
		err = fmt.Errorf("%d connections have not ended", g.stats.Open)
	}
	if err == nil {
		g.stats.Live, g.stats.Lost, g.stats.LiveAfter, g.stats.Bytes = 0, 0, figures.Histogram{}, 0
		g.closing, g.shared = false, nil
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.connect(g, args.Target, args.Within, args.Resume)
}

func (c *Client) connect(g *group, target Target, within time.Duration, resume bool) error {
	var dialing sync.WaitGroup
	failed := make(chan error, len(g.clients))
	turn := make(chan struct{}, dialers)
	for _, reader := range g.clients {
		dialing.Go(func() {
			if within > 0 {
				time.Sleep(rand.N(within))
			}
			turn <- struct{}{}
			defer func() { <-turn }()
			id := ""
			if resume {
				id = string(reader.stream.id) // the ended connection is not being read any more
			}
			if err := c.connectOne(reader, target, id, target.Snapshot && !resume); err != nil {
				failed <- err
			}
		})
	}
	dialing.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	return c.await(g, patience, func(s *Stats) bool { return s.Open+s.Lost >= s.Clients })
}

func (c *Client) connectOne(reader *client, target Target, id string, snapshot bool) error {
	if target.HTTP2 > 0 {
		return c.addHTTP2(reader, target, id, snapshot)
	}
	if target.TLS {
		conn, err := connectTLS(target, target.request(reader.index, id))
		if err != nil {
			return err
		}
		c.mu.Lock()
		reader.begin(-1, snapshot)
		reader.conn = conn
		c.mu.Unlock()
		go c.readAll(reader, conn, conn)
		return nil
	}
	fd, err := connect(target, reader.index, target.request(reader.index, id))
	if err != nil {
		return err
	}
	if target.Coding != "" && !target.Raw {
		return c.addCoded(reader, fd, snapshot)
	}
	return c.add(reader, fd, snapshot, target.Raw)
}

// group returns a group by its name. The caller holds the lock.
func (c *Client) group(name string) (*group, error) {
	if g := c.groups[name]; g != nil {
		return g, nil
	}
	return nil, fmt.Errorf("there is no group %s", name)
}

// Begin says where a measurement begins.
type Begin struct {
	Group string
	Seq   uint64 // number of the first event that counts
	// Fresh is how old a change may be that counts; 0: any. On a live page appears what has changed
	// long before, when another object leaves.
	Fresh time.Duration
	// Passed is how long after each other changes are made, if a client that is told one is told with it those that
	// it was not told before; 0: it is not.
	Passed time.Duration
}

// Begin forgets the measurements before.
func (c *Client) Begin(args Begin, _ *process.None) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.group(args.Group)
	if err != nil {
		return err
	}
	g.base, g.fresh, g.passed = args.Seq, args.Fresh, args.Passed
	g.stats = Stats{Clients: g.stats.Clients, Open: g.stats.Open, Error: g.stats.Error, Live: g.stats.Live, Lost: g.stats.Lost}
	for _, reader := range g.clients {
		clear(reader.seen)
		reader.newest = 0
	}
	return nil
}

// Await says what to wait for.
type Await struct {
	Group string
	Until Condition
	Count uint64        // for Delivered: events for each client
	Quiet time.Duration // give up once nothing has come for so long
}

// Condition is a state of a group for which Await can wait.
type Condition int

// The conditions.
const (
	Delivered Condition = iota // each client has so many events
	Live                       // all clients are live, or have lost their connection
	Closed                     // all connections have ended
	Synced                     // each has a whole snapshot
)

// Await waits for a condition. It returns the observations, whether the condition has come true or not.
func (c *Client) Await(args Await, reply *Stats) error {
	c.mu.Lock()
	g, err := c.group(args.Group)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	err = c.await(g, args.Quiet, func(s *Stats) bool {
		switch args.Until {
		case Delivered:
			return s.Delivered >= args.Count*uint64(s.Clients)
		case Live:
			return s.Live+s.Lost >= s.Clients
		case Synced:
			return s.Synced >= uint64(s.Clients)
		default:
			return s.Open == 0
		}
	})
	if err != nil && !errors.Is(err, errQuiet) {
		return err
	}
	return c.Stats(args.Group, reply)
}

var errQuiet = errors.New("the server says no more")

func (c *Client) await(g *group, quiet time.Duration, done func(*Stats) bool) error {
	var bytes uint64
	var open int
	began := time.Now()
	last := began
	for {
		c.mu.Lock()
		s := g.stats
		c.mu.Unlock()
		switch {
		case s.Error != "":
			return errors.New(s.Error)
		case done(&s):
			return nil
		case s.Bytes != bytes || s.Open != open:
			bytes, open, last = s.Bytes, s.Open, time.Now()
		case time.Since(last) > quiet, time.Since(began) > patience:
			return fmt.Errorf("%w: %d of %d connections are open", errQuiet, s.Open, s.Clients)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Stats returns the observations of a group.
func (c *Client) Stats(name string, reply *Stats) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.group(name)
	if err != nil {
		return err
	}
	*reply = g.stats
	reply.Latency.Counts = append([]uint32(nil), g.stats.Latency.Counts...) // a copy, since it is encoded without the lock
	reply.LiveAfter.Counts = append([]uint32(nil), g.stats.LiveAfter.Counts...)
	return nil
}

// Pause makes a group's clients stop reading, with their connections open.
func (c *Client) Pause(name string, _ *process.None) error {
	return c.each(name, func(reader *client) error {
		if reader.fd < 0 || reader.paused {
			return nil
		}
		reader.paused = true
		return c.watch(syscall.EPOLL_CTL_DEL, reader.fd)
	})
}

// Resume makes paused clients read again.
func (c *Client) Resume(name string, _ *process.None) error {
	return c.each(name, func(reader *client) error {
		if reader.fd < 0 || !reader.paused {
			return nil
		}
		reader.paused = false
		return c.watch(syscall.EPOLL_CTL_ADD, reader.fd)
	})
}

// Leave ends a group's connections, so that it can be opened again.
func (c *Client) Leave(name string, _ *process.None) error {
	return c.each(name, func(reader *client) error {
		reader.group.closing = true
		if reader.fd >= 0 || reader.conn != nil {
			c.drop(reader, nil)
		}
		return nil
	})
}

// Close closes and forgets a group.
func (c *Client) Close(name string, none *process.None) error {
	err := c.Leave(name, none)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, name)
	return err
}

func (c *Client) each(name string, do func(*client) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.group(name)
	if err != nil {
		return err
	}
	for _, reader := range g.clients {
		if err := do(reader); err != nil {
			return err
		}
	}
	return nil
}
