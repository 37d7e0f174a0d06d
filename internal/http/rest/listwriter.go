package rest

import (
	"bufio"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/render"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

// listWriter writes a long answer in pieces, each under a deadline. A client that takes nothing is disconnected. One
// that reads slowly delays no others, since a snapshot holds no lock.
type listWriter struct {
	header http.Header
	w      *bufio.Writer
	coded  *codedBody   // nil: the answer is sent as it is
	task   *budget.Task // rests while the client takes what was written; may be nil
	to     *conn.PatientWriter
	err    error
}

// step is called before an item is made from so many bytes. It returns false once the answer has failed.
func (l *listWriter) step(bytes int) bool {
	if l.err == nil && l.task != nil && !l.task.Step(bytes) {
		l.err = l.task.Err()
	}
	return l.err == nil
}

// rest gives the task's turn back if so many more bytes do not fit into the buffer, and so have to be sent.
func (l *listWriter) rest(bytes int) {
	if l.task != nil && l.coded == nil && bytes > l.w.Available() { // a coded body does so by itself
		l.task.Rest()
	}
}

// listPiece is how many bytes are collected and sent at once.
const listPiece = 64 << 10

var listBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, listPiece) }}

// smallAnswer is the size of an answer, in bytes, that fits into a socket's buffer if earlier answers were taken: it
// is the smallest such buffer on Linux.
const smallAnswer = 16 << 10

// writeSmall writes a small answer, and the end of its line, under one deadline. A client that
// takes anything at all takes so little in time.
func writeSmall(w http.ResponseWriter, answer string, patience time.Duration) error {
	err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = io.WriteString(w, answer)
	}
	if err == nil {
		_, err = io.WriteString(w, lineEnd)
	}
	if err != nil {
		return &reply.Error{Message: "the client did not take the answer", Cause: err}
	}
	return nil
}

// newListWriter returns a writer of an answer in the coding that the client wants. What is kept of
// it is charged to the quotaOwner.
func (h *Handler) newListWriter(w http.ResponseWriter, r *http.Request, quotaOwner string) *listWriter {
	l := newListWriter(w, r, h.opts.WriteTimeout)
	if chosen := h.opts.Codings.For(r.Header); chosen != nil {
		l.encode(chosen, quotaOwner, request.IsHead(r))
	}
	return l
}

func newListWriter(w http.ResponseWriter, r *http.Request, patience time.Duration) *listWriter {
	buffer := listBuffers.Get().(*bufio.Writer)
	to := conn.NewPatientWriter(w, r, patience)
	buffer.Reset(to)
	return &listWriter{header: w.Header(), w: buffer, to: to}
}

// of sets the snapshot from which the answer is made. A client that takes the answer too slowly for how fast the
// store changes is disconnected.
func (l *listWriter) of(store *cache.Store, snapshot *cache.Snapshot) {
	l.to.Outgrown = func() bool { return store.Outgrown(snapshot) }
}

// length sets the length of the answer, so that net/http need not send it in chunks.
func (l *listWriter) length(bytes int) { l.header.Set("Content-Length", strconv.Itoa(bytes)) }

func (l *listWriter) text(s string) {
	if l.err == nil {
		l.rest(len(s))
		_, l.err = l.w.WriteString(s)
	}
}

func (l *listWriter) bytes(b []byte) {
	if l.err == nil {
		l.rest(len(b))
		_, l.err = l.w.Write(b)
	}
}

// close sends the rest. It fails if the client did not get everything. The writer must not be used afterwards.
func (l *listWriter) close() error {
	if l.err == nil {
		l.rest(listPiece + 1)
		if l.coded != nil {
			l.err = l.coded.close(l.w)
		} else {
			l.err = l.w.Flush()
		}
	}
	l.w.Reset(nil)
	if l.coded != nil {
		l.coded.release(l.w)
	} else {
		listBuffers.Put(l.w)
	}
	l.w = nil
	if l.err != nil {
		return &reply.Error{Message: "the client did not take the answer", Cause: l.err}
	}
	return nil
}

// list writes a list with its metadata, in the form in which the API server writes it.
func (l *listWriter) list(p *render.Printer, items []*cluster.Object, meta []byte, form cluster.ListForm) {
	begin, end := p.List(meta, form, len(items))
	if p.IsPlain() {
		size := len(begin) + max(2*len(items)-1, 0) + len(end)
		for _, o := range items {
			size += len(p.Members(o))
		}
		l.length(size)
	}
	l.bytes(begin)
	separator, more := "", ","
	if p.IsPlain() {
		separator, more = "{", ",{"
	}
	for _, o := range items {
		l.text(separator)
		separator = more
		switch {
		case p.IsPlain():
			l.text(p.Members(o))
		case l.step(len(o.JSON())):
			l.bytes(p.Item(o))
		default:
			return
		}
	}
	l.bytes(end)
}
