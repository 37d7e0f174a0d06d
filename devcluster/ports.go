package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reservePort reserves a free port of 127.0.0.1 until release, also while the component that uses it is down. The
// socket is bound but does not listen, so a connection to the port is refused while no component listens there. The
// component binds the same port, for which both need SO_REUSEPORT. SO_REUSEADDR would not do: any process could then
// take the port while nothing listens on it.
func reservePort() (port int, release func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("reserving a port: %w", err)
	}
	release = func() { unix.Close(fd) }
	bind := func() error {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err := bind(); err != nil {
		release()
		return 0, nil, fmt.Errorf("reserving a port: %w", err)
	}
	addr, err := unix.Getsockname(fd)
	if err != nil {
		release()
		return 0, nil, fmt.Errorf("reserving a port: %w", err)
	}
	return addr.(*unix.SockaddrInet4).Port, release, nil
}
