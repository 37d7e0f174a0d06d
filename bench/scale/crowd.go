//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// crowd is all clients. Each server's are in a process of their own, since a process may not open many more files than a
// server.
type crowd struct {
	loads  []*process.Child
	groups []*group
}

// group is clients that are at the same server, and come back at the same one if that is killed.
type group struct {
	*process.Child
	name    string
	server  int // the number of its server now
	clients int
	target  load.Target
}

// server is what a crowd's clients ask.
type server struct {
	target load.Target
	users  []load.User // one for each client; nil: the target says it
}

// newCrowd makes the clients of some servers, without connections. Those of the first server come in as many groups as there
// are other servers, so that each group can go to another one.
func newCrowd(servers []server, clients int) (_ *crowd, err error) {
	c := &crowd{}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	for i, s := range servers {
		child, err := process.StartChild("load")
		if err != nil {
			return nil, err
		}
		c.loads = append(c.loads, child)
		parts := 1
		if i == 0 {
			parts = max(len(servers)-1, 1)
		}
		left := share(clients, len(servers), i)
		users := s.users
		for part := range parts {
			g := &group{Child: child, name: fmt.Sprintf("%d/%d", i, part), server: i, clients: share(left, parts, part), target: s.target}
			if users != nil {
				g.target.Users, users = users[:g.clients], users[g.clients:]
			}
			c.groups = append(c.groups, g)
		}
	}
	return c, nil
}

// share is how many of all are the ith of some parts'.
func share(all, parts, i int) int { return all*(i+1)/parts - all*i/parts }

// at are the groups of a server.
func (c *crowd) at(server int) (groups []*group) {
	for _, g := range c.groups {
		if g.server == server {
			groups = append(groups, g)
		}
	}
	return groups
}

// each does something for each group, for all at the same time.
func each(groups []*group, do func(*group) error) error {
	var all errgroup.Group
	for _, g := range groups {
		all.Go(func() error { return do(g) })
	}
	return all.Wait()
}

// open opens all connections, each at a random moment of a time.
func (c *crowd) open(within time.Duration) error {
	return each(c.groups, func(g *group) error {
		return g.Call("Open", load.Open{Group: g.name, Clients: g.clients, Within: within, Target: g.target}, nil)
	})
}

// begin forgets the measurements before an event.
func (c *crowd) begin(seq uint64) error {
	return each(c.groups, func(g *group) error { return g.Call("Begin", load.Begin{Group: g.name, Seq: seq}, nil) })
}

// await waits until all groups are in a state, or hear nothing more, and returns what all have seen.
func await(groups []*group, what load.Await) (all load.Stats, err error) {
	stats := make([]load.Stats, len(groups))
	var waiting errgroup.Group
	for i, g := range groups {
		waiting.Go(func() error {
			what := what
			what.Group = g.name
			return g.Call("Await", what, &stats[i])
		})
	}
	err = waiting.Wait()
	for _, s := range stats {
		all.Clients += s.Clients
		all.Open += s.Open
		all.Delivered += s.Delivered
		all.Repeated += s.Repeated
		all.Disordered += s.Disordered
		all.Bytes += s.Bytes
		all.Resets += s.Resets
		all.Live += s.Live
		all.Latency.Merge(s.Latency)
		all.LiveAfter.Merge(s.LiveAfter)
		if s.LastLive.After(all.LastLive) {
			all.LastLive = s.LastLive
		}
	}
	return all, err
}

// live makes events until each client has got one.
func (c *crowd) live(emit func() error) error {
	for deadline := time.Now().Add(2 * time.Minute); ; {
		if err := emit(); err != nil {
			return err
		}
		all, err := await(c.groups, load.Await{Until: load.Live, Quiet: time.Second})
		if err != nil {
			return err
		}
		if all.Live == all.Clients {
			return nil
		}
		if all.Open < all.Clients {
			return fmt.Errorf("%d of %d connections have ended", all.Clients-all.Open, all.Clients)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d clients are live after two minutes", all.Live, all.Clients)
		}
	}
}

// move lets the clients of a server that has ended come back, each at its position, at the others.
func (c *crowd) move(from int, addresses []string, within time.Duration) error {
	groups := c.at(from)
	closed, err := await(groups, load.Await{Until: load.Closed, Quiet: 10 * time.Second})
	if err == nil && closed.Open > 0 {
		err = fmt.Errorf("%d connections to a killed server are open", closed.Open)
	}
	if err != nil {
		return err
	}
	to := from
	for _, g := range groups {
		if to++; to%len(addresses) == from {
			to++
		}
		g.server = to % len(addresses)
		g.target.Address = addresses[g.server]
	}
	return each(groups, func(g *group) error {
		return g.Call("Reopen", load.Reopen{Group: g.name, Within: within, Resume: true, Target: g.target}, nil)
	})
}

// cpu is the processor time that the clients have used.
func (c *crowd) cpu() (total time.Duration, err error) {
	for _, child := range c.loads {
		used, failed := process.CPU(child.Pid)
		total, err = total+used, errors.Join(err, failed)
	}
	return total, err
}

func (c *crowd) stop() {
	for _, child := range c.loads {
		child.Kill()
	}
}
