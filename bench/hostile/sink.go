//go:build linux

package main

import (
	"net"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

// Sink is a bare HTTP server for the control: it takes the hostile user's traffic, and gives as many answers and bytes
// a second as the gateway gave, but does nothing for them. The good users' delays beside it are what the traffic costs
// them because everything runs on one machine.
type Sink struct {
	perSecond *rate.Limiter
	size      int // of an answer; of streams: of each piece
	streams   bool
}

// Traffic is what the gateway gave to the hostile user.
type Traffic struct {
	Answers, Bytes float64 // per second
	Streams        bool    // no answer ends
}

// pieces is how many pieces a second a stream consists of.
const pieces = podChanges

// Start listens, and returns the address.
func (s *Sink) Start(args Traffic, address *string) error {
	s.streams = args.Streams
	if s.streams {
		s.size = int(args.Bytes / pieces / streamsOfUser)
	} else {
		s.size = int(args.Bytes / max(args.Answers, 1))
		s.perSecond = rate.NewLimiter(rate.Limit(max(args.Answers, 1)), 16)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	*address = listener.Addr().String()
	go func() { _ = http.Serve(listener, s) }() // lasts as long as the process
	return nil
}

func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.streams {
		if s.perSecond.Wait(r.Context()) == nil {
			_, _ = w.Write(make([]byte, s.size)) // a client that has gone is no error
		}
		return
	}
	control, piece := http.NewResponseController(w), make([]byte, s.size)
	tick := time.NewTicker(time.Second / pieces)
	defer tick.Stop()
	for control.Flush() == nil {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
		_, _ = w.Write(piece)
	}
}
