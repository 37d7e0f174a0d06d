//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// Clients is many clients of one stream, which come back as an EventSource does. The parent process calls its exported methods.
type Clients struct {
	mu     sync.Mutex
	all    []*client
	counts Counts
	away   []time.Duration
	late   figures.Histogram
}

// Counts is what the clients have seen since they began.
type Counts struct {
	Live                  int // that have a stream
	Lost, Repeated, Reset int
	Failed                int    // attempts that brought no stream
	Why                   string // the last of these did not
	Least                 uint64 // the newest event that all have
}

// Open says which clients to begin.
type Open struct {
	Address, Path string
	Clients       int
	PerSecond     int
}

// client is one client. Only its goroutine uses it, but for last and live, which Clients.mu guards.
type client struct {
	of       *Clients
	number   int
	open     Open
	last     uint64 // the number of the newest event
	live     bool
	position string
	synced   bool
	retry    time.Duration
	gone     time.Time // since when it has no stream; zero: it has one, or never had
}

// Open begins clients, and returns when the last has begun to connect.
func (c *Clients) Open(args Open, _ *process.None) error {
	for i := range args.Clients {
		one := &client{of: c, number: i, open: args, retry: 2 * time.Second}
		c.mu.Lock()
		c.all = append(c.all, one)
		c.mu.Unlock()
		go one.run()
		time.Sleep(time.Second / time.Duration(args.PerSecond))
	}
	return nil
}

// Counts returns what was seen.
func (c *Clients) Counts(_ process.None, counts *Counts) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*counts = c.counts
	counts.Least = ^uint64(0)
	for _, one := range c.all {
		counts.Least = min(counts.Least, one.last)
		if one.live {
			counts.Live++
		}
	}
	return nil
}

// Away returns for how long clients were without a stream, of each time that ended since it was asked last.
func (c *Clients) Away(_ process.None, all *[]time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*all, c.away = c.away, nil
	slices.Sort(*all)
	return nil
}

// Late returns how long after it was made each change came, of those that came since it was asked last.
func (c *Clients) Late(_ process.None, late *figures.Histogram) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*late, c.late = c.late, figures.Histogram{}
	return nil
}

func (c *client) run() {
	for {
		came, err := c.connection()
		if !came {
			c.of.mu.Lock()
			c.of.counts.Why = fmt.Sprint(err)
			c.of.counts.Failed++
			c.of.mu.Unlock()
		}
		time.Sleep(c.retry)
	}
}

// connection is one connection. It reports whether a stream came.
func (c *client) connection() (came bool, err error) {
	// Each has an address of its own, as users have.
	from := &net.TCPAddr{IP: net.IPv4(127, 1, byte(c.number/250), byte(1+c.number%250))}
	conn, err := (&net.Dialer{LocalAddr: from, Timeout: 10 * time.Second}).Dial("tcp", c.open.Address)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: gateway.test\r\nAccept: text/event-stream\r\n", c.open.Path)
	if c.position != "" {
		request += "Last-Event-ID: " + c.position + "\r\n"
	}
	if _, err := conn.Write([]byte(request + "\r\n")); err != nil {
		return false, err
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(conn, 2<<10), nil)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%s", response.Status)
	}
	defer c.setLive(false)
	return c.read(bufio.NewReaderSize(response.Body, 2<<10))
}

// read reads events to the stream's end.
func (c *client) read(body *bufio.Reader) (came bool, err error) {
	var event, id string
	var data []byte
	for {
		line, err := body.ReadSlice('\n')
		if err != nil {
			return came, err
		}
		name, value, _ := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(": "))
		switch string(name) {
		case "event":
			event = string(value)
		case "id":
			id = string(value)
		case "data":
			data = append(data[:0], value...)
		case "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil {
				c.retry = time.Duration(ms) * time.Millisecond
			}
		case "":
			if event != "goodbye" && !came { // an answer that only says goodbye is no stream
				came = true
				c.setLive(true)
			}
			if id != "" {
				c.position = id
			}
			c.take(event, data)
			event, id, data = "", "", data[:0]
		}
	}
}

// take takes note of an event.
func (c *client) take(event string, data []byte) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	switch event {
	case "synced":
		c.synced = true
	case "reset":
		if c.synced {
			c.of.counts.Reset++
		}
	case "added", "modified":
		m, ok := mark.Find(data)
		switch {
		case !ok:
		case !c.synced:
			c.last = max(c.last, m.Seq)
		case m.Seq <= c.last:
			c.of.counts.Repeated++
		default:
			c.of.counts.Lost += int(m.Seq - c.last - 1)
			c.last = m.Seq
			c.of.late.Add(time.Since(time.Unix(0, m.At)))
		}
	}
}

func (c *client) setLive(live bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	switch {
	case live && !c.gone.IsZero():
		c.of.away = append(c.of.away, time.Since(c.gone))
		c.gone = time.Time{}
	case !live && c.live:
		c.gone = time.Now()
	}
	c.live = live
}
