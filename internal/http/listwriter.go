package http

import (
	"bufio"
	"net/http"
	"time"
)

// listWriter writes a long answer in pieces, each under a deadline: a reader that takes nothing is cut, and since a
// snapshot holds no lock, one that reads slowly delays nobody.
type listWriter struct {
	w   *bufio.Writer
	err error
}

func newListWriter(w http.ResponseWriter, deadline time.Duration) *listWriter {
	return &listWriter{w: bufio.NewWriterSize(&deadlineWriter{w, http.NewResponseController(w), deadline}, flushAt)}
}

func (l *listWriter) text(s string) {
	if l.err == nil {
		_, l.err = l.w.WriteString(s)
	}
}

func (l *listWriter) bytes(b []byte) {
	if l.err == nil {
		_, l.err = l.w.Write(b)
	}
}

// close sends what is left. It fails if the client got less than all.
func (l *listWriter) close() error {
	if l.err == nil {
		l.err = l.w.Flush()
	}
	if l.err != nil {
		return &reply{message: "the client did not take the answer", cause: l.err}
	}
	return nil
}

type deadlineWriter struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	deadline time.Duration
}

func (d *deadlineWriter) Write(p []byte) (int, error) {
	if err := d.control.SetWriteDeadline(time.Now().Add(d.deadline)); err != nil {
		return 0, err
	}
	return d.w.Write(p)
}
