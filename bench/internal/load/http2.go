//go:build linux

package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
)

// shared is a connection of HTTP/2 with the streams of some clients of a group.
type shared struct {
	open sync.Once
	conn *http.ClientConn
	err  error
	mu   sync.Mutex
	left int // streams that have not ended
}

// sharedBy returns the connection of a client.
func (c *Client) sharedBy(reader *client, streams int) *shared {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := reader.group
	if g.shared == nil {
		g.shared = map[int]*shared{}
	}
	number := reader.index / streams
	found := g.shared[number]
	if found == nil {
		found = &shared{left: min(streams, len(g.clients)-number*streams)}
		g.shared[number] = found
	}
	return found
}

// stream begins a stream.
func (s *shared) stream(ctx context.Context, t Target, index int, lastEventID string) (*http.Response, error) {
	s.open.Do(func() {
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+index%sources))}}
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // see Target.TLS
			DialContext:     from.DialContext, Protocols: &http.Protocols{}, DisableCompression: true,
		}
		transport.Protocols.SetHTTP2(true)
		s.conn, s.err = transport.NewClientConn(context.Background(), "https", t.Address)
	})
	if s.err != nil {
		return nil, s.err
	}
	request, err := t.newRequest(ctx, index, lastEventID)
	if err != nil {
		return nil, err
	}
	response, err := s.conn.RoundTrip(request)
	if err == nil && (response.ProtoMajor != 2 || response.StatusCode != http.StatusOK) {
		err = fmt.Errorf("answered with %s %s", response.Proto, response.Status)
	}
	return response, err
}

// end closes the connection with the last of its streams.
func (s *shared) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left == 0 && s.conn != nil {
		_ = s.conn.Close() // it is done with
	}
}

// sharedStream is one client's stream of a connection.
type sharedStream struct {
	cancel func()
	of     *shared
}

func (s *sharedStream) Close() error {
	s.cancel()
	s.of.end()
	return nil
}

// addHTTP2 opens a client's stream on the connection that it shares, and begins to read it. As with TLS, each has a
// goroutine of its own. Of its bytes, only the body's are counted.
func (c *Client) addHTTP2(reader *client, t Target, lastEventID string, snapshot bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	stream := &sharedStream{cancel, c.sharedBy(reader, t.HTTP2)}
	response, err := stream.of.stream(ctx, t, reader.index, lastEventID)
	if err != nil {
		_ = stream.Close()
		return err
	}
	c.mu.Lock()
	reader.begin(-1, snapshot)
	reader.conn = stream
	reader.stream.state = inData
	reader.head()
	c.mu.Unlock()
	go func() {
		defer response.Body.Close()
		c.readAll(reader, stream, response.Body)
	}()
	return nil
}
