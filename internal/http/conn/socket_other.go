//go:build !linux

package conn

import (
	"context"
	"net"
)

// On systems other than Linux, each stream has a goroutine of its own, and another one that notices when the client
// leaves.

type socket int

const none socket = -1

func socketOf(*net.TCPConn) socket { return none }

func (socket) offer([]byte) (int, error) { panic("unreachable") }
func (socket) discard(int)               { panic("unreachable") }

// tellRoomEarly makes the kernel's buffer so small that a third of it is soon taken.
func tellRoomEarly(conn *net.TCPConn) { _ = conn.SetWriteBuffer(256 << 10) } // a smaller or larger one would do, too

func bytesTaken(*net.TCPConn) (bytes uint64, known bool) { return 0, false }

type Disconnects struct{}

func NewDisconnects() (*Disconnects, error) { return &Disconnects{}, nil }

func (*Disconnects) Add(*Direct, uint64) error { panic("unreachable") }

func (*Disconnects) Run(ctx context.Context, _, _ func(uint64)) error {
	<-ctx.Done()
	return nil
}
