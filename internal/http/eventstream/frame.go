package eventstream

import (
	"errors"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/http/coding"
	"github.com/kubecast/kubecast/internal/http/conn"
)

// frames collects what is written to a client, and sends it in one piece, with one flush and under
// one deadline. So many events cost one system call, and a client that takes nothing cannot hold
// the stream for ever.
type frames struct {
	to          conn.Conn
	patience    time.Duration // how long a client may take nothing before it is cut
	nonBlocking bool          // flush must not wait
	outgrown    func() bool   // what is being told is too old to be kept for a slow client; nil: it never is

	coding *coding.Coding // in which the client is sent what was collected; nil: as it is
	body   coding.Body    // what was sent in it, which is all that an idle stream keeps of its coding
	last   bool           // the next piece ends the stream as planned

	buf    *[]byte   // nil while nothing is collected, so that an idle stream holds no buffer
	rest   []byte    // the part of buf that the client has not taken yet, of a piece that was flushed; else nil
	lent   bool      // others are sent buf, too, so it must not be reused
	known  time.Time // if a group made the piece: when its oldest event came; else zero
	sentAt time.Time // when something was last sent
	failed bool      // the client has gone, or takes nothing
	events int64     // written in all
	bytes  int64     // before they were encoded
}

// FlushAt is how many bytes are collected before they are sent, in the middle of something long.
const FlushAt = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, conn.ChunkRoom, 4<<10); return &b }}

// errBusy means that the client takes no more at the moment. Nothing can be collected until a flush has succeeded.
var errBusy = errors.New("the client takes no more at the moment")

// add collects an event in a form.
func (f *frames) add(form Encoder, e Event) {
	if f.buf == nil {
		f.buf = newBuffer()
	}
	before := len(*f.buf)
	*f.buf = form.Encode(*f.buf, e)
	switch after := len(*f.buf); {
	case after == conn.ChunkRoom: // nothing was collected, and an empty chunk would end the body
		f.drop()
	case after > before && e.Kind.isEvent():
		f.events++
	}
}

// full reports whether it is time to flush.
func (f *frames) full() bool { return f.buf != nil && len(*f.buf) >= FlushAt }

// newBuffer returns a buffer in which nothing was collected.
func newBuffer() *[]byte {
	buf := buffers.Get().(*[]byte)
	*buf = (*buf)[:conn.ChunkRoom]
	return buf
}

// drop gives the buffer back.
func (f *frames) drop() {
	if !f.lent && cap(*f.buf) <= 2*FlushAt {
		buffers.Put(f.buf)
	}
	f.buf, f.rest, f.lent = nil, nil, false
}

// take takes over the rest of a piece that others are sent as well, and of which the client took the beginning, or nothing.
func (f *frames) take(rest []byte, known time.Time) {
	f.buf, f.rest, f.lent, f.known = &rest, rest, true, known
}

// complete says that the stream ends with what is collected now, as planned. What is sent then ends
// as its coding wants.
func (f *frames) complete() {
	if f.last = true; f.coding != nil && f.buf == nil {
		f.buf = newBuffer()
	}
}

// framing is what a connection needs around a piece.
type framing interface{ Frame(collected []byte) []byte }

// pack makes a piece of what was collected, encoded and framed. A piece is encoded by itself, so
// that what many clients are told is encoded once, and so that each of its events can be read when
// it has arrived.
func (f *frames) pack(framing framing) {
	if f.buf == nil || f.rest != nil {
		return
	}
	collected := (*f.buf)[conn.ChunkRoom:]
	f.bytes += int64(len(collected))
	if f.coding != nil {
		coded := newBuffer()
		*coded = f.coding.Append(&f.body, *coded, collected)
		if f.last {
			*coded = f.coding.End(&f.body, *coded)
		}
		f.drop()
		if f.buf = coded; len(*coded) == conn.ChunkRoom { // nothing ends with nothing
			f.drop()
			return
		}
	}
	f.rest = framing.Frame(*f.buf) // the buffer keeps its room for a chunk's head, which some connections cut off
	f.sentAt = time.Now()
}

// flush sends what was collected. It fails with errBusy if it must not wait and the client does not take all of it at
// once. Any other error means that the client has gone, or takes nothing, and is final.
func (f *frames) flush() error {
	f.pack(f.to)
	if f.buf == nil {
		return nil
	}
	patience := f.patience
	if f.nonBlocking {
		patience = 0
	}
	n, err := f.to.Send(f.rest, patience, f.outgrown)
	if f.rest = f.rest[n:]; err == nil && len(f.rest) > 0 {
		return errBusy
	}
	f.failed = f.failed || err != nil
	f.drop()
	return err
}
