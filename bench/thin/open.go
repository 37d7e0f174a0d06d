//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
)

const (
	tableForm = "application/json;as=Table;v=v1;g=meta.k8s.io"
	streams   = "text/event-stream"
	// columns are the fields of a table with some columns, as the portal asks for.
	columns = "metadata.creationTimestamp,metadata.labels,metadata.ownerReferences,spec.nodeName,status.phase,status.reason,status.containerStatuses.state,status.containerStatuses.restartCount"
)

// forms are what a client may ask for.
var forms = []struct{ name, path, accept string }{
	{"list", listPath, "application/json"},
	{"list, fields", listPath + "?fields=" + columns, "application/json"},
	{"list, Table", listPath, tableForm},
	{"list, first 500", listPath + "?limit=500", "application/json"},
	{"stream", listPath, streams},
	{"stream, fields", listPath + "?fields=" + columns, streams},
	{"live page of 50", listPath + "?limit=50&sort=-metadata.creationTimestamp", streams},
}

var codings = []string{"", "gzip", "zstd"}

// opened is what it took to open something once.
type opened struct {
	sent, decoded    int64
	firstRows, whole time.Duration
	cpu              time.Duration // of the gateway
}

// open measures what one client takes to open all pods, for the first time and again.
func (b *bench) open() error {
	s, err := b.start()
	if err != nil {
		return err
	}
	defer s.stop()
	t := figures.Table{
		Title: fmt.Sprintf("one client opens %d pods, on loopback; first, and the median of %d times again", b.sizes.pods, b.opens),
		Header: []any{"", "coding", "MB sent", "share of bytes", "10 Mbit/s: s", "first rows ms", "all ms", "gateway's CPU ms",
			"again: first rows ms", "all ms", "gateway's CPU ms"},
	}
	for _, form := range forms {
		for _, coding := range codings {
			first, err := s.open(form.path, form.accept, coding)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", form.name, coding, err)
			}
			var again []opened
			for range b.opens {
				next, err := s.open(form.path, form.accept, coding)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", form.name, coding, err)
				}
				again = append(again, next)
			}
			of := func(read func(opened) time.Duration) float64 {
				return figures.MedianOf(again, func(o opened) float64 { return figures.Milliseconds(read(o)) })
			}
			t.Add(form.name, codingName(coding), float64(first.sent)/1e6, float64(first.sent)/float64(first.decoded), float64(first.sent)*8/10e6,
				figures.Milliseconds(first.firstRows), figures.Milliseconds(first.whole), figures.Milliseconds(first.cpu),
				of(func(o opened) time.Duration { return o.firstRows }), of(func(o opened) time.Duration { return o.whole }),
				of(func(o opened) time.Duration { return o.cpu }))
			if form.name == "list" && coding == "zstd" {
				t.Reach("share of a list's bytes that is sent, zstd", float64(first.sent)/float64(first.decoded), 0.1)
			}
		}
	}
	t.Note("first rows: 64 KiB are decoded; first and all include decoding by this client; 10 Mbit/s: what the bytes alone take on such a line")
	t.Note("a stream is all there with `synced`, a live page with its first `page`; a stream whose coding was not taken is sent plain")
	t.Print(b.out)
	return nil
}

func codingName(coding string) string {
	if coding == "" {
		return "plain"
	}
	return coding
}

// open asks for something once, and reads until all is there.
func (s *server) open(path, accept, coding string) (o opened, err error) {
	request, err := http.NewRequest(http.MethodGet, "http://"+s.gateway.Address+path, nil)
	if err != nil {
		return o, err
	}
	request.Header.Set("Accept", accept)
	if coding != "" {
		request.Header.Set("Accept-Encoding", coding)
	}
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	before, err := process.CPU(s.Pid)
	if err != nil {
		return o, err
	}
	began := time.Now()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return o, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return o, fmt.Errorf("%s", response.Status)
	}
	wire := &counter{from: response.Body}
	response.Body = io.NopCloser(wire)
	body, end, err := load.Decoded(response)
	if err != nil {
		return o, err
	}
	defer end()
	rows := &counter{from: body, threshold: 64 << 10}
	if accept == streams {
		err = untilTold(rows)
	} else {
		_, err = io.Copy(io.Discard, rows)
	}
	if err != nil {
		return o, err
	}
	o.whole, o.sent, o.decoded = time.Since(began), wire.n, rows.n
	if o.firstRows = o.whole; !rows.reached.IsZero() {
		o.firstRows = rows.reached.Sub(began)
	}
	after, err := process.CPU(s.Pid)
	o.cpu = after - before
	return o, err
}

// untilTold reads a stream until it says that all was told.
func untilTold(stream io.Reader) error {
	lines := bufio.NewReaderSize(stream, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull { // the rest of a long line
			return fmt.Errorf("before all was told: %w", err)
		}
		if bytes.HasPrefix(line, []byte("event: synced")) || bytes.HasPrefix(line, []byte("event: page")) {
			return nil
		}
	}
}

// counter counts what is read, and says when a threshold was reached.
type counter struct {
	from      io.Reader
	n         int64
	threshold int64
	reached   time.Time
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	if c.reached.IsZero() && c.threshold > 0 && c.n >= c.threshold {
		c.reached = time.Now()
	}
	return n, err
}
