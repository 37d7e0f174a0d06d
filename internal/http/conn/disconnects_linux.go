package conn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Disconnects notices clients that leave, with one goroutine for all connections. A goroutine for each, waiting in a
// read, would be most of the cost of an idle stream.
//
// It is an epoll instance (epoll(7)), for which the runtime's own instance waits. A socket leaves it when it is
// closed. Events name streams by number, never by descriptor, since the kernel reuses descriptors.
type Disconnects struct {
	file *os.File
	raw  syscall.RawConn
}

func NewDisconnects() (*Disconnects, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // makes os.NewFile use the runtime's poller
		return nil, errors.Join(err, syscall.Close(fd))
	}
	d := &Disconnects{file: os.NewFile(uintptr(fd), "epoll")}
	if d.raw, err = d.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, d.file.Close())
	}
	return d, nil
}

// Add makes Run call gone once, with a number, when the client of a connection leaves. Over TLS a client may say first
// that it leaves, and not close the connection. So Run calls heard instead if it says anything, after which it is not
// noticed any more that the client leaves.
func (d *Disconnects) Add(c *Direct, number uint64) error {
	noticed := uint32(syscall.EPOLLRDHUP | syscall.EPOLLONESHOT) // EPOLLERR and EPOLLHUP are always reported
	if c.secured != nil {
		noticed |= syscall.EPOLLIN
	}
	event := syscall.EpollEvent{
		Events: noticed,
		Fd:     int32(number),
		Pad:    int32(number >> 32),
	}
	var refused error
	err := d.raw.Control(func(epoll uintptr) {
		refused = syscall.EpollCtl(int(epoll), syscall.EPOLL_CTL_ADD, int(c.socket), &event)
	})
	return errors.Join(err, refused)
}

// Run calls gone with the numbers of clients that leave, or heard, until the context ends.
func (d *Disconnects) Run(ctx context.Context, gone, heard func(number uint64)) error {
	defer d.file.Close()
	defer context.AfterFunc(ctx, func() { _ = d.file.Close() })() // ends the wait
	var events [128]syscall.EpollEvent
	for {
		var n int
		var failed error
		err := d.raw.Read(func(epoll uintptr) bool {
			n, failed = syscall.EpollWait(int(epoll), events[:], 0)
			return n > 0 || failed != nil && failed != syscall.EINTR
		})
		if ctx.Err() != nil {
			return nil
		}
		if err := errors.Join(err, failed); err != nil {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, event := range events[:n] {
			number := uint64(uint32(event.Fd)) | uint64(uint32(event.Pad))<<32
			if event.Events&^syscall.EPOLLIN == 0 {
				heard(number)
			} else {
				gone(number)
			}
		}
	}
}
