package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a kubelet with one file, behind an API server whose connections break.
type node struct {
	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	clock   time.Time
	lines   []string // as a kubelet sends them
	times   []time.Time
	from    int // lines before this one were rotated away
	ended   bool
	cut     int // connections of an earlier cut are broken
	clean   bool
	open    int
	most    int // that were open at once
	reads   int
	looks   int // without following
}

func newNode() *node {
	return &node{changed: make(chan struct{}), clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (n *node) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	close(n.changed)
	n.changed = make(chan struct{})
}

// write writes a line, after some time on the node's clock.
func (n *node) write(after time.Duration, text string) {
	n.change(func() {
		n.clock = n.clock.Add(after)
		n.lines = append(n.lines, n.clock.Format("2006-01-02T15:04:05.000000000Z07:00")+" "+text+"\n")
		n.times = append(n.times, n.clock)
	})
}

// sever breaks the connections: cleanly at a line's end, as by an API server that ends, or anywhere.
func (n *node) sever(clean bool) { n.change(func() { n.cut++; n.clean = clean }) }

func (n *node) Ended(context.Context, ContainerRun) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ended, nil
}

var errSevered = errors.New("severed")

func (n *node) Read(ctx context.Context, _ ContainerRun, q ReadOptions) (io.ReadCloser, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.from
	if q.Tail >= 0 {
		at = max(at, len(n.lines)-q.Tail)
	}
	if !q.Follow {
		n.looks++
		var text strings.Builder
		for i := at; i < len(n.lines); i++ {
			if !n.times[i].Before(q.Since) {
				text.WriteString(n.lines[i])
			}
		}
		return io.NopCloser(strings.NewReader(text.String())), nil
	}
	n.reads++
	n.open++
	n.most = max(n.most, n.open)
	body, into := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		err := n.send(ctx, into, at, q.Since, n.cutNow())
		_ = into.CloseWithError(err)
		n.change(func() { n.open-- })
	}()
	return &cancelling{body, cancel}, nil
}

type cancelling struct {
	*io.PipeReader
	cancel func()
}

func (c *cancelling) Close() error {
	c.cancel()
	return c.PipeReader.Close()
}

func (n *node) cutNow() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut
}

func (n *node) send(ctx context.Context, into io.Writer, at int, since time.Time, cut int) error {
	for {
		n.mu.Lock()
		severed, clean, ended, changed := n.cut != cut, n.clean, n.ended, n.changed
		text := ""
		more := at < len(n.lines)
		if more && !n.times[at].Before(since) {
			text = n.lines[at]
		}
		n.mu.Unlock()
		switch {
		case severed && clean:
			return io.EOF
		case severed:
			_, _ = io.WriteString(into, text[:len(text)/2])
			return errSevered
		case more && text == "": // before what was asked for
			at++
		case more:
			if _, err := io.WriteString(into, text); err != nil {
				return err
			}
			at++
		case ended:
			return io.EOF
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// reader is what a reader was told.
type reader struct {
	texts  []string // "" where lines may be missing
	resets int
	slow   int
	err    error
}

// read reads a cursor to its end.
func read(ctx context.Context, c *Reader, pause func() time.Duration) (r reader) {
	defer c.Close()
	wakes := stream.NewWakeChannel()
	batch := make([]*Line, 0, 8)
	for ctx.Err() == nil {
		got, err := c.Next(batch[:0], wakes)
		for _, line := range got {
			if line.Reset != "" {
				r.resets++
			}
			r.texts = append(r.texts, line.Text)
		}
		switch {
		case errors.Is(err, ErrSlow):
			r.slow++
			r.texts = append(r.texts, "")
			continue
		case err != nil:
			r.err = err
			return r
		}
		if len(got) < cap(batch) {
			select {
			case <-wakes.C:
			case <-ctx.Done():
			}
		}
		if wait := pause(); wait > 0 {
			time.Sleep(wait)
		}
	}
	return r
}

// check fails unless lines, which are numbered, come in order, each once, and without a gap that is not marked.
func (r *reader) check() error {
	next, known := 0, false
	for i, text := range r.texts {
		if text == "" {
			known = false
			continue
		}
		number, err := strconv.Atoi(strings.Fields(text)[0])
		switch {
		case err != nil:
			return err
		case number < next:
			return fmt.Errorf("line %d comes again, or too late, as number %d", number, i)
		case known && number != next:
			return fmt.Errorf("behind line %d comes %d", next-1, number)
		}
		next, known = number+1, true
	}
	return nil
}

// roam reads as many lines as it likes, leaves, and goes on behind them at one of some replicas,
// until the run has ended.
func roam(ctx context.Context, at []*Feeds, n *node, run ContainerRun, start Start, random *rand.Rand) (r reader) {
	for ctx.Err() == nil {
		c, err := at[random.IntN(len(at))].Open(n, run, "bob", start)
		if err != nil {
			r.err = err
			return r
		}
		reading, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(1500))*time.Millisecond)
		most := 1 + random.IntN(200)
		wakes := stream.NewWakeChannel()
		for most > 0 && reading.Err() == nil && r.err == nil {
			got, err := c.Next(make([]*Line, 0, min(most, 1+random.IntN(20))), wakes)
			for _, line := range got {
				start = Start{After: &line.After}
				r.texts = append(r.texts, line.Text)
				if line.Reset != "" {
					r.resets++
				}
			}
			most -= len(got)
			switch {
			case errors.Is(err, ErrSlow):
				r.slow++
				r.texts = append(r.texts, "")
			case errors.Is(err, ErrLimit): // it comes again
				most = 0
			case err != nil:
				r.err = err
			case len(got) == 0:
				select {
				case <-wakes.C:
				case <-reading.Done():
				}
			}
		}
		cancel()
		c.Close()
		if r.err != nil {
			return r
		}
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
	}
	return r
}

func feedsFor(t *testing.T, ring int) *Feeds { return feedsOf(t, 8, ring) }

func feedsOf(t *testing.T, upstreams, ring int) *Feeds {
	f := New(Options{Upstreams: upstreams, PerUser: 100, Ring: ring, Linger: time.Second, Registerer: prometheus.NewRegistry()})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	synctest.Wait()
	return f
}

// What each reader is told is the file, however the connections break, the clock jumps and files are rotated.
func TestReadersAreToldTheFile(t *testing.T) {
	const seeds = 48
	resets := map[bool]int{}
	for seed := range uint64(seeds) {
		calm := seed%3 == 0                  // without rotation, nothing may be missing
		longer := seed%3 == 2 || seed%6 == 3 // there is more than a feed begins with
		straight := seed%4 >= 2              // the clock never goes back
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			n, f := newNode(), feedsFor(t, 1<<20)
			replicas := []*Feeds{feedsFor(t, 16<<10), feedsFor(t, 1<<20)}
			run := ContainerRun{Pod: "web"}
			total := 300 + random.IntN(600)
			if longer {
				total += firstTail
			}
			number := 0
			step := func() {
				after := []time.Duration{0, 0, 0, 1, time.Microsecond, 3 * time.Millisecond, 400 * time.Millisecond, 7 * time.Second}[random.IntN(8)]
				if !straight && random.IntN(40) == 0 {
					after = -time.Duration(random.IntN(30)) * time.Second // by less than it goes on, in the long run
				}
				n.write(after, strconv.Itoa(number)+" of many"+strings.Repeat("!", random.IntN(40)))
				number++
			}
			before := 1 + random.IntN(50)
			if longer {
				before += firstTail
			}
			for range before {
				step()
			}
			var reading sync.WaitGroup
			told := make([]reader, 4)
			for i := range told {
				patience := rand.New(rand.NewPCG(seed, uint64(10+i)))
				begins := time.Duration(patience.IntN(3000)) * time.Millisecond * time.Duration(min(i, 1))
				slow := i == 3
				reading.Go(func() {
					time.Sleep(begins)
					c, err := f.Open(n, run, "alice", Start{Tail: 1000})
					if err != nil {
						t.Error(err)
						return
					}
					told[i] = read(t.Context(), c, func() time.Duration {
						if slow {
							return time.Duration(patience.IntN(50)) * time.Millisecond
						}
						return 0
					})
				})
			}
			roamed := make([]reader, 4)
			for i := range roamed {
				likes := rand.New(rand.NewPCG(seed, uint64(20+i)))
				start := []Start{{Whole: true}, {Tail: -1}, {Tail: total}, {Since: n.times[len(n.times)-1]}}[i]
				reading.Go(func() { roamed[i] = roam(t.Context(), replicas, n, run, start, likes) })
			}
			if calm { // what was there has been read before anything breaks
				time.Sleep(time.Second)
			}
			for number < total {
				for range 1 + random.IntN(10) {
					step()
				}
				switch random.IntN(12) {
				case 0, 1:
					n.sever(random.IntN(2) == 0)
				case 2:
					if !calm {
						n.change(func() { n.from = len(n.lines) - random.IntN(3) })
					}
				}
				time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
			}
			n.change(func() { n.ended = true })
			reading.Wait()
			for i, r := range told {
				if err := r.check(); err != nil || !errors.Is(r.err, io.EOF) {
					t.Errorf("seed %d, reader %d: %v, ended with %v", seed, i, err, r.err)
				}
				if last := r.texts[len(r.texts)-1]; last != "" && !strings.HasPrefix(last, strconv.Itoa(number-1)+" ") {
					t.Errorf("seed %d, reader %d: the last line is %q of %d", seed, i, last, number)
				}
				if calm && (r.resets > 0 || !longer && len(r.texts) != number) {
					t.Errorf("seed %d, reader %d: %d lines of %d, %d resets", seed, i, len(r.texts), number, r.resets)
				}
				resets[calm] += r.resets
			}
			for i, r := range roamed {
				err := r.check()
				if !straight && r.resets > 0 {
					err = nil // of what was told, it is only known where that was, by a clock that went back
				}
				if err != nil || !errors.Is(r.err, io.EOF) {
					t.Errorf("seed %d, roaming reader %d: %v, ended with %v", seed, i, err, r.err)
				}
				if calm && straight && r.slow == 0 && i < 3 && len(r.texts) != number {
					t.Errorf("seed %d, roaming reader %d: %d lines of %d", seed, i, len(r.texts), number)
				}
				if calm && straight && r.resets > 0 {
					t.Errorf("seed %d, roaming reader %d: %d resets", seed, i, r.resets)
				}
			}
		})
	}
	if resets[false] == 0 {
		t.Error("no file was rotated at the wrong moment: the test shows less than it says")
	}
}
