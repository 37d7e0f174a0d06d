//go:build linux

package load

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// addCoded begins to read a new connection whose answer may be compressed. As with TLS, each has a
// goroutine of its own, so this client costs more, decoding included, than the one that epoll
// serves.
func (c *Client) addCoded(reader *client, fd int, snapshot bool) error {
	file := os.NewFile(uintptr(fd), "")
	conn, err := net.FileConn(file)
	_ = file.Close() // conn has a descriptor of its own
	if err != nil {
		return err
	}
	c.mu.Lock()
	reader.begin(-1, snapshot)
	reader.conn = conn
	c.mu.Unlock()
	go func() {
		err := c.readCoded(reader, conn)
		c.mu.Lock()
		defer c.mu.Unlock()
		if reader.conn == conn { // else it was closed by us
			c.drop(reader, err)
		}
	}()
	return nil
}

// readCoded reads an answer until it ends.
func (c *Client) readCoded(reader *client, conn net.Conn) error {
	wire := &counted{Reader: conn}
	response, err := http.ReadResponse(bufio.NewReader(wire), nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("answered with %s", response.Status)
	}
	c.mu.Lock()
	reader.stream.state = inData
	reader.head()
	c.mu.Unlock()
	body, end, err := Decoded(response)
	if err != nil {
		return err
	}
	defer end()
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		now := time.Now().UnixNano()
		c.mu.Lock()
		if reader.conn != conn {
			c.mu.Unlock()
			return nil
		}
		reader.group.stats.Bytes += wire.n
		wire.n, reader.now = 0, now
		reader.stream.text(buf[:n])
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// Decoded is the body of an answer in its Content-Encoding, which what reads it ends.
func Decoded(response *http.Response) (body io.Reader, end func(), err error) {
	switch coding := response.Header.Get("Content-Encoding"); coding {
	case "":
		return response.Body, func() {}, nil
	case "gzip":
		r, err := gzip.NewReader(response.Body)
		return r, func() {}, err
	case "zstd":
		r, err := zstd.NewReader(response.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	default:
		return nil, nil, fmt.Errorf("there is no decoder for %q", coding)
	}
}

// counted counts the bytes that it reads.
type counted struct {
	io.Reader
	n uint64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += uint64(n)
	return n, err
}
