//go:build linux

package load

import (
	"crypto/tls"
	"io"
	"net"
	"time"
)

// connectTLS opens a connection with TLS, which the API server requires, and sends the request.
func connectTLS(t Target, request []byte) (net.Conn, error) {
	conn, err := tls.Dial("tcp", t.Address, &tls.Config{
		InsecureSkipVerify: true, // see Target.TLS
		NextProtos:         []string{"http/1.1"},
	})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(request); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// readAll reads a client's stream over TLS until it ends, or the client has another connection. Each stream has its own
// goroutine, so this client costs more than the one without TLS. Comparisons of latencies have to take that into account.
func (c *Client) readAll(reader *client, conn io.Closer, from io.Reader) {
	buf := make([]byte, 16<<10) // no TLS record is larger
	for {
		n, err := from.Read(buf)
		now := time.Now().UnixNano()
		c.mu.Lock()
		if reader.conn != conn {
			c.mu.Unlock()
			return // closed by us
		}
		if n > 0 {
			if failed := reader.read(buf[:n], now); failed != nil {
				err = failed
			}
		}
		if err != nil {
			c.drop(reader, err)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}
