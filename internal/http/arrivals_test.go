package http

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// comer is a connection from an address.
type comer struct {
	net.Conn
	from string
}

func (c comer) RemoteAddr() net.Addr { return pipeAddress(c.from) }

// harbour is a paced listener whose connections are counted by where they come from, and the far ends of all that came.
type harbour struct {
	t      *testing.T
	system *pipeListener
	paced  net.Listener
	taken  map[string]*atomic.Int64
}

func newHarbour(t *testing.T, limits ConnectionLimits, from ...string) *harbour {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "refused"}, []string{"limit"})
	isProxy := func(a netip.Addr) bool { return a == netip.MustParseAddr("10.0.0.1") }
	s := &Server{connections: newConnections(limits, isProxy, func() int { return 0 }, refused, slog.New(slog.DiscardHandler))}
	h := &harbour{t: t, system: newPipeListener("gateway.test:80"), taken: map[string]*atomic.Int64{}}
	for _, address := range from {
		h.taken[address] = &atomic.Int64{}
	}
	h.paced = s.Listen(h.system)
	go func() {
		for {
			conn, err := h.paced.Accept()
			if err != nil {
				return
			}
			h.taken[conn.RemoteAddr().String()].Add(1)
			defer conn.Close()
		}
	}()
	return h
}

// come lets connections come at once, and gives their far ends.
func (h *harbour) come(from string, n int) (far []net.Conn) {
	for range n {
		near, end := net.Pipe()
		far = append(far, end)
		go func() {
			select {
			case h.system.conns <- comer{near, from}:
			case <-h.system.closed:
				_ = near.Close()
			}
		}()
	}
	return far
}

// cut is how many of the connections were closed.
func (h *harbour) cut(far []net.Conn) (n int) {
	for _, conn := range far {
		_ = conn.SetReadDeadline(time.Now().Add(time.Nanosecond))
		if _, err := conn.Read(make([]byte, 1)); err == io.EOF {
			n++
		}
	}
	return n
}

// TestConnectionsThatComeAtOnceAreTakenInTurns: each is a goroutine at once, and thousands of these hold up all others.
func TestConnectionsThatComeAtOnceAreTakenInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const from = "10.0.0.1:1" // a trusted proxy, which may have any number
		h := newHarbour(t, ConnectionLimits{PerPeer: 16}, from)
		h.come(from, 10*arrivalsAtOnce)
		for turn := range 10 {
			synctest.Wait()
			if n := h.taken[from].Load(); n != int64(turn+1)*arrivalsAtOnce {
				t.Fatalf("after %d ms there are %d", turn, n)
			}
			time.Sleep(arrivalsEach)
		}
		_ = h.paced.Close()
	})
}

func TestWhoOpensConnectionsTooOftenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perPeer = 8 * leastAtOnce
		const waiting = perPeer / peerPerSecond * int64(peerLongestWait/time.Second)
		const atOnce = perPeer / peerAtOnce
		mallory, alice := "[2001:db8::1]:1", "[2001:db8:0:1::1]:1"
		h := newHarbour(t, ConnectionLimits{PerPeer: perPeer}, mallory, alice)
		far := h.come(mallory, 100)
		time.Sleep(10 * arrivalsEach)
		h.come(alice, 1)
		time.Sleep(10 * arrivalsEach)
		synctest.Wait()
		if n := h.taken[mallory].Load(); n != atOnce {
			t.Errorf("%d are there at once, want %d", n, atOnce)
		}
		if h.taken[alice].Load() != 1 {
			t.Error("somebody else waits")
		}
		if n := h.cut(far); n != 100-atOnce-int(waiting) {
			t.Errorf("%d were refused, want all but %d and %d that wait", n, atOnce, waiting)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := h.taken[mallory].Load(); n != atOnce+perPeer/peerPerSecond {
			t.Errorf("a second later there are %d, want %d", n, atOnce+perPeer/peerPerSecond)
		}
		_ = h.paced.Close()
		synctest.Wait()
		if n := h.cut(far); n != 100 {
			t.Errorf("when the listener is closed %d have ended, want all", n)
		}
	})
}

// TestWaitingConnectionsLeaveFilesForOthers, however many peers there are.
func TestWaitingConnectionsLeaveFilesForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mallory := "192.0.2.1:1"
		h := newHarbour(t, ConnectionLimits{PerPeer: peerPerSecond * 10, Total: 4 * waitingOfTotal}, mallory)
		far := h.come(mallory, 100)
		time.Sleep(10 * arrivalsEach)
		synctest.Wait()
		if taken, cut := int(h.taken[mallory].Load()), h.cut(far); taken+cut != 100-4 {
			t.Errorf("%d were taken and %d refused: %d wait, want 4", taken, cut, 100-taken-cut)
		}
		_ = h.paced.Close()
	})
}
