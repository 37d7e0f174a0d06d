package http

import (
	"net"

	"golang.org/x/sys/unix"
)

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
