package conn

import (
	"net"

	"golang.org/x/sys/unix"
)

// tellRoomEarly lets the kernel say that a connection can be written to once less than half of earlyRoom is still to be
// sent, not only when a third of its buffer is free: that may be megabytes, and take a slow client longer than he is
// waited for. It is for connections that have no other way to find out that he takes something.
func tellRoomEarly(conn *net.TCPConn) {
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { // it fails if the connection is closed
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, earlyRoom)
		})
	}
}

const earlyRoom = 64 << 10

// bytesTaken is how many bytes the other side's kernel has ever acknowledged.
func bytesTaken(conn *net.TCPConn) (bytes uint64, known bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	var info *unix.TCPInfo
	failed := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if failed != nil || err != nil {
		return 0, false
	}
	return info.Bytes_acked, true
}
