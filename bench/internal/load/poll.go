//go:build linux

package load

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Client has all clients of a process. The parent process calls its exported methods with two parameters.
type Client struct {
	epoll int

	mu     sync.Mutex
	groups map[string]*group
	byFD   map[int32]*client
}

// New returns a Client without connections.
func New() (*Client, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	return &Client{epoll: epoll, groups: map[string]*group{}, byFD: map[int32]*client{}}, nil
}

// Receiver is the role of a process full of clients.
func Receiver() (any, error) { return Start() }

// Start returns a Client that reads for as long as the process lives, which ends if it cannot.
func Start() (*Client, error) {
	c, err := New()
	if err != nil {
		return nil, err
	}
	go func() {
		if err := c.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
			os.Exit(1)
		}
	}()
	return c, nil
}

const (
	readSize  = 256 << 10 // how much is read from one connection before the next one's turn
	pollBatch = 256
)

// Run reads from all connections for as long as the process lives.
func (c *Client) Run() error {
	runtime.LockOSThread()
	events := make([]syscall.EpollEvent, pollBatch)
	buf := make([]byte, readSize)
	for {
		n, err := syscall.EpollWait(c.epoll, events, -1)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("epoll_wait: %w", err)
		}
		c.mu.Lock()
		for _, event := range events[:n] {
			if reader := c.byFD[event.Fd]; reader != nil {
				c.read(reader, buf)
			}
		}
		c.mu.Unlock()
	}
}

// read reads once from a connection. If more is left, the next epoll_wait says so.
func (c *Client) read(reader *client, buf []byte) {
	n, err := syscall.Read(reader.fd, buf)
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return
	case err == nil && n == 0:
		err = io.EOF
	case err == nil:
		err = reader.read(buf[:n], time.Now().UnixNano())
	}
	if err != nil {
		c.drop(reader, err)
	}
}

// drop ends a connection.
func (c *Client) drop(reader *client, err error) {
	if reader.conn != nil {
		_ = reader.conn.Close() // its reader ends, too
		reader.conn = nil
	} else {
		delete(c.byFD, int32(reader.fd))
		_ = syscall.Close(reader.fd)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		err = nil // a server may go; end reports a missing answer
	}
	reader.end(err)
}

// add begins to read a new connection of a client.
func (c *Client) add(reader *client, fd int, snapshot, raw bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	reader.begin(fd, snapshot)
	reader.stream.raw = raw
	c.byFD[int32(fd)] = reader
	return c.watch(syscall.EPOLL_CTL_ADD, fd)
}

func (c *Client) watch(operation, fd int) error {
	event := &syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP, Fd: int32(fd)}
	if err := syscall.EpollCtl(c.epoll, operation, fd, event); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}
