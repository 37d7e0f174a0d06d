package conn

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// PatientWriter writes pieces of an answer, each under a deadline. While the client takes anything of what was
// written, the deadline is put off. That is necessary because the kernel accepts more only when a third of its buffer
// is free. This may be a megabyte, and a slow client may need much longer for it than it may take nothing.
type PatientWriter struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration // how long a client may take nothing
	tcp      *net.TCPConn
	Outgrown func() bool // whether the answer's objects are too old to be kept for a slow client; nil: never
}

// ErrOutgrown means that a client takes its answer so slowly that too many of the answer's objects have been replaced
// in the meantime. Keeping the old ones for such clients could take any amount of memory.
var ErrOutgrown = errors.New("the client reads too slowly for how fast things change")

// NewPatientWriter returns a writer for the answer to a request.
func NewPatientWriter(w http.ResponseWriter, r *http.Request, patience time.Duration) *PatientWriter {
	return &PatientWriter{w: w, control: http.NewResponseController(w), patience: patience, tcp: tcpOf(r)}
}

func (p *PatientWriter) Write(piece []byte) (n int, err error) {
	if p.Outgrown != nil && p.Outgrown() {
		return 0, ErrOutgrown
	}
	err = p.attended(func() error {
		n, err = p.w.Write(piece)
		return err
	})
	if err != nil && p.Outgrown != nil && p.Outgrown() {
		err = ErrOutgrown
	}
	return n, err
}

// Flush sends what net/http holds back of what was written. It leaves no deadline behind: one that passes while nothing
// is being written would still end an HTTP/2 stream.
func (p *PatientWriter) Flush() error {
	if err := p.attended(p.control.Flush); err != nil {
		return err
	}
	return p.control.SetWriteDeadline(time.Time{})
}

// attended does something that waits for the client, under the deadline.
func (p *PatientWriter) attended(do func() error) error {
	if err := p.wait(); err != nil {
		return err
	}
	before, known := uint64(0), false
	if p.tcp != nil {
		before, known = bytesTaken(p.tcp)
	}
	if !known {
		return do()
	}
	a := &attendant{writer: p, taken: before}
	a.begin()
	defer a.end()
	return do()
}

// wait puts the deadline off. It adds the interval, since progress of the client is noticed that much later.
func (p *PatientWriter) wait() error {
	return p.control.SetWriteDeadline(time.Now().Add(p.patience + p.interval()))
}

func (p *PatientWriter) interval() time.Duration { return p.patience / 8 }

// attendant checks from time to time whether a client takes anything while a write waits for it.
type attendant struct {
	writer *PatientWriter

	mu    sync.Mutex
	timer *time.Timer // nil once the write has ended
	taken uint64      // at the last check
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
	if a.writer.Outgrown != nil && a.writer.Outgrown() {
		_ = a.writer.control.SetWriteDeadline(time.Now()) // ends the write
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

// patientResponse is an answer whose body is written by a PatientWriter.
type patientResponse struct {
	http.ResponseWriter
	body *PatientWriter
}

// NewPatientResponse returns an answer whose body is written by a PatientWriter.
func NewPatientResponse(w http.ResponseWriter, r *http.Request, patience time.Duration) http.ResponseWriter {
	return &patientResponse{w, NewPatientWriter(w, r, patience)}
}

func (w *patientResponse) Write(piece []byte) (int, error) { return w.body.Write(piece) }
