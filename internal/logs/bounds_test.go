package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLongLinesThatWaitForAReaderAreBounded, where it reads on a connection of its own.
func TestLongLinesThatWaitForAReaderAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f := newNode(), feedsFor(t, 1<<20)
		long := strings.Repeat("x", MaxText)
		for range 1200 {
			n.write(time.Second, long)
		}
		c := open(t, f, n, "web", "alice", 100_000)
		for c.catchUp == nil {
			synctest.Wait()
			if _, err := c.Next(make([]*Line, 0, 1), nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		c.catchUp.mu.Lock()
		bytes := 0
		for _, line := range c.catchUp.lines {
			bytes += line.size()
		}
		c.catchUp.mu.Unlock()
		if bytes == 0 || bytes > 2<<20 {
			t.Errorf("%d bytes wait for one reader", bytes)
		}
		for i := range 1199 { // and none of them is lost
			if l := next(t, c); l.Reset != "" || len(l.Text) != MaxText {
				t.Fatalf("%d: %q", i, l.Reset)
			}
		}
	})
}

// TestOneUserLeavesConnectionsToOthers, however often they ask for what a ring does not hold.
func TestOneUserLeavesConnectionsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f := newNode(), feedsOf(t, 10, 1<<20)
		f.opts.PerUser = 3
		for range 3000 {
			n.write(time.Second, "a line")
		}
		refused := 0
		for range 20 {
			c := open(t, f, n, "web", "alice", 100_000)
			for range 2 {
				if _, err := c.Next(make([]*Line, 0, 1), nil); errors.Is(err, ErrLimit) {
					refused++
				}
				synctest.Wait()
			}
		}
		if _, err := f.Open(n, ContainerRun{Pod: "another"}, "bob", Start{Tail: 1}); err != nil {
			t.Errorf("alice reads one container, %d times, and bob is told: %v", 20-refused, err)
		}
	})
}

// TestWhoComesBackAtOnceIsNotRefusedForWhatTheyHaveLeft: a client with a stream of fifty containers that was cut comes
// back before its fifty connections have ended, and would again and again find no room.
func TestWhoComesBackAtOnceIsNotRefusedForWhatTheyHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f := newNode(), feedsOf(t, 6, 1<<20)
		f.opts.PerUser = 3
		for range 3000 {
			n.write(time.Second, "a line")
		}
		for attempt := range 5 {
			var readers []*Reader
			for range 3 {
				c := open(t, f, n, "web", "alice", 100_000)
				for c.catchUp == nil && !t.Failed() {
					if _, err := c.Next(make([]*Line, 0, 1), nil); err != nil {
						t.Errorf("attempt %d: %v", attempt, err)
					}
					if attempt == 0 { // before the first, nothing is read of the log
						synctest.Wait()
					}
				}
				readers = append(readers, c)
			}
			for _, c := range readers {
				c.Close()
			}
		}
		synctest.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.catchUps != 0 || len(f.beside) != 0 {
			t.Errorf("%d connections are counted, and %v by user, when all are closed", f.catchUps, f.beside)
		}
	})
}

// TestWhoIsFreeReadsAnyNumberOfLogs, in the rings and besides.
func TestWhoIsFreeReadsAnyNumberOfLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f := newNode(), feedsOf(t, 10, 1<<20)
		f.opts.PerUser, f.opts.Free = 1, func(user string) bool { return user == "edge" }
		for user, want := range map[string]int{"edge": 3, "bob": 1} {
			read := 0
			for i := range 3 {
				if _, err := f.Open(n, ContainerRun{Pod: fmt.Sprint(user, i)}, user, Start{Tail: 1}); err == nil {
					read++
				}
			}
			if read != want {
				t.Errorf("%s reads %d logs, want %d", user, read, want)
			}
		}
	})
}

// endless is a log that is written faster than it can be read.
type endless struct{}

func (endless) Ended(context.Context, ContainerRun) (bool, error) { return false, nil }
func (endless) Read(ctx context.Context, _ ContainerRun, _ ReadOptions) (io.ReadCloser, error) {
	body, into := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = into.CloseWithError(ctx.Err()) })
	go func() {
		defer stop()
		for at := time.Now(); ; at = at.Add(time.Millisecond) {
			if _, err := io.WriteString(into, at.UTC().Format(time.RFC3339Nano)+" line\n"); err != nil {
				return
			}
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done(): // stop may keep the other from doing it
				_ = into.CloseWithError(ctx.Err())
				return
			}
		}
	}()
	return body, nil
}

// TestLogThatIsWrittenFasterThanItIsReadIsTold: its end is never come to.
func TestLogThatIsWrittenFasterThanItIsReadIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, feedsFor(t, 1<<20), endless{}, "web", "alice", 10)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			if got, _ := c.Next(make([]*Line, 0, 1), nil); len(got) > 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("not a line in a minute")
			}
		}
	})
}
