//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// connection is a client with one connection, which costs less than net/http's: the clients share the machine with what
// is measured.
type connection struct {
	net.Conn
	read   *bufio.Reader
	header string // of each request, from the second line on
}

func (s server) connect(ctx context.Context) (*connection, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	if s.tls != nil {
		conn = tls.Client(conn, s.tls)
	}
	return &connection{
		Conn:   conn,
		read:   bufio.NewReaderSize(conn, 64<<10),
		header: "Host: " + s.address + "\r\nAccept: application/json\r\nAuthorization: Bearer " + s.token + "\r\n\r\n",
	}, nil
}

// get sends a request and reads the answer, whose size it returns.
func (c *connection) get(path string) (int64, error) {
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\n"+c.header); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, response.Status)
	}
	return n, err
}

// server is the API server, as its admin reaches it.
func (c *cluster) server() (server, error) {
	config, err := tlsConfig(c.config)
	return server{
		address: strings.TrimPrefix(c.config.Host, "https://"), pid: c.apiServer, tls: config, token: c.config.BearerToken,
	}, err
}
