// Golang drives event stream clients of others that are written in Go: golang ADDRESS-OF-THE-TEST
//
// It is a module of its own, so that the gateway's does not depend on them. It gets the test's commands as JSON lines
// over one TCP connection, and ends with that connection.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
)

// command tells to open a stream, or to close one.
type command struct {
	Open   int    `json:"open"`
	Close  int    `json:"close"`
	Client string `json:"client"`
	URL    string `json:"url"`
	// Raised asks for room for events of any size, if a client has a bound of its own.
	Raised bool `json:"raised"`
}

// report is what a client did.
type report struct {
	Stream  int    `json:"stream"`
	Type    string `json:"type"` // open, event, lost, ended (by the server, and the library leaves it at that), dead
	Event   string `json:"event,omitempty"`
	ID      string `json:"id,omitempty"`
	Data    string `json:"data,omitempty"`
	Message string `json:"message,omitempty"`
}

// stream is what a client reads, and the function to which it reports.
type stream struct {
	command
	send func(report)
}

// clients are functions that run a client until the context ends, or until it gives up, and return why.
var clients = map[string]func(context.Context, stream) error{
	"launchdarkly/eventsource": runLaunchDarkly,
	"r3labs/sse":               runR3labs,
	"tmaxmax/go-sse":           runGoSSE,
}

// maxEvent is the size of raised buffers, in bytes; etcd refuses objects of more than 1.5 MiB.
const maxEvent = 8 << 20

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "golang:", err)
		os.Exit(1)
	}
}

func run(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	var (
		mu      sync.Mutex
		encoder = json.NewEncoder(conn)
		cancels = map[int]context.CancelFunc{}
	)
	send := func(r report) {
		mu.Lock()
		defer mu.Unlock()
		_ = encoder.Encode(r) // when the test has gone, reading commands fails too
	}
	decoder := json.NewDecoder(bufio.NewReader(conn))
	for {
		var c command
		switch err := decoder.Decode(&c); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case c.Close != 0:
			cancels[c.Close]()
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancels[c.Open] = cancel
		s := stream{command: c, send: func(r report) { r.Stream = c.Open; send(r) }}
		go func() { // ends with the context; at the latest with the process
			err := clients[c.Client](ctx, s)
			if ctx.Err() == nil {
				s.send(report{Type: "dead", Message: fmt.Sprint(err)})
			}
		}()
	}
}

// httpClient reports each connection, for which the libraries have no callback.
func (s stream) httpClient() *http.Client { return &http.Client{Transport: openReporter{s}} }

func (s stream) event(name, id, data string) {
	s.send(report{Type: "event", Event: name, ID: id, Data: data})
}

func (s stream) lost(err error) { s.send(report{Type: "lost", Message: fmt.Sprint(err)}) }

type openReporter struct{ stream stream }

func (o openReporter) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusOK {
		o.stream.send(report{Type: "open"})
	}
	return response, err
}
