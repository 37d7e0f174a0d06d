package logs

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/kubecast/kubecast/internal/stream"
)

// next reads until there is a line.
func next(t *testing.T, c *Reader) *Line {
	t.Helper()
	wakes := stream.NewWakeChannel()
	for deadline := time.After(time.Hour); ; {
		got, err := c.Next(make([]*Line, 0, 1), wakes)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 {
			return got[0]
		}
		select {
		case <-wakes.C:
		case <-deadline:
			t.Fatal("no line comes")
		}
	}
}

func open(t *testing.T, f *Feeds, source Backend, run, user string, tail int) *Reader {
	t.Helper()
	c, err := f.Open(source, ContainerRun{Pod: run}, user, Start{Tail: tail})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestBadLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f := newNode(), feedsFor(t, 1<<20)
		c := open(t, f, n, "web", "alice", 10)
		n.write(0, "\x00\xff binary \xe2\x82")
		if line := next(t, c); !utf8.ValidString(line.Text) || !strings.Contains(line.Text, "binary") || line.Cut {
			t.Errorf("%+v", line)
		}
		n.write(0, strings.Repeat("x", 10<<20))
		if line := next(t, c); len(line.Text) != MaxText || !line.Cut {
			t.Errorf("%d bytes, cut: %t", len(line.Text), line.Cut)
		}
		n.write(0, "")
		if line := next(t, c); line.Text != "" || line.Cut || !line.Time.Equal(n.clock) {
			t.Errorf("%+v", line)
		}
		// What breaks among such lines is resumed as among others.
		n.sever(false)
		n.write(0, "and on")
		if line := next(t, c); line.Text != "and on" || line.Reset != "" {
			t.Errorf("%+v", line)
		}
	})
}

// trickling is a log that comes in pieces, without the end of a line for long.
type trickling struct{ pieces chan string }

func (s trickling) Ended(context.Context, ContainerRun) (bool, error) { return false, nil }
func (s trickling) Read(ctx context.Context, _ ContainerRun, q ReadOptions) (io.ReadCloser, error) {
	if !q.Follow {
		return io.NopCloser(strings.NewReader("")), nil
	}
	body, into := io.Pipe()
	go func() {
		for {
			select {
			case piece := <-s.pieces:
				if _, err := io.WriteString(into, piece); err != nil {
					return
				}
			case <-ctx.Done():
				_ = into.CloseWithError(ctx.Err())
				return
			}
		}
	}()
	return body, nil
}

func TestLineWithoutAnEndHoldsBackNothingBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := trickling{make(chan string)}, feedsFor(t, 1<<20)
		c := open(t, f, s, "web", "alice", 10)
		s.pieces <- "2026-01-01T00:00:00Z before\n2026-01-01T00:00:01.5Z a line"
		if line := next(t, c); line.Text != "before" {
			t.Errorf("%+v", line)
		}
		for range 60 {
			time.Sleep(time.Second)
			s.pieces <- "."
		}
		s.pieces <- "\nnot even a time\n2026-01-01T00:00:02Z after\n"
		if line := next(t, c); line.Text != "a line"+strings.Repeat(".", 60) {
			t.Errorf("%+v", line)
		}
		if line := next(t, c); line.Text != "after" {
			t.Errorf("%+v", line)
		}
	})
}

// However many lines come at once, they take no more memory than the ring, and who does not read is
// told that lines are missing.
func TestManyLinesAtOnceFillTheRingOnly(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	synctest.Test(t, func(t *testing.T) {
		f := feedsFor(t, 1<<20)
		const many = 200_000
		var written atomic.Int64
		c := open(t, f, flood{many, &written}, "web", "alice", 10)
		next(t, c)
		time.Sleep(time.Minute)
		for written.Load() < many {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if kept := f.Stats()[0].Bytes; kept > 1<<20 {
			t.Errorf("%d bytes are kept", kept)
		}
		if _, err := c.Next(make([]*Line, 0, 8), nil); !errors.Is(err, ErrSlow) {
			t.Errorf("%v", err)
		}
		last := ""
		for {
			got, err := c.Next(make([]*Line, 0, 100), stream.NewWakeChannel())
			if err != nil {
				break
			}
			if last != "" && len(got) > 0 && got[0].Text == last {
				t.Fatalf("%s comes twice", last)
			}
			if len(got) > 0 {
				last = got[len(got)-1].Text
			}
		}
		if last != strconv.Itoa(many-1) {
			t.Errorf("the last line is %q", last)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if more := int64(after.HeapAlloc) - int64(before.HeapAlloc); more > 8<<20 {
			t.Errorf("%d bytes more are in use", more)
		}
	})
}

// flood is a log of many lines of one time.
type flood struct {
	lines   int
	written *atomic.Int64
}

func (s flood) Ended(context.Context, ContainerRun) (bool, error) { return true, nil }
func (s flood) Read(_ context.Context, _ ContainerRun, q ReadOptions) (io.ReadCloser, error) {
	if !q.Follow {
		return io.NopCloser(strings.NewReader("2026-01-01T00:00:00Z first\n")), nil
	}
	body, into := io.Pipe()
	go func() {
		if _, err := io.WriteString(into, "2026-01-01T00:00:00Z first\n"); err != nil {
			return
		}
		time.Sleep(time.Second)
		var piece strings.Builder
		for i := range s.lines {
			piece.WriteString("2026-01-01T00:00:00Z " + strconv.Itoa(i) + "\n")
			if i%1000 == 999 {
				if _, err := io.WriteString(into, piece.String()); err != nil {
					return
				}
				piece.Reset()
				s.written.Add(1000)
			}
		}
		_ = into.Close()
	}()
	return body, nil
}

// However many read a container, it is read once, and no longer than there is somebody.
func TestContainerIsReadOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f := newNode(), feedsFor(t, 1<<20)
		n.write(0, "0")
		n.write(time.Second, "1")
		first := open(t, f, n, "web", "alice", 2)
		if a, b := next(t, first), next(t, first); a.Text != "0" || b.Text != "1" {
			t.Errorf("%+v %+v", a, b)
		}
		var others []*Reader
		for range 20 {
			c := open(t, f, n, "web", "bob", 1)
			if line := next(t, c); line.Text != "1" {
				t.Errorf("a tail of one line is %+v", line)
			}
			others = append(others, c)
		}
		if n.reads != 1 || n.looks != 1 {
			t.Errorf("it was read %d times, and looked at %d times", n.reads, n.looks)
		}
		n.write(time.Second, "2")
		for _, c := range append(others, first) {
			if line := next(t, c); line.Text != "2" {
				t.Errorf("%+v", line)
			}
		}
		// Somebody comes back, to this replica or another one.
		at := next(t, open(t, f, n, "web", "carol", 2)).After
		back, err := f.Open(n, ContainerRun{Pod: "web"}, "carol", Start{After: &at})
		if err != nil {
			t.Fatal(err)
		}
		defer back.Close()
		if line := next(t, back); line.Text != "2" {
			t.Errorf("behind its position comes %+v", line)
		}
		other := feedsFor(t, 1<<20)
		elsewhere := open(t, other, n, "web", "carol", 10)
		next(t, elsewhere)
		synctest.Wait()
		if there, err := other.Open(n, ContainerRun{Pod: "web"}, "carol", Start{After: &at}); err != nil {
			t.Errorf("at another replica: %v", err)
		} else {
			if line := next(t, there); line.Text != "2" {
				t.Errorf("at another replica comes %+v", line)
			}
			there.Close()
		}
		// Who comes from nowhere is told that, and what is later.
		nowhere, err := f.Open(n, ContainerRun{Pod: "web"}, "carol", Start{After: &LinePosition{Since: 5, Count: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if missing, line := next(t, nowhere), next(t, nowhere); missing.Reset != ResetRotated || line.Text != "0" {
			t.Errorf("a position that is nowhere: %+v, %+v", missing, line)
		}
		nowhere.Close()
		elsewhere.Close()
		for _, c := range append(others, first, back) {
			c.Close()
			c.Close()
		}
	})
}

func TestLogsThatAreFollowedAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f := newNode(), feedsOf(t, 2, 1<<20)
		a, b := open(t, f, n, "a", "alice", 1), open(t, f, n, "b", "alice", 1)
		if _, err := f.Open(n, ContainerRun{Pod: "c"}, "alice", Start{Tail: 1}); !errors.Is(err, ErrLimit) {
			t.Errorf("a third: %v", err)
		}
		a.Close()
		c := open(t, f, n, "c", "alice", 1) // what nobody reads gives way
		synctest.Wait()
		if n.open != 2 {
			t.Errorf("%d are read", n.open)
		}
		for range 98 { // of the same, as many as they like
			open(t, f, n, "b", "alice", 1).Close()
		}
		few := feedsOf(t, 9, 1<<20)
		few.opts.PerUser = 2
		for _, run := range []string{"a", "b", "a"} {
			open(t, few, n, run, "alice", 1)
		}
		if _, err := few.Open(n, ContainerRun{Pod: "c"}, "alice", Start{Tail: 1}); !errors.Is(err, ErrLimit) {
			t.Errorf("a third of a user: %v", err)
		}
		open(t, few, n, "c", "bob", 1)
		b.Close()
		c.Close()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if left := f.Stats(); len(left) != 0 {
			t.Errorf("%+v are followed, and nobody reads", left)
		}
	})
}
