//go:build linux

package main

import (
	"net"
	"net/http"

	"github.com/r3labs/sse/v2"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/floor"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// R3labs is a server made of github.com/r3labs/sse/v2 as its documentation shows: all clients share a stream. Its log
// of events is switched off, since it has no bound.
type R3labs struct {
	*source.Source
	server *sse.Server
}

const r3labsStream = "bench"

func newR3labs() *R3labs {
	server := sse.New()
	server.AutoReplay = false
	server.BufferSize = floor.Queued
	server.CreateStream(r3labsStream)
	return &R3labs{
		server: server,
		Source: source.New(func(m mark.Mark) {
			version := apiserver.FirstVersion + m.Seq
			server.Publish(r3labsStream, &sse.Event{
				ID:    []byte(eventID(version)),
				Event: []byte("modified"),
				Data:  object(int(m.Seq)%1000, version, m),
			})
		}),
	}
}

// Start listens, and returns the address.
func (s *R3labs) Start(_ process.None, address *string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	*address = listener.Addr().String()
	go func() { _ = http.Serve(listener, s.server) }() // lasts as long as the process
	return nil
}
