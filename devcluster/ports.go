package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reservePort takes a free port of 127.0.0.1 and keeps others off it until release, also while the component it is
// for is down. The socket is bound but does not listen, so a connection to the port is refused as long as no component
// listens there. The component binds the same port beside it: both need SO_REUSEPORT.
// (Not SO_REUSEADDR, with which any listener could take the port while nobody listens on it.)
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
