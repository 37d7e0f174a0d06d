package conn

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/http/request"
)

// Conn is the connection to which a stream is written.
type Conn interface {
	// Frame makes collected bytes ready to be sent. They must begin with ChunkRoom bytes that the connection may use.
	// It may append to them.
	Frame(collected []byte) []byte
	// Send sends a piece, and returns how many bytes were taken. With a patience, it waits until all are taken. It
	// fails if none is taken for that long, or with ErrOutgrown once outgrown, unless nil, returns true. Without a
	// patience it does not wait, and it is no error if not all is taken.
	Send(piece []byte, patience time.Duration, outgrown func() bool) (int, error)
	// Close ends the stream. Complete says that the body ends as planned; otherwise the client can tell that it was
	// broken off. Only the first call counts.
	Close(complete bool)
}

// ChunkRoom is the room for the head of a chunk (RFC 9112, 7.1): eight digits and CRLF.
const ChunkRoom = 10

// Open answers a request with the head of an event stream, and returns the connection for its events.
//
// An HTTP/1.1 connection is taken over from net/http, which then keeps nothing for it: the handler returns, and the
// stream goes on. HTTP/2 stays with net/http, and so does HTTP/1.0, which has no chunks: see Served.Keep.
func Open(w http.ResponseWriter, r *http.Request, contentType string) (Conn, error) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	if isTakenOver(r) && !request.IsHead(r) {
		if conn, _, err := control.Hijack(); err == nil {
			return takeOver(conn, header)
		}
	}
	w.WriteHeader(http.StatusOK)
	c := &Served{w: w, deadline: deadline{control: control}, over: make(chan bool, 1)}
	c.hold, _ = r.Context().Value(holdKey{}).(*hold)
	if request.IsHead(r) {
		return c, nil
	}
	if c.hold == nil {
		return nil, errors.New("a stream's connection can neither be taken over nor be held")
	}
	if err := c.sendHead(); err != nil {
		return nil, ErrLeft
	}
	return c, nil
}

// Served is a connection that stays with net/http. It cannot be written to without waiting.
type Served struct {
	Unframed
	w        http.ResponseWriter
	deadline deadline
	hold     *hold
	gone     func()
	over     chan bool // whether it is complete, once it has ended
}

// Keep has the stream go on, until Close, when the handler has returned. It calls gone once the client has left. The handler
// calls it itself, and the request must have come by Hold.
func (c *Served) Keep(gone func()) {
	c.gone, c.hold.answer = gone, c
}

// wait returns when the stream has ended, and reports whether it is complete.
func (c *Served) wait(ctx context.Context) (complete bool) {
	select {
	case complete = <-c.over:
		return complete
	case <-ctx.Done():
		c.gone()
		return <-c.over
	}
}

// Unframed sends pieces as they are, since net/http frames them.
type Unframed struct{}

// Frame cuts the room off: see Conn.
func (Unframed) Frame(collected []byte) []byte { return collected[ChunkRoom:] }

// pieceSize is how many bytes are sent under one deadline if the progress of a write cannot be seen.
const pieceSize = 16 << 10

func (c *Served) Send(piece []byte, patience time.Duration, outgrown func() bool) (n int, err error) {
	if patience == 0 {
		return 0, nil // net/http does not say how much it would take
	}
	for n < len(piece) {
		if outgrown != nil && outgrown() {
			return n, ErrOutgrown
		}
		c.deadline.begin(patience)
		m, err := c.w.Write(piece[n:min(n+pieceSize, len(piece))])
		n += m
		if err == nil {
			err = c.deadline.control.Flush()
		}
		if err = c.deadline.end(err); err != nil {
			return n, err
		}
	}
	return n, nil
}

// sendHead sends what net/http holds back until there is something to send. The request's own deadline must not stay.
func (c *Served) sendHead() error {
	if err := c.deadline.control.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	c.deadline.begin(headTimeout)
	return c.deadline.end(c.deadline.control.Flush())
}

// deadline ends a write that takes too long. net/http's own is set only then: one that passes while nothing is being
// written would still end an HTTP/2 stream, and to set one and take it back costs as much as a write.
type deadline struct {
	control *http.ResponseController
	timer   *time.Timer

	mu     sync.Mutex
	writes bool
	until  time.Time // the write may take
	passed bool
}

func (d *deadline) begin(patience time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes, d.until = true, time.Now().Add(patience)
	if d.timer == nil {
		d.timer = time.AfterFunc(patience, d.pass)
	} else {
		d.timer.Reset(patience)
	}
}

func (d *deadline) pass() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writes && !time.Now().Before(d.until) { // else the handler may have returned, or it is the write before that has ended just in time
		d.passed = true
		_ = d.control.SetWriteDeadline(time.Now()) // it fails if the client has gone
	}
}

// end ends a write, whose error it returns. A write after one that took too long fails, too.
func (d *deadline) end(err error) error {
	d.timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writes = false; d.passed && err == nil {
		return os.ErrDeadlineExceeded
	}
	return err
}

// Close has the request end, with which net/http ends the answer.
func (c *Served) Close(complete bool) {
	select {
	case c.over <- complete:
	default: // it is closed already
	}
}

// Direct is an HTTP/1.1 connection that was taken over.
type Direct struct {
	Chunks
	conn    net.Conn
	socket  socket   // none if there is none that can be written to without waiting
	secured *secured // nil if there is no TLS above the socket
	offerer Offerer  // nil if the connection is none
	reader  sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// Offerer is a connection that is no socket, and can be written to without waiting all the same.
type Offerer interface {
	net.Conn
	// Offer writes as much of a piece as can be written at once.
	Offer(piece []byte) (taken int, err error)
	// NotifyGone has gone called once the client has left.
	NotifyGone(gone func())
}

func takeOver(conn net.Conn, header http.Header) (Conn, error) {
	c := &Direct{conn: conn, socket: none}
	plain := conn
	if announced, ok := conn.(*Announced); ok {
		plain = announced.Conn
	}
	if tcp, ok := plain.(*net.TCPConn); ok {
		c.socket = socketOf(tcp)
	} else if c.secured = securedOf(conn); c.secured != nil {
		c.socket = c.secured.socket
	} else if offerer, ok := conn.(Offerer); ok {
		c.offerer = offerer
	}
	if c.socket != none {
		_ = TCPBelow(conn).SetReadBuffer(maxScrap) // nothing is read; a larger buffer would do, too
	}
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 200 OK\r\n")
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	header.Set("Connection", "close") // the connection ends with the stream
	header.Set("Transfer-Encoding", "chunked")
	_ = header.Write(&head) // cannot fail: it writes to memory
	head.WriteString("\r\n")
	err := c.secured.isThere()
	if err == nil {
		err = conn.SetDeadline(time.Time{}) // net/http's must not stay
	}
	if err == nil {
		_, err = c.Send(head.Bytes(), headTimeout, nil)
	}
	if err != nil {
		c.Close(false)
		return nil, ErrLeft
	}
	return c, nil
}

const headTimeout = 5 * time.Second // how long a client may take to take the head

// maxScrap is how many bytes a client may send that it should not send: then it is disconnected if they are read,
// else the kernel takes no more.
const maxScrap = 4 << 10

// Watch calls gone when the client leaves, or sends more than maxScrap bytes. Until then it reads, and drops, what
// the client should not send. It is for connections for which nothing else notices that the client leaves. It may be
// called at any time.
func (c *Direct) Watch(gone func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.reader.Go(func() {
		defer gone()
		var scrap [64]byte
		for left := maxScrap; left > 0; {
			n, err := c.conn.Read(scrap[:])
			if err != nil {
				return
			}
			left -= n
		}
	})
}

const hexDigits = "0123456789abcdef"

// Waitless reports whether the connection can be written to without waiting.
func (c *Direct) Waitless() bool { return c.socket != none || c.offerer != nil }

// NotifyGone has gone called once the client has left. It is false if the connection does not tell: see Disconnects.
func (c *Direct) NotifyGone(gone func()) bool {
	if c.offerer == nil {
		return false
	}
	c.offerer.NotifyGone(gone)
	return true
}

// offer writes as much of a piece as can be written without waiting.
func (c *Direct) offer(piece []byte) (taken int, err error) {
	switch {
	case c.secured != nil:
		return c.secured.offer(piece)
	case c.socket != none:
		return c.socket.offer(piece)
	case c.offerer != nil:
		return c.offerer.Offer(piece)
	}
	return 0, nil
}

// Chunks frames pieces for the connections that were taken over. It is the same for all of them.
type Chunks struct{}

// Frame makes a chunk of what was collected: see Conn.
func (Chunks) Frame(collected []byte) []byte {
	for n, i := len(collected)-ChunkRoom, ChunkRoom-3; i >= 0; i-- {
		collected[i] = hexDigits[n&15]
		n >>= 4
	}
	collected[ChunkRoom-2], collected[ChunkRoom-1] = '\r', '\n'
	return append(collected, '\r', '\n')
}

func (c *Direct) Send(piece []byte, patience time.Duration, outgrown func() bool) (n int, err error) {
	if n, err = c.offer(piece); err != nil || patience == 0 || n == len(piece) {
		return n, err
	}
	for n < len(piece) {
		if outgrown != nil && outgrown() {
			return n, ErrOutgrown
		}
		if err := c.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return n, err
		}
		m, err := c.writeSome(piece[n:])
		n += m
		if err != nil && (m == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return n, err
		}
	}
	return n, c.conn.SetWriteDeadline(time.Time{})
}

// writeSome writes as much as it can before the deadline. If that is not all, it may fail with os.ErrDeadlineExceeded.
// It does so having written nothing only if the client took nothing.
func (c *Direct) writeSome(piece []byte) (n int, err error) {
	switch {
	case c.secured != nil:
		return c.secured.writeSome(piece)
	case c.socket == none:
		// Under TLS of which nothing is known, no write can follow one that was not complete. So the pieces are small.
		return c.conn.Write(piece[:min(len(piece), pieceSize)])
	}
	return writeSome(c.conn, c.socket, piece)
}

func writeSome(conn net.Conn, s socket, piece []byte) (n int, err error) {
	n, err = conn.Write(piece)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	// The kernel reports room only when a third of its buffer is free. A slow client may have taken less than that,
	// so this tries once more.
	if n, refused := s.offer(piece); n > 0 || refused != nil {
		return n, refused
	}
	return 0, err
}

func (c *Direct) Close(complete bool) {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return
	}
	if complete {
		_, _ = c.Send([]byte("0\r\n\r\n"), lastTimeout, nil) // a client that has gone is no error
	}
	if c.socket != none {
		c.socket.discard(maxScrap) // closing with unread bytes may lose the end of what was sent
	}
	_ = c.conn.Close() // a client that has gone is no error
	c.reader.Wait()
}

// lastTimeout is how long a client may take to take the end of its stream.
const lastTimeout = time.Second

// Cut ends any write that is under way. The socket may be in use, so Cut does not close it: Close does.
func (c *Direct) Cut() {
	if tcp := TCPBelow(c.conn); tcp != nil {
		_ = tcp.CloseWrite() // a client that has gone is no error; TLS' own close would wait for a client that takes nothing
		return
	}
	_ = c.conn.Close() // likewise
}

// ErrLeft means that the client left before it was answered.
var ErrLeft = errors.New("the client has gone")
