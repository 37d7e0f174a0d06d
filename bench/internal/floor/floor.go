//go:build linux

// Package floor is the least that a fan-out costs, as a server beside which the gateway is measured.
package floor

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// Floor shows the least that a fan-out costs with one write for each client and event. It uses raw sockets, a head
// that is made beforehand, one buffer for all clients and one thread; all else that a server needs is missing. A
// server can be cheaper only by writing several events at once.
type Floor struct {
	*source.Source
	frames chan []byte

	mu      sync.Mutex
	clients []int
}

// Queued is how many events may wait if the server is slower than the source; a burst fits in.
const Queued = 16384

// New makes a floor whose events carry what render returns, in the gateway's form.
func New(render func(version uint64, m mark.Mark) []byte) *Floor {
	f := &Floor{frames: make(chan []byte, Queued)}
	f.Source = source.New(func(m mark.Mark) { f.frames <- frame(render, m) })
	return f
}

// frame is an event in the gateway's form, as a chunk of its own, with an id as long as the gateway's.
func frame(render func(version uint64, m mark.Mark) []byte, m mark.Mark) []byte {
	version := apiserver.FirstVersion + m.Seq
	event := fmt.Appendf(nil, "event: modified\nid: aaaabbbb.%d\ndata: %s\n\n", version, render(version, m))
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(event), event)
}

var floorHead = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n" +
	"Transfer-Encoding: chunked\r\n\r\nc\r\n: kubecast\n\n\r\n")

// Start listens and returns the address.
func (f *Floor) Start(_ process.None, address *string) error {
	listener, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := syscall.Bind(listener, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := syscall.Listen(listener, syscall.SOMAXCONN); err != nil {
		return err
	}
	bound, err := syscall.Getsockname(listener)
	if err != nil {
		return err
	}
	*address = fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	go f.accept(listener) // both last as long as the process
	go f.write()
	return nil
}

func (f *Floor) accept(listener int) {
	request := make([]byte, 4<<10)
	for {
		fd, _, err := syscall.Accept4(listener, syscall.SOCK_CLOEXEC)
		if err != nil {
			fmt.Fprintln(os.Stderr, "floor: accept:", err)
			return
		}
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1) // as Go does
		// The client sends its request in one piece, at once.
		if n, err := syscall.Read(fd, request); err != nil || !bytes.HasSuffix(request[:n], []byte("\r\n\r\n")) {
			_ = syscall.Close(fd)
			continue
		}
		// Nothing else may write to the connection before the head is out.
		if _, err := syscall.Write(fd, floorHead); err != nil {
			_ = syscall.Close(fd)
			continue
		}
		f.mu.Lock()
		f.clients = append(f.clients, fd)
		f.mu.Unlock()
	}
}

func (f *Floor) write() {
	runtime.LockOSThread()
	for frame := range f.frames {
		f.mu.Lock()
		kept := f.clients[:0]
		for _, fd := range f.clients {
			if err := writeAll(fd, frame); err != nil {
				_ = syscall.Close(fd)
				continue
			}
			kept = append(kept, fd)
		}
		f.clients = kept
		f.mu.Unlock()
	}
}

func writeAll(fd int, frame []byte) error {
	for len(frame) > 0 {
		n, err := syscall.Write(fd, frame)
		if err != nil {
			return err
		}
		frame = frame[n:]
	}
	return nil
}
