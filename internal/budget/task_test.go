package budget

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// work runs a task for so many slices.
func work(task *Task, slices int) (finished bool) {
	for range slices {
		time.Sleep(timeSlice)
		if !task.Step(clockEach) {
			return false
		}
	}
	return true
}

// A user with one long task does not wait longer because another user has many of them.
func TestLongTasksOfOneUserDoNotDelayAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 0, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		defer working.Wait()
		defer cancel()
		for range 50 {
			working.Go(func() {
				task := NewTask(ctx, q, "many")
				defer task.Rest()
				work(task, 100)
			})
		}
		time.Sleep(20 * timeSlice)
		task := NewTask(t.Context(), q, "few")
		began := time.Now()
		if !work(task, 10) {
			t.Error(task.Err())
		}
		task.Rest()
		if took := time.Since(began); took > 35*timeSlice {
			t.Errorf("10 slices took %v, beside one other user", took)
		}
	})
}

func TestTaskWhoseClientLeftIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 0, 0)
		ctx, cancel := context.WithCancel(t.Context())
		task := NewTask(ctx, q, "u")
		if !work(task, 3) {
			t.Error(task.Err())
		}
		cancel()
		if work(task, 1) || task.Err() != context.Canceled || task.Step(1) {
			t.Errorf("it goes on; error %v", task.Err())
		}
		if len(q.users) != 0 {
			t.Error("its turn is not given back")
		}
	})
}

func TestSliceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Slice()
		if !s.Step(clockEach) {
			t.Error("at once")
		}
		time.Sleep(timeSlice)
		if s.Step(clockEach) {
			t.Error("never")
		}
	})
}
