package http

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// connection is what a stream is written to. All that is sent begins with chunkRoom bytes of the connection's own.
type connection interface {
	// send sends one piece, and fails if it is not taken before the deadline.
	send(p []byte, deadline time.Time) error
	// close ends the stream: as complete if it ended as planned. Only the first call counts.
	close(complete bool)
}

// chunkRoom is the room for the head of a chunk (RFC 9112, 7.1): eight digits and CRLF.
const chunkRoom = 10

// connect answers a request with the head of an event stream, and gives what its events are to be written to. The
// context ends when the client has gone.
//
// An HTTP/1.1 connection is taken over from net/http: it costs two of net/http's buffers less while idle, and one
// system call less for each batch. HTTP/2, and HTTP/1.0, which knows no chunks, stay with net/http.
func connect(w http.ResponseWriter, r *http.Request) (context.Context, connection, error) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	if r.ProtoMajor == 1 && r.ProtoMinor == 1 && !isHead(r) {
		if conn, _, err := control.Hijack(); err == nil {
			return takeOver(r.Context(), conn, header)
		}
	}
	w.WriteHeader(http.StatusOK)
	return r.Context(), &served{w: w, control: control}, nil
}

// served is a connection that net/http keeps.
type served struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (c *served) send(p []byte, deadline time.Time) error {
	if err := c.control.SetWriteDeadline(deadline); err != nil {
		return err
	}
	if _, err := c.w.Write(p[chunkRoom:]); err != nil {
		return err
	}
	if err := c.control.Flush(); err != nil {
		return err
	}
	// A deadline that passes while nothing is being written ends an HTTP/2 stream all the same.
	return c.control.SetWriteDeadline(time.Time{})
}

// close leaves it to net/http, which ends the answer when the handler returns, if the client still is there.
func (c *served) close(bool) {}

// direct is an HTTP/1.1 connection that was taken over.
type direct struct {
	conn   net.Conn
	cancel context.CancelFunc
	reader sync.WaitGroup
	closed bool
	stop   func() bool // leaves the connection open when the context ends
}

func takeOver(ctx context.Context, conn net.Conn, header http.Header) (context.Context, connection, error) {
	ctx, cancel := context.WithCancel(ctx)
	// Nobody else closes the connection of a server that is to end at once, whatever is being written.
	c := &direct{conn: conn, cancel: cancel, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 200 OK\r\n")
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	header.Set("Connection", "close") // when the stream ends, so does the connection
	header.Set("Transfer-Encoding", "chunked")
	_ = header.Write(&head) // to memory
	head.WriteString("\r\n")
	c.reader.Go(c.discard)
	// Taking the connection over has ended net/http's deadlines.
	if err := conn.SetDeadline(time.Now().Add(headTimeout)); err == nil {
		_, err = conn.Write(head.Bytes())
		if err == nil {
			err = conn.SetDeadline(time.Time{})
		}
		if err == nil {
			return ctx, c, nil
		}
	}
	c.close(false)
	return nil, nil, errGone
}

// headTimeout is how long a client may take to take the head.
const headTimeout = 5 * time.Second

// maxScrap is how much a client may send that it should not, in bytes, before it is cut: to read it costs something.
const maxScrap = 4 << 10

// discard reads what the client should not send, so that it is noticed when he leaves.
func (c *direct) discard() {
	defer c.cancel()
	var scrap [64]byte
	for left := maxScrap; left > 0; {
		n, err := c.conn.Read(scrap[:])
		if err != nil {
			return
		}
		left -= n
	}
}

const hexDigits = "0123456789abcdef"

func (c *direct) send(p []byte, deadline time.Time) error {
	for n, i := len(p)-chunkRoom, chunkRoom-3; i >= 0; i-- {
		p[i] = hexDigits[n&15]
		n >>= 4
	}
	p[chunkRoom-2], p[chunkRoom-1] = '\r', '\n'
	if err := c.conn.SetWriteDeadline(deadline); err != nil {
		return err
	}
	_, err := c.conn.Write(append(p, '\r', '\n'))
	return err
}

func (c *direct) close(complete bool) {
	if c.closed {
		return
	}
	c.closed = true
	c.stop()
	if complete {
		_ = c.conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = c.conn.Write([]byte("0\r\n\r\n")) // a client that has gone is no error
	}
	_ = c.conn.Close() // likewise
	c.reader.Wait()
	c.cancel()
}
