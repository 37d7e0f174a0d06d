package conn

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// BelowTLS returns a listener for TLS. A stream over one of its connections that was taken over can be written to
// without waiting.
func BelowTLS(listener net.Listener) net.Listener { return tlsListener{listener} }

type tlsListener struct{ net.Listener }

func (l tlsListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil || TCPBelow(conn) == nil {
		return conn, err
	}
	return &belowTLS{Conn: conn}, nil
}

// belowTLS is what a TLS connection writes its records to. Once it collects, it keeps them, and never fails for want of
// room: a record cannot be taken back, nor be followed by another one if it was not sent whole.
type belowTLS struct {
	net.Conn

	mu       sync.Mutex
	collects bool
	records  *[]byte // nil while there are none, so that an idle stream holds no buffer
}

// NetConn is the connection below.
func (b *belowTLS) NetConn() net.Conn { return b.Conn }

// mostRecords bounds what is kept, in bytes. Besides one record of the stream there are only answers to a client's
// requests for other keys.
const mostRecords = 64 << 10

var errTooManyRecords = errors.New("the client asks for more answers of TLS than it takes")

func (b *belowTLS) Write(p []byte) (int, error) {
	b.mu.Lock()
	collects := b.collects
	if collects {
		defer b.mu.Unlock()
		if b.records == nil {
			b.records = recordBuffers.Get().(*[]byte)
		}
		if len(*b.records)+len(p) > mostRecords {
			return 0, errTooManyRecords
		}
		*b.records = append(*b.records, p...)
		return len(p), nil
	}
	b.mu.Unlock()
	return b.Conn.Write(p)
}

var recordBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// secured is a connection under TLS that can be written to without waiting. Only the stream's owner uses it.
type secured struct {
	conn   *tls.Conn
	below  *belowTLS
	socket socket
	sealed int // bytes that are encrypted, and of which it was not said that they are taken
}

// securedOf returns a TLS connection that was taken over; nil if it cannot be written to without waiting.
func securedOf(conn net.Conn) *secured {
	over, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	below, ok := over.NetConn().(*belowTLS)
	if !ok {
		return nil
	}
	s := &secured{conn: over, below: below, socket: socketOf(TCPBelow(below))}
	if s.socket == none {
		return nil
	}
	below.mu.Lock()
	defer below.mu.Unlock()
	below.collects = true
	return s
}

// isThere fails if the client has said in TLS that it leaves, and that was read already, with its request: no byte of
// it is in the socket any more, from which it would be noticed. Nothing is waited for, and what else the client has
// sent is dropped. It leaves a deadline behind.
func (s *secured) isThere() error {
	if s == nil {
		return nil
	}
	if err := s.conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return err
	}
	var scrap [64]byte
	for dropped := 0; dropped <= maxScrap; {
		n, err := s.conn.Read(scrap[:])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if dropped += n; err != nil {
			return err
		}
	}
	return ErrLeft
}

// offer writes as much of a piece as the kernel takes at once. What is encrypted has to be sent before anything else.
// So if the kernel does not take all of a record, its last byte is what was not taken, and the caller goes on with that.
func (s *secured) offer(piece []byte) (taken int, err error) {
	return s.send(piece, s.socket.offer)
}

// writeSome is Direct.writeSome. It is no error if it has taken nothing of the piece, but something of a record.
func (s *secured) writeSome(piece []byte) (taken int, err error) {
	some := false
	taken, err = s.send(piece[:min(len(piece), pieceSize)], func(records []byte) (int, error) {
		n, err := writeSome(s.below.Conn, s.socket, records)
		some = some || n > 0
		return n, err
	})
	if some && errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return taken, err
}

// send encrypts a piece, a record at a time, and writes the records.
func (s *secured) send(piece []byte, write func(records []byte) (int, error)) (taken int, err error) {
	for taken < len(piece) {
		if s.sealed == 0 {
			if s.sealed, err = s.conn.Write(piece[taken:min(len(piece), taken+pieceSize)]); err != nil {
				return taken, err
			}
		}
		all, err := s.below.flush(write)
		if !all {
			taken, s.sealed = taken+s.sealed-1, 1
			return taken, err
		}
		taken, s.sealed = taken+s.sealed, 0
	}
	return taken, nil
}

// flush writes the records, and reports whether that was all of them.
func (b *belowTLS) flush(write func(records []byte) (int, error)) (all bool, err error) {
	b.mu.Lock()
	records := b.records
	b.records = nil
	b.mu.Unlock()
	if records == nil {
		return true, nil
	}
	n, err := write(*records)
	left := (*records)[n:]
	*records = append((*records)[:0], left...)
	b.mu.Lock()
	defer b.mu.Unlock()
	since := b.records // of whoever reads meanwhile
	if b.records = records; since != nil {
		*records = append(*records, *since...)
		*since = (*since)[:0]
		recordBuffers.Put(since)
	}
	if all = len(*records) == 0; all {
		recordBuffers.Put(records)
		b.records = nil
	}
	return all && err == nil, err
}

// Close sends what is left, if the client takes it at once: TLS' own farewell above all.
func (b *belowTLS) Close() error {
	if s := b.taken(); s != none {
		_, _ = b.flush(s.offer) // a client that has gone is no error
	}
	return b.Conn.Close()
}

// taken is the socket of a connection that was taken over.
func (b *belowTLS) taken() socket {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.collects {
		return none
	}
	return socketOf(TCPBelow(b.Conn))
}
