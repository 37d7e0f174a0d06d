package clients

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/e2e/process"
)

// command tells a driver to open a stream, or to close one.
type command struct {
	Open   int    `json:"open,omitempty"`
	Close  int    `json:"close,omitempty"`
	Client string `json:"client,omitempty"`
	URL    string `json:"url,omitempty"`
	Raised bool   `json:"raised,omitempty"` // room for large events, where a client has a bound of its own
}

// report is what a client did: open, event, lost (it tries again), ended (it leaves that to the application) or dead
// (it has given up).
type report struct {
	Stream  int    `json:"stream"`
	Type    string `json:"type"`
	Event   string `json:"event"`
	ID      string `json:"id"`
	Data    string `json:"data"`
	Message string `json:"message"`
}

// driver is a program that runs clients. It gets commands and sends reports as JSON lines over one TCP connection.
type driver struct {
	conn net.Conn

	mu    sync.Mutex
	last  int
	heard map[int]func(report)
	lost  error // why no more reports can come
}

// startDriver runs a driver until the test ends. Between before and after, its arguments have the address to which it
// is to connect.
func startDriver(t *testing.T, program string, before []string, after ...string) *driver {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	args := append(append(before, listener.Addr().String()), after...)
	p, err := process.Start(process.Options{Path: path, Args: args, Env: []string{"TMPDIR=" + t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := acceptFrom(listener, p)
	if err != nil {
		p.Kill()
		t.Fatalf("%s: %v\n%s", args[0], err, p.Stderr)
	}
	d := &driver{conn: conn, heard: map[int]func(report){}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.listen()
	}()
	t.Cleanup(func() {
		_ = conn.Close() // this ends the driver
		<-done
		select {
		case <-p.Done():
		case <-time.After(10 * time.Second):
			p.Kill()
		}
		if t.Failed() && p.Stderr.String() != "" {
			t.Logf("%s:\n%s", args[0], p.Stderr)
		}
	})
	return d
}

// acceptFrom waits for the process's connection.
func acceptFrom(listener net.Listener, p *process.Process) (net.Conn, error) {
	accepted := make(chan struct{})
	defer close(accepted)
	go func() {
		select {
		case <-p.Done():
		case <-time.After(patience):
		case <-accepted:
		}
		_ = listener.Close() // it is closed already if a connection was accepted
	}()
	return listener.Accept()
}

func (d *driver) listen() {
	decoder := json.NewDecoder(bufio.NewReaderSize(d.conn, 64<<10))
	for {
		var r report
		if err := decoder.Decode(&r); err != nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			if errors.Is(err, io.EOF) {
				err = errors.New("the driver has ended")
			}
			d.lost = err
			return
		}
		d.mu.Lock()
		heard := d.heard[r.Stream]
		d.mu.Unlock()
		if heard != nil { // a report may cross the command to close
			heard(r)
		}
	}
}

// open makes a client open a stream. One goroutine calls heard with the reports, in order.
func (d *driver) open(c command, heard func(report)) (id int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	c.Open = d.last
	d.heard[c.Open] = heard
	return c.Open, d.send(c)
}

// close makes a client close a stream. Apart from a call that is under way, heard is not called any more.
func (d *driver) close(id int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.heard, id)
	return d.send(command{Close: id})
}

// send sends a command. The caller holds d.mu.
func (d *driver) send(c command) error {
	if d.lost != nil {
		return d.lost
	}
	return json.NewEncoder(d.conn).Encode(c)
}
