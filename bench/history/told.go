//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
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
	}
	w.WriteHeader(http.StatusNoContent)
}

// told measures how soon a webhook's receiver knows that a job has ended.
func (b *bench) told(ctx context.Context, wanted []string) error {
	t := figures.Table{
		Title:  fmt.Sprintf("%d ends of jobs at 100/s, from the commit at the API server until a webhook's receiver has the message", b.sizes.ends),
		Header: []any{"", "p50 ms", "p99 ms", "longest ms", "gateway's CPU ms/s", "requests"},
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
			n := len(h.ids)
			h.mu.Unlock()
			if n >= b.sizes.ends || time.Now().After(deadline) || ctx.Err() != nil {
				break
			}
		}
		after, err := process.CPU(r.Pid)
		if err != nil {
			return err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		t.Add(d.name, figures.Milliseconds(h.took.Quantile(0.5)), figures.Milliseconds(h.took.Quantile(0.99)), figures.Milliseconds(h.took.Max),
			figures.Milliseconds(after-before)/time.Since(began).Seconds(), h.came)
		t.Reach("a webhook's receiver knows with "+d.name+", p99 in ms", figures.Milliseconds(h.took.Quantile(0.99)), 2000)
		b.expect(d.name+": messages of as many ends", float64(len(h.ids)), float64(b.sizes.ends))
		return nil
	})
	t.Print(b.out)
	return err
}
