//go:build linux

package main

import (
	"context"
	"io"
	"net"
	"net/http"

	"github.com/kubecast/kubecast/bench/internal/process"
)

// Ceiling shows how fast net/http itself answers under the same load. It looks at nothing in a request, and answers
// each with the same bytes as the gateway.
type Ceiling struct{}

// Answer is the answer of a Ceiling.
type Answer struct {
	Header http.Header
	Body   []byte
}

// Start listens, and returns the address.
func (*Ceiling) Start(answer Answer, address *string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	*address = listener.Addr().String()
	delete(answer.Header, "Date") // net/http adds its own
	go func() {                   // lasts as long as the process
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			header := w.Header()
			for name, values := range answer.Header {
				header[name] = values
			}
			_, _ = w.Write(answer.Body) // a client that has gone is no error
		}))
	}()
	return nil
}

// answer returns a server's answer at a path.
func (s server) answer(ctx context.Context, path string) (a Answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+path, nil)
	if err != nil {
		return a, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Authorization", "Bearer "+s.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a.Header = response.Header
	a.Body, err = io.ReadAll(response.Body)
	return a, err
}

// startCeiling starts a Ceiling that answers as a server does at a path.
func startCeiling(ctx context.Context, as server, path string) (_ *process.Child, s server, err error) {
	answer, err := as.answer(ctx, path)
	if err != nil {
		return nil, s, err
	}
	child, err := process.StartChild(ceiling)
	if err != nil {
		return nil, s, err
	}
	s = server{pid: child.Pid, token: as.token}
	if err := child.Call("Start", answer, &s.address); err != nil {
		child.Kill()
		return nil, s, err
	}
	return child, s, nil
}
