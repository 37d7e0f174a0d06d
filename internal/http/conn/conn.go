package conn

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/http/request"
)

// Conn is what a stream is written to.
type Conn interface {
	// Frame makes what was collected, which begins with ChunkRoom bytes of the connection's own, ready to be sent. It
	// may append to it.
	Frame(collected []byte) []byte
	// Send sends a piece and says how much of it was taken. With patience it waits until all of it is, and fails if
	// nothing is taken for so long, or with ErrOutgrown once that says so, if it is not nil. Without, it does not wait: less
	// than all is no error.
	Send(piece []byte, patience time.Duration, outgrown func() bool) (int, error)
	// Close ends the stream: as complete if it ended as planned. Only the first call counts.
	Close(complete bool)
}

// ChunkRoom is the room for the head of a chunk (RFC 9112, 7.1): eight digits and CRLF.
const ChunkRoom = 10

// Open answers a request with the head of an event stream, and gives what its events are to be written to.
//
// An HTTP/1.1 connection is taken over from net/http, which need not keep anything for it then: the handler returns,
// and the stream goes on. HTTP/2, and HTTP/1.0, which knows no chunks, stay with net/http.
func Open(w http.ResponseWriter, r *http.Request, contentType string) (Conn, error) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	if r.ProtoMajor == 1 && r.ProtoMinor == 1 && !request.IsHead(r) {
		if conn, _, err := control.Hijack(); err == nil {
			return takeOver(conn, header)
		}
	}
	w.WriteHeader(http.StatusOK)
	c := &served{w: w, control: control}
	if request.IsHead(r) {
		return c, nil
	}
	if err := c.flush(headTimeout); err != nil {
		return nil, ErrLeft
	}
	return c, nil
}

// served is a connection that net/http keeps. It cannot be written to without waiting.
type served struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (c *served) Frame(collected []byte) []byte { return collected[ChunkRoom:] }

// pieceSize is how much is sent under one deadline where it cannot be told how far a write has got.
const pieceSize = 16 << 10

func (c *served) Send(piece []byte, patience time.Duration, outgrown func() bool) (n int, err error) {
	for n < len(piece) {
		if outgrown != nil && outgrown() {
			return n, ErrOutgrown
		}
		if err := c.control.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return n, err
		}
		m, err := c.w.Write(piece[n:min(n+pieceSize, len(piece))])
		n += m
		if err == nil {
			err = c.flush(patience)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// flush sends what was written; of a stream that has nothing to tell yet, its head. It leaves no deadline: one that passes
// while nothing is being written ends an HTTP/2 stream all the same.
func (c *served) flush(patience time.Duration) error {
	err := c.control.SetWriteDeadline(time.Now().Add(patience))
	if err == nil {
		err = c.control.Flush()
	}
	if err == nil {
		err = c.control.SetWriteDeadline(time.Time{})
	}
	return err
}

// Close leaves it to net/http, which ends the answer when the handler returns, if the client still is there.
func (c *served) Close(bool) {}

// Direct is an HTTP/1.1 connection that was taken over.
type Direct struct {
	conn   net.Conn
	socket socket // none unless it can be written to without waiting
	reader sync.WaitGroup
	closed bool
}

func takeOver(conn net.Conn, header http.Header) (Conn, error) {
	c := &Direct{conn: conn, socket: none}
	if tcp, ok := conn.(*net.TCPConn); ok {
		if c.socket = socketOf(tcp); c.socket != none {
			_ = tcp.SetReadBuffer(maxScrap) // nobody reads; a larger one does, too
		}
	}
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 200 OK\r\n")
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	header.Set("Connection", "close") // when the stream ends, so does the connection
	header.Set("Transfer-Encoding", "chunked")
	_ = header.Write(&head) // to memory
	head.WriteString("\r\n")
	// Taking the connection over has ended net/http's deadlines.
	err := conn.SetDeadline(time.Time{})
	if err == nil {
		_, err = c.Send(head.Bytes(), headTimeout, nil)
	}
	if err != nil {
		c.Close(false)
		return nil, ErrLeft
	}
	return c, nil
}

const headTimeout = 5 * time.Second // for a client to take the head

// maxScrap is how much a client may send that it should not, in bytes: before it is cut, where it has to be read, or
// before the kernel takes no more.
const maxScrap = 4 << 10

// Watch reads what the client should not send, until he leaves, and then calls gone. It is for connections of which
// nobody else tells when that happens.
func (c *Direct) Watch(gone func()) {
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

// Waitless reports whether it can be written to without waiting.
func (c *Direct) Waitless() bool { return c.socket != none }

func (c *Direct) Frame(collected []byte) []byte {
	for n, i := len(collected)-ChunkRoom, ChunkRoom-3; i >= 0; i-- {
		collected[i] = hexDigits[n&15]
		n >>= 4
	}
	collected[ChunkRoom-2], collected[ChunkRoom-1] = '\r', '\n'
	return append(collected, '\r', '\n')
}

func (c *Direct) Send(piece []byte, patience time.Duration, outgrown func() bool) (n int, err error) {
	if c.socket != none {
		n, err = c.socket.offer(piece)
	}
	if err != nil || patience == 0 || n == len(piece) {
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

// writeSome writes what it can before the deadline. It fails with os.ErrDeadlineExceeded if that is not all, having
// written nothing only if the client took nothing.
func (c *Direct) writeSome(piece []byte) (n int, err error) {
	if c.socket == none {
		// Under TLS a write that was not complete is the connection's last.
		return c.conn.Write(piece[:min(len(piece), pieceSize)])
	}
	n, err = c.conn.Write(piece)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	// The kernel says that there is room again only when a third of its buffer is free; what a slow client has taken
	// since may be less.
	if n, refused := c.socket.offer(piece); n > 0 || refused != nil {
		return n, refused
	}
	return 0, err
}

func (c *Direct) Close(complete bool) {
	if c.closed {
		return
	}
	c.closed = true
	if complete {
		_ = c.conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = c.conn.Write([]byte("0\r\n\r\n")) // a client that has gone is no error
	}
	if c.socket != none {
		c.socket.discard(maxScrap) // to close it with something unread in it may cost the client the end
	}
	_ = c.conn.Close() // as above
	c.reader.Wait()
}

// Cut ends whatever is being written. Somebody may be using the socket, so it is left to close to close it.
func (c *Direct) Cut() {
	if tcp := TCPBelow(c.conn); tcp != nil {
		_ = tcp.CloseWrite() // a client that has gone is no error; and TLS' own close would wait for one that takes nothing
		return
	}
	_ = c.conn.Close() // likewise
}

// ErrLeft means that the client left before it was answered.
var ErrLeft = errors.New("the client has gone")
