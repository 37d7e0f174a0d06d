package conn

import (
	"net"

	"golang.org/x/sys/unix"
)

// tellRoomEarly makes the kernel take no more than earlyRoom before it is sent, and report a
// connection as writable once less than half of that is still to be sent, not only when a third of
// its buffer is free. That third may be megabytes, for which a slow client may need longer than a
// write waits, and which would be copied for a client that takes nothing.
func tellRoomEarly(conn *net.TCPConn) {
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { // fails only if the connection is closed
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, earlyRoom)
		})
	}
}

const earlyRoom = 64 << 10

// bytesTaken returns how many bytes the client's kernel has acknowledged since the connection was opened.
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
