//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kubecast/kubecast/bench/internal/process"
)

// Attacker is the hostile user, in a process of its own. It runs only when nobody else wants to: a
// real attacker computes on another machine. Here its computing would delay the good users without
// any fault of the gateway.
type Attacker struct {
	address, token string
	client         *http.Client
	cancel         context.CancelFunc
	running        sync.WaitGroup
	patience       time.Duration // after 429
	wrong          atomic.Bool   // a request of a means was answered as malformed
	result         struct{ answered, refused, failed, bytes atomic.Int64 }
}

// Attack says what to do.
type Attack struct {
	Means          string
	Address, Token string
}

// Attacked is what an attack has come to so far.
type Attacked struct {
	Answered int64 // requests and streams that were accepted
	Refused  int64 // with a status of 4xx or 5xx
	Failed   int64 // broken off, or never answered
	Bytes    int64 // of bodies that were read
}

// hostileAddress is the hostile user's address; the good users have others.
var hostileAddress = net.IPv4(127, 0, 0, 9)

// Begin begins an attack.
func (a *Attacker) Begin(args Attack, _ *process.None) error {
	if err := process.RunLast(); err != nil {
		return err
	}
	i := findMeans(args.Means)
	if i < 0 {
		return fmt.Errorf("there is no means %q", args.Means)
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: hostileAddress}}
	a.address, a.token = args.Address, args.Token
	a.client = &http.Client{Transport: &http.Transport{
		DialContext: dialer.DialContext, MaxIdleConnsPerHost: 4096, DisableCompression: true,
	}}
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(context.Background())
	allMeans[i].run(ctx, a)
	return nil
}

// Count returns the result so far.
func (a *Attacker) Count(_ process.None, result *Attacked) error {
	*result = Attacked{a.result.answered.Load(), a.result.refused.Load(), a.result.failed.Load(), a.result.bytes.Load()}
	return nil
}

// End ends the attack.
func (a *Attacker) End(_, _ *process.None) error {
	a.cancel()
	a.running.Wait()
	if a.wrong.Load() {
		return errors.New("the gateway did not understand a request (400)")
	}
	return nil
}

// pause is the wait after a refusal before the next attempt.
const pause = 20 * time.Millisecond

// each repeats do until the attack ends, in so many goroutines.
func (a *Attacker) each(ctx context.Context, atOnce int, do func(ctx context.Context, number, round int) (ok bool)) {
	for number := range atOnce {
		a.running.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				if !do(ctx, number, round) {
					a.wait(ctx, pause)
				}
			}
		})
	}
}

func (a *Attacker) wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// get asks for a path, and reads the answer to its end.
func (a *Attacker) get(ctx context.Context, path string) bool {
	return a.ask(ctx, path, a.token, "", math.MaxInt64)
}

// stream reads an event stream to its end.
func (a *Attacker) stream(ctx context.Context, path, position string) bool {
	a.ask(ctx, path, a.token, position, math.MaxInt64)
	return false // wait a little before the next: it may have ended with a goodbye
}

// accept returns the media type for a path: events for a watch or stream, else JSON.
func accept(path string) string {
	if strings.HasPrefix(path, "/stream") || strings.Contains(path, "watch=true") {
		return "text/event-stream"
	}
	return "application/json"
}

// ask sends a request, reads so much of the answer, and closes it.
func (a *Attacker) ask(ctx context.Context, path, token, position string, read int64) bool {
	header := http.Header{"Accept": {accept(path)}}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	if position != "" {
		header.Set("Last-Event-ID", position)
	}
	return a.do(ctx, http.MethodGet, path, "", header, read)
}

// send sends a request with a body or with a header of its own, and reads the answer to its end.
func (a *Attacker) send(ctx context.Context, method, path, body string, header http.Header) bool {
	header = header.Clone()
	header.Set("Authorization", "Bearer "+a.token)
	return a.do(ctx, method, path, body, header, math.MaxInt64)
}

func (a *Attacker) do(ctx context.Context, method, path, body string, header http.Header, read int64) bool {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+a.address+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the path of the means is malformed
	}
	request.Header = header
	response, err := a.client.Do(request)
	if err != nil {
		if ctx.Err() == nil {
			a.result.failed.Add(1)
		}
		return false
	}
	defer response.Body.Close()
	if response.StatusCode >= 400 {
		_, _ = io.Copy(io.Discard, a.counted(response.Body)) // lets the connection be used again
		a.result.refused.Add(1)
		switch response.StatusCode {
		case http.StatusBadRequest:
			a.wrong.Store(true)
		case http.StatusTooManyRequests:
			a.wait(ctx, a.patience)
		}
		return false
	}
	a.result.answered.Add(1)
	_, err = io.CopyN(io.Discard, a.counted(response.Body), read)
	return err == nil || err == io.EOF
}

// counted counts what is read.
func (a *Attacker) counted(body io.Reader) io.Reader { return &counted{body, &a.result.bytes} }

type counted struct {
	io.Reader
	bytes *atomic.Int64
}

func (c *counted) Read(b []byte) (n int, err error) {
	n, err = c.Reader.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

// stall opens a connection, sends a request, and for a while reads nothing of the answer.
func (a *Attacker) stall(ctx context.Context, path string, patience time.Duration) bool {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: hostileAddress}, Control: smallBuffer}
	conn, err := dialer.DialContext(ctx, "tcp", a.address)
	if err != nil {
		if ctx.Err() == nil {
			a.result.failed.Add(1)
		}
		return false
	}
	defer conn.Close()
	if path != "" {
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\nAuthorization: Bearer %s\r\n\r\n",
			path, a.address, accept(path), a.token)
	}
	a.result.answered.Add(1)
	select {
	case <-time.After(patience):
	case <-ctx.Done():
	}
	return true
}

func smallBuffer(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
}
