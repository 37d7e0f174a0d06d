package pending

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// What is looked up for a queue is paid for by somebody who reads it, not by who read it first and has long left.
func TestWhoHasLeftAQueuePaysNothingForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		r := New(Options{None: true, Linger: time.Second})
		go r.Run(ctx)
		read := func(user string) *Reader {
			reader, err := r.Read(nil, Queue{Name: "whole"}, user)
			if err != nil {
				t.Fatal(err)
			}
			return reader
		}
		pays := func(want string) {
			t.Helper()
			if l := r.boards[nil].lines[Queue{Name: "whole"}]; l.payer() != want || l.board.payer() != want {
				t.Errorf("%s and %s pay, not %s", l.payer(), l.board.payer(), want)
			}
		}
		first, second := read("first"), read("second")
		pays("first")
		second.Clone().Close() // which is nobody's
		first.Close()
		pays("second")
		second.Close()
		pays("second")
		third := read("third")
		pays("third")
		third.Close()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.mu.Lock()
		if len(r.boards) > 0 {
			t.Error("it is followed for ever")
		}
		r.mu.Unlock()
		stop()
		synctest.Wait()
	})
}
