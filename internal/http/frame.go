package http

import (
	"strconv"
	"sync"
	"time"
)

// frames writes server-sent events (WHATWG HTML, 9.2). What is written is collected, and goes out in one piece with
// one flush and under a deadline; so many events cost one system call, and a reader that takes nothing cannot hold
// the stream for ever.
type frames struct {
	to       connection
	deadline time.Duration

	buf    *[]byte   // nil while nothing is collected, so that an idle stream holds no buffer
	sentAt time.Time // when something was last sent
	failed bool      // the client has gone, or takes nothing
	events int64     // written in all
	bytes  int64
}

// flushAt is how much is collected before it is sent on in the middle of something long.
const flushAt = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, chunkRoom, 4<<10); return &b }}

func newFrames(to connection, deadline time.Duration) *frames {
	return &frames{to: to, deadline: deadline}
}

// begin gives what was collected, for more to be appended and put back.
func (f *frames) begin() []byte {
	if f.buf == nil {
		f.buf = buffers.Get().(*[]byte)
		*f.buf = (*f.buf)[:chunkRoom]
	}
	return *f.buf
}

// event collects one event. The data must be on one line, as an Object's JSON is. An empty id leaves the client's
// position as it is.
func (f *frames) event(prefix, name string, id []byte, data string) {
	buf := append(f.begin(), "event: "...)
	buf = append(buf, prefix...)
	buf = append(buf, name...)
	if len(id) > 0 {
		buf = append(buf, "\nid: "...)
		buf = append(buf, id...)
	}
	buf = append(buf, "\ndata: "...)
	buf = append(buf, data...)
	*f.buf = append(buf, "\n\n"...)
	f.events++
}

// comment collects a comment, which clients ignore.
func (f *frames) comment(text string) {
	buf := append(f.begin(), ": "...)
	buf = append(buf, text...)
	*f.buf = append(buf, "\n\n"...)
}

// retry collects how long the client is to wait before it reconnects.
func (f *frames) retry(after time.Duration) {
	buf := append(f.begin(), "retry: "...)
	buf = strconv.AppendInt(buf, after.Milliseconds(), 10)
	*f.buf = append(buf, "\n\n"...)
}

// full reports whether it is time to flush.
func (f *frames) full() bool { return f.buf != nil && len(*f.buf) >= flushAt }

// flush sends what was collected. An error means that the client has gone, or takes nothing; it is final.
func (f *frames) flush() error {
	if f.buf == nil {
		return nil
	}
	buf := *f.buf
	// Somebody who reads slowly, but reads, is given a deadline's time for each piece.
	pieces := time.Duration(1 + len(buf)/(4*flushAt))
	f.sentAt = time.Now()
	err := f.to.send(buf, f.sentAt.Add(f.deadline*pieces))
	f.failed = f.failed || err != nil
	f.bytes += int64(len(buf) - chunkRoom)
	if cap(buf) <= 2*flushAt {
		buffers.Put(f.buf)
	}
	f.buf = nil
	return err
}
