package http

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// frames writes server-sent events (WHATWG HTML, 9.2). What is written is collected, and goes out in one piece with
// one flush and under a deadline; so many events cost one system call, and a reader that takes nothing cannot hold
// the stream for ever.
type frames struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	deadline time.Duration

	buf    []byte // nil while nothing is collected, so that an idle stream holds no buffer
	events int64  // written in all
	bytes  int64
}

// flushAt is how much is collected before it is sent on in the middle of something long.
const flushAt = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

func newFrames(w http.ResponseWriter, deadline time.Duration) *frames {
	return &frames{w: w, control: http.NewResponseController(w), deadline: deadline}
}

func (f *frames) begin() {
	if f.buf == nil {
		f.buf = (*buffers.Get().(*[]byte))[:0]
	}
}

// event collects one event. The data must be on one line, as an Object's JSON is. An empty id leaves the client's
// position as it is.
func (f *frames) event(prefix, name string, id []byte, data string) {
	f.begin()
	f.buf = append(f.buf, "event: "...)
	f.buf = append(f.buf, prefix...)
	f.buf = append(f.buf, name...)
	if len(id) > 0 {
		f.buf = append(f.buf, "\nid: "...)
		f.buf = append(f.buf, id...)
	}
	f.buf = append(f.buf, "\ndata: "...)
	f.buf = append(f.buf, data...)
	f.buf = append(f.buf, "\n\n"...)
	f.events++
}

// comment collects a comment, which clients ignore.
func (f *frames) comment(text string) {
	f.begin()
	f.buf = append(f.buf, ": "...)
	f.buf = append(f.buf, text...)
	f.buf = append(f.buf, "\n\n"...)
}

// retry collects how long the client is to wait before it reconnects.
func (f *frames) retry(after time.Duration) {
	f.begin()
	f.buf = append(f.buf, "retry: "...)
	f.buf = strconv.AppendInt(f.buf, after.Milliseconds(), 10)
	f.buf = append(f.buf, "\n\n"...)
}

// full reports whether it is time to flush.
func (f *frames) full() bool { return len(f.buf) >= flushAt }

// flush sends what was collected. An error means that the client has gone, or takes nothing; it is final.
func (f *frames) flush() error {
	if len(f.buf) == 0 {
		return nil
	}
	// Somebody who reads slowly, but reads, is given a deadline's time for each piece.
	pieces := time.Duration(1 + len(f.buf)/(4*flushAt))
	if err := f.control.SetWriteDeadline(time.Now().Add(f.deadline * pieces)); err != nil {
		return err
	}
	_, err := f.w.Write(f.buf)
	if err == nil {
		err = f.control.Flush()
	}
	f.bytes += int64(len(f.buf))
	if cap(f.buf) <= 2*flushAt {
		buf := f.buf
		buffers.Put(&buf)
	}
	f.buf = nil
	return err
}
