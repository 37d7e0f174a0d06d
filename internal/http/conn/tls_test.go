package conn

import (
	"bytes"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/certtest"
)

// overTLS is both ends of a connection under TLS, the server's taken over with a buffer of a few KiB in the kernel.
func overTLS(t *testing.T) (server *Direct, client *tls.Conn) {
	t.Helper()
	pair := certtest.New(t, "gateway.test")
	system, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := tls.NewListener(BelowTLS(system), pair.Server(t))
	t.Cleanup(func() { _ = listener.Close() })
	config := certtest.Client(pair)
	config.ServerName = "gateway.test"
	var accepted net.Conn
	var accepting sync.WaitGroup
	accepting.Go(func() {
		if accepted, err = listener.Accept(); err == nil {
			err = accepted.(*tls.Conn).Handshake()
		}
	})
	client, failed := tls.Dial("tcp", system.Addr().String(), config)
	accepting.Wait()
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.NetConn().(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	if err := TCPBelow(accepted).SetWriteBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	took, err := takeOver(accepted, http.Header{})
	if err != nil {
		t.Fatal(err)
	}
	direct := took.(*Direct)
	if !direct.Waitless() {
		t.Fatal("the connection cannot be written to without waiting")
	}
	t.Cleanup(func() { direct.Close(false) })
	return direct, client
}

// What is offered, and what is waited for, comes as it was, however little of a record the kernel takes at once: no
// record is sent twice, broken off, or overtaken, also by those of a reader that is to answer the client.
func TestPiecesOverTLSComeWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	server, client := overTLS(t)
	var sent, came bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() {
		for piece := make([]byte, 3000); ; {
			n, err := client.Read(piece)
			came.Write(piece[:n])
			if err != nil {
				if err != io.EOF {
					t.Error(err)
				}
				return
			}
		}
	})
	busy := 0
	for range 60 {
		piece := make([]byte, 5+random.IntN(200_000)) // no chunk is smaller
		for i := range piece {
			piece[i] = byte(random.Uint32())
		}
		sent.Write(piece)
		for rest := piece; len(rest) > 0; {
			patience := time.Duration(0)
			if len(rest) < len(piece) && random.IntN(4) == 0 {
				patience = time.Minute
			}
			n, err := server.Send(rest, patience, nil)
			if err != nil {
				t.Fatal(err)
			}
			if rest = rest[n:]; len(rest) > 0 {
				busy++
				if n == 0 && len(rest) == len(piece) {
					t.Fatal("of a record that cannot be taken back, nothing counts as taken")
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
	if server.secured.below.records != nil {
		t.Error("an idle connection keeps a buffer")
	}
	server.Close(true)
	reading.Wait()
	_, body, found := bytes.Cut(came.Bytes(), []byte("\r\n\r\n"))
	if want := append(sent.Bytes(), "0\r\n\r\n"...); !found || !bytes.Equal(body, want) {
		t.Errorf("%d bytes came, want %d", len(body), len(want))
	}
	if busy == 0 {
		t.Error("the kernel always took all of it")
	}
}

// A client that takes nothing has a write fail after the patience, and is not waited for when its connection is closed.
func TestStalledClientOverTLSIsNotWaitedFor(t *testing.T) {
	server, _ := overTLS(t)
	piece := bytes.Repeat([]byte("x"), 4<<20)
	n, err := server.Send(piece, 200*time.Millisecond, nil)
	if err == nil || n == len(piece) {
		t.Fatalf("%d bytes were taken by a client that reads nothing: %v", n, err)
	}
	began := time.Now()
	server.Close(false) // it has a record left, and does not wait: crypto/tls would, for five seconds
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("closing took %v", took)
	}
}

// What TLS answers to a client meanwhile is kept, in its order, up to a bound.
func TestAnswersOfTLSAreBounded(t *testing.T) {
	server, _ := overTLS(t)
	below := server.secured.below
	n := 0
	for ; n < 1000; n++ {
		if _, err := below.Write(make([]byte, 1<<10)); err != nil {
			break
		}
	}
	if n != mostRecords>>10 {
		t.Errorf("%d KiB were kept", n)
	}
}
