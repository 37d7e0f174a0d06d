//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// connection is a client with one connection. The clients share the machine with what is measured, so it does as
// little as possible: requests are made beforehand, and only the length of an answer is parsed.
type connection struct {
	net.Conn
	read *bufio.Reader
}

func (s server) connect(ctx context.Context) (*connection, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	if s.tls != nil {
		conn = tls.Client(conn, s.tls)
	}
	return &connection{Conn: conn, read: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// request returns the request that get sends.
func (s server) request(path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\nAuthorization: Bearer %s\r\n\r\n", path, s.address, s.token)
}

// get sends a request, reads the answer, and returns the size of its body.
func (c *connection) get(request []byte) (size int, err error) {
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	return c.answer()
}

// getUntil sends a request, and reads the answer up to a line that contains a text.
func (c *connection) getUntil(request, text []byte) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	for {
		line, err := c.read.ReadSlice('\n')
		if err != nil || bytes.Contains(line, text) {
			return err
		}
	}
}

var (
	contentLength = []byte("Content-Length: ")
	chunked       = []byte("Transfer-Encoding: chunked\r\n")
)

// answer reads an answer in the form in which net/http's server writes it.
func (c *connection) answer() (size int, err error) {
	status, err := c.read.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200 ")) {
		return 0, errors.New(strings.TrimSpace(string(status)))
	}
	inChunks := false
	for {
		line, err := c.read.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		switch {
		case len(line) == len("\r\n"):
			if inChunks {
				return c.chunks()
			}
			return c.read.Discard(size)
		case bytes.HasPrefix(line, contentLength):
			if size, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil {
				return 0, err
			}
		case bytes.Equal(line, chunked):
			inChunks = true
		}
	}
}

func (c *connection) chunks() (size int, err error) {
	for {
		line, err := c.read.ReadSlice('\n')
		if err != nil {
			return size, err
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return size, err
		}
		if _, err := c.read.Discard(int(n) + len("\r\n")); err != nil || n == 0 {
			return size, err
		}
		size += int(n)
	}
}

// server returns the API server, with the admin's credentials.
func (c *cluster) server() (server, error) {
	config, err := tlsConfig(c.config)
	return server{
		address: strings.TrimPrefix(c.config.Host, "https://"), pid: c.apiServer, tls: config, token: c.config.BearerToken,
	}, err
}
