package conn

import (
	"net"
	"syscall"
)

// socket is a connection's descriptor, which can be written to without waiting. It is valid until the connection is
// closed. So only the code that closes the connection may use it.
type socket int

const none socket = -1

func socketOf(conn *net.TCPConn) socket {
	s := none
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { s = socket(fd) }) // fails only if the connection is closed
	}
	return s
}

// offer writes as much of a piece as the kernel takes at once.
func (s socket) offer(piece []byte) (taken int, err error) {
	for taken < len(piece) {
		n, err := syscall.Write(int(s), piece[taken:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return taken, nil
		case err != nil:
			return taken, err
		}
		taken += n
	}
	return taken, nil
}

// discard reads and drops what has arrived, up to so many bytes.
func (s socket) discard(most int) {
	var scrap [512]byte
	for most > 0 {
		n, err := syscall.Read(int(s), scrap[:])
		if err != nil || n == 0 {
			return
		}
		most -= n
	}
}
