package http

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// tcpOf is the connection of a request that has one for itself; nil if it cannot be told.
func tcpOf(r *http.Request) *net.TCPConn {
	if r.ProtoMajor != 1 {
		return nil // other answers are on it, too
	}
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	return tcpBelow(conn)
}

// patientWriter writes pieces of an answer, each under a deadline. While a client takes anything of what was written,
// the deadline is put off: the kernel accepts more only when a third of its buffer is free, which may be a megabyte,
// and take a slow client much longer than he may take nothing.
type patientWriter struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration // how long a client may take nothing
	tcp      *net.TCPConn
	outgrown func() bool // what is being sent is too old to be kept for a slow client; nil: it never is
}

// errOutgrown means that a client takes what it is sent so slowly that too much of it has been replaced since: to keep all
// of it for every such client could take any amount of memory.
var errOutgrown = errors.New("the client reads too slowly for how fast things change")

func (p *patientWriter) Write(piece []byte) (int, error) {
	if p.outgrown != nil && p.outgrown() {
		return 0, errOutgrown
	}
	if err := p.wait(); err != nil {
		return 0, err
	}
	before, known := uint64(0), false
	if p.tcp != nil {
		before, known = bytesTaken(p.tcp)
	}
	if !known {
		return p.w.Write(piece)
	}
	a := &attendant{writer: p, taken: before}
	a.begin()
	defer a.end()
	n, err := p.w.Write(piece)
	if err != nil && p.outgrown != nil && p.outgrown() {
		err = errOutgrown
	}
	return n, err
}

// wait puts the deadline off. What a client has taken is seen only some time after.
func (p *patientWriter) wait() error {
	return p.control.SetWriteDeadline(time.Now().Add(p.patience + p.interval()))
}

func (p *patientWriter) interval() time.Duration { return p.patience / 8 }

// attendant looks from time to time whether a client takes something while a write waits for him.
type attendant struct {
	writer *patientWriter

	mu    sync.Mutex
	timer *time.Timer // nil once the write has ended
	taken uint64      // when it looked last
}

func (a *attendant) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer = time.AfterFunc(a.writer.interval(), a.look)
}

func (a *attendant) look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer == nil {
		return
	}
	if a.writer.outgrown != nil && a.writer.outgrown() {
		_ = a.writer.control.SetWriteDeadline(time.Now()) // which ends the write
		return
	}
	if taken, known := bytesTaken(a.writer.tcp); known && taken != a.taken {
		a.taken = taken
		_ = a.writer.wait() // if that fails, so does the write
	}
	a.timer.Reset(a.writer.interval())
}

func (a *attendant) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer.Stop()
	a.timer = nil
}
