//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/bench/internal/mark"
)

// client is one stream of a user. Like a browser, it keeps the objects that it was told of.
type client struct {
	bench *bench
	user  *user
	views map[string]*view // by the name of the watch; "" on a stream of one watch
	conn  net.Conn
	done  chan struct{} // closed when the reader has ended

	resets  atomic.Int64
	closing atomic.Bool

	mu  sync.Mutex // guards the views and err
	err error      // why the stream ended
}

// view is what a client has of one watch.
type view struct {
	synced  bool
	sees    set
	told    []telling
	objects map[string]uint64 // by namespace and name: the number of the last change
	events  int               // events that added, changed or deleted an object
	foreign int               // those of them that were of what may not be seen
}

// telling is when a client was told what may be seen.
type telling struct {
	at   time.Time
	sees set
}

const (
	onePath = "/api/v1/pods"
	twoPath = "/stream?pods=/api/v1/pods&maps=/api/v1/configmaps"
)

// open opens all streams, and returns when they are synced.
func (b *bench) open(ctx context.Context) error {
	for _, u := range b.people {
		for i := range b.streams {
			c := &client{bench: b, user: u, views: map[string]*view{}, done: make(chan struct{})}
			names := []string{""}
			if i == 0 {
				names = []string{"pods", "maps"}
			}
			for _, name := range names {
				c.views[name] = &view{objects: map[string]uint64{}}
			}
			b.clients = append(b.clients, c)
		}
	}
	if err := each(ctx, len(b.clients), func(ctx context.Context, number int) error {
		return b.clients[number].open(ctx)
	}); err != nil {
		return err
	}
	return b.await(time.Minute, (*client).isSynced)
}

// close ends all streams.
func (b *bench) close() {
	for _, c := range b.clients {
		c.closing.Store(true)
		_ = c.conn.Close() // its reader ends, too
		<-c.done
	}
}

// await waits until something is true of each client.
func (b *bench) await(within time.Duration, is func(*client) error) error {
	deadline := time.Now().Add(within)
	for _, c := range b.clients {
		for {
			c.mu.Lock()
			err := errors.Join(c.err, is(c))
			ended := c.err != nil
			c.mu.Unlock()
			if err == nil {
				break
			}
			if ended || time.Now().After(deadline) {
				return fmt.Errorf("a stream of %s: %w", c.user.name, err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

// isSynced returns nil if all views are synced. The caller holds the lock.
func (c *client) isSynced() error {
	for name, v := range c.views {
		if !v.synced {
			return fmt.Errorf("watch %q is not synced", name)
		}
	}
	return nil
}

func (c *client) open(ctx context.Context) (err error) {
	path := onePath
	if len(c.views) > 1 {
		path = twoPath
	}
	address := c.bench.gateway.Address
	if c.conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address); err != nil {
		return err
	}
	request := "GET " + path + " HTTP/1.1\r\nHost: " + address + "\r\nAccept: text/event-stream\r\nAuthorization: Bearer " + c.user.token + "\r\n\r\n"
	if _, err := io.WriteString(c.conn, request); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(c.conn), nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	go c.read(response.Body)
	return nil
}

// longest bounds a line of a stream, in bytes: a pod, and some more.
const longest = 16 << 10

func (c *client) read(body io.ReadCloser) {
	defer close(c.done)
	defer body.Close()
	lines := bufio.NewReaderSize(body, longest)
	var event string
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			c.end(err)
			return
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		if name, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			event = string(name)
		} else if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			if err := c.event(event, data); err != nil {
				c.end(err)
				return
			}
		}
	}
}

func (c *client) end(err error) {
	if c.closing.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = fmt.Errorf("the stream has ended: %w", err)
}

func (c *client) event(name string, data []byte) error {
	now := time.Now()
	watch, kind, named := strings.Cut(name, ".")
	if !named {
		watch, kind = "", name
	}
	if kind == "goodbye" {
		return fmt.Errorf("goodbye %s", data)
	}
	v := c.views[watch]
	if v == nil {
		return nil // expiring
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch kind {
	case "synced":
		v.synced = true
	case "reset":
		c.resets.Add(1)
		v.synced = false
		clear(v.objects)
	case "narrowed", "widened":
		sees, err := visible(data)
		if err != nil {
			return err
		}
		v.sees = sees
		v.told = append(v.told, telling{now, sees})
	case "added", "modified", "deleted":
		return c.object(v, kind, data, now)
	}
	return nil
}

// object takes an event of an object. All that it needs is at the beginning of the data, and the rest is not parsed:
// a thousand clients share the machine with what is measured.
func (c *client) object(v *view, kind string, data []byte, now time.Time) error {
	namespace, name := text(data, `"namespace":"`), text(data, `"metadata":{"name":"`)
	number, err := strconv.Atoi(strings.TrimPrefix(string(namespace), "team-"))
	if len(name) == 0 || err != nil && string(namespace) != "" && v.sees.has(number) {
		return fmt.Errorf("%s of an object without a name: %.200s", kind, data)
	}
	v.events++
	key := string(namespace) + "/" + string(name)
	if kind == "deleted" {
		delete(v.objects, key)
		return nil
	}
	if err != nil || !v.sees.has(number) {
		v.foreign++
	}
	m, marked := mark.Find(data)
	if marked && kind == "modified" && c.user.bystander {
		c.bench.ledger.delivered(now.Sub(time.Unix(0, m.At)))
	}
	v.objects[key] = m.Seq
	return nil
}

// text returns what follows the first occurrence of beginning, up to the next quote.
func text(data []byte, beginning string) []byte {
	_, rest, _ := bytes.Cut(data, []byte(beginning))
	found, _, _ := bytes.Cut(rest, []byte{'"'})
	return found
}

func visible(data []byte) (set, error) {
	var told struct {
		Namespaces []string            `json:"namespaces"`
		Names      map[string][]string `json:"names"`
		All        bool                `json:"all"`
	}
	if err := json.Unmarshal(data, &told); err != nil {
		return 0, err
	}
	if told.All || len(told.Names) > 0 {
		return 0, fmt.Errorf("more may be seen than anybody was given: %s", data)
	}
	var sees set
	for _, name := range told.Namespaces {
		number, err := strconv.Atoi(strings.TrimPrefix(name, "team-"))
		if err != nil {
			return 0, fmt.Errorf("%s: %w", data, err)
		}
		sees |= 1 << number
	}
	return sees, nil
}
