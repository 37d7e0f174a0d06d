//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// hook is the receiver of a webhook.
type hook struct {
	server *http.Server
	url    string

	mu   sync.Mutex
	took figures.Histogram // from the commit at the API server
	ids  map[string]bool
	came int
	own  int // those of them that concern the users whose inboxes are followed
}

func startHook() (*hook, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &hook{url: "http://" + listener.Addr().String() + "/", ids: map[string]bool{}}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: patience}
	go func() { _ = h.server.Serve(listener) }() // ends with the server
	return h, nil
}

// ServeHTTP accepts a message.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.came++
	if id := r.Header.Get("webhook-id"); !h.ids[id] {
		h.ids[id] = true
		if m, ok := mark.Find(body); ok {
			h.took.Add(now.Sub(time.Unix(0, m.At)))
		}
		if found := owned.FindSubmatch(body); found != nil {
			if n, err := strconv.Atoi(string(found[1])); err == nil && n < followedUsers {
				h.own++
			}
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// inboxes are the streams of some users' notifications.
type inboxes struct {
	mu   sync.Mutex
	took figures.Histogram // from the commit at the API server
	came int
}

// owned finds the number of a job's owner in a message.
var owned = regexp.MustCompile(`"owner":"user-(\d+)"`)

// followedUsers is how many of the hundred users that own jobs look at their inbox.
const followedUsers = 20

// follow opens the streams, which end with the context.
func (i *inboxes) follow(ctx context.Context, r *recording) error {
	for n := range followedUsers {
		token, err := r.token(fmt.Sprintf("user-%d", n))
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Address+"/notifications?limit=0", nil)
		if err != nil {
			return err
		}
		request.Header = http.Header{"Accept": {"text/event-stream"}, "Authorization": {"Bearer " + token}}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("follow an inbox: %s", response.Status)
		}
		go func() {
			defer response.Body.Close()
			for lines := bufio.NewScanner(response.Body); lines.Scan(); {
				now := time.Now()
				if m, ok := mark.Find(lines.Bytes()); ok {
					i.mu.Lock()
					i.took.Add(now.Sub(time.Unix(0, m.At)))
					i.came++
					i.mu.Unlock()
				}
			}
		}()
	}
	return nil
}

// told measures how soon a webhook's receiver and the owner's inbox know that a job has ended.
func (b *bench) told(ctx context.Context, wanted []string) error {
	t := figures.Table{
		Title:  fmt.Sprintf("%d ends of jobs at 100/s, from the commit at the API server until a webhook's receiver has the message, and until the streams of %d inboxes have theirs", b.sizes.ends, followedUsers),
		Header: []any{"", "webhook p50 ms", "p99 ms", "longest ms", "inbox p50 ms", "p99 ms", "longest ms", "gateway's CPU ms/s", "requests"},
	}
	err := b.each(wanted, func(d *database) error {
		h, err := startHook()
		if err != nil {
			return err
		}
		defer h.server.Close()
		r, err := b.start("changing", d.address, fmt.Sprintf("webhooks: [{name: bench, url: %q}]\n", h.url))
		if err != nil {
			return err
		}
		defer r.end()
		if err := d.await(ctx, someJobs); err != nil {
			return err
		}
		following, leave := context.WithCancel(ctx)
		defer leave()
		var in inboxes
		if err := in.follow(following, r); err != nil {
			return err
		}
		before, err := process.CPU(r.Pid)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := r.source.Call("Emit", source.Emit{Rate: 100, Count: b.sizes.ends}, nil); err != nil {
			return err
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			h.mu.Lock()
			n, own := len(h.ids), h.own
			h.mu.Unlock()
			in.mu.Lock()
			came := in.came
			in.mu.Unlock()
			if n >= b.sizes.ends && came >= own || time.Now().After(deadline) || ctx.Err() != nil {
				break
			}
		}
		after, err := process.CPU(r.Pid)
		if err != nil {
			return err
		}
		leave()
		h.mu.Lock()
		defer h.mu.Unlock()
		in.mu.Lock()
		defer in.mu.Unlock()
		t.Add(d.name, figures.Milliseconds(h.took.Quantile(0.5)), figures.Milliseconds(h.took.Quantile(0.99)), figures.Milliseconds(h.took.Max),
			figures.Milliseconds(in.took.Quantile(0.5)), figures.Milliseconds(in.took.Quantile(0.99)), figures.Milliseconds(in.took.Max),
			figures.Milliseconds(after-before)/time.Since(began).Seconds(), h.came)
		t.Reach("a webhook's receiver knows with "+d.name+", p99 in ms", figures.Milliseconds(h.took.Quantile(0.99)), 2000)
		t.Reach("an owner's inbox has it with "+d.name+", p99 in ms", figures.Milliseconds(in.took.Quantile(0.99)), 1000)
		b.expect(d.name+": messages of as many ends", float64(len(h.ids)), float64(b.sizes.ends))
		b.expect(d.name+": notifications of the users who look", float64(in.came), float64(h.own))
		return nil
	})
	t.Print(b.out)
	return err
}
