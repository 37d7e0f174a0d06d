//go:build linux

package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
)

// between is how long a probe waits from one request to the next.
const between = 10 * time.Millisecond

// probe asks for the same again and again, and measures how long answers take.
type probe struct {
	url    string
	client *http.Client

	mu    sync.Mutex
	taken figures.Histogram
	err   error
}

// probes ask until they are stopped.
func probes(urls ...string) (all []*probe, stop func() error) {
	ended := make(chan struct{})
	var asking sync.WaitGroup
	for _, url := range urls {
		p := &probe{url: url, client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}}
		all = append(all, p)
		asking.Go(func() {
			defer p.client.CloseIdleConnections()
			for ticks := time.NewTicker(between); ; {
				select {
				case <-ended:
					ticks.Stop()
					return
				case <-ticks.C:
					p.ask()
				}
			}
		})
	}
	return all, func() error {
		close(ended)
		asking.Wait()
		for _, p := range all {
			if p.err != nil {
				return p.err
			}
		}
		return nil
	}
}

func (p *probe) ask() {
	began := time.Now()
	response, err := p.client.Get(p.url)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", p.url, response.Status)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.err == nil {
		p.err = err
	}
	p.taken.Add(time.Since(began))
}
