package http

import (
	"syscall"
)

// canAttempt says that sockets can be written to without waiting, and departures can tell who has left.
const canAttempt = true

// writeNow writes what the kernel takes of a piece at once.
func writeNow(fd uintptr, piece []byte) (taken int, err error) {
	for taken < len(piece) {
		n, err := syscall.Write(int(fd), piece[taken:])
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

// readNow throws away what has arrived, up to so many bytes.
func readNow(fd uintptr, most int) {
	var scrap [512]byte
	for most > 0 {
		n, err := syscall.Read(int(fd), scrap[:])
		if err != nil || n == 0 {
			return
		}
		most -= n
	}
}
