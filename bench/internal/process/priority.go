//go:build linux

package process

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// leaveAsIs, in the environment, says that RunFirst and RunLast do nothing.
const leaveAsIs = "BENCH_LEAVE_PRIORITIES"

// LeavePriorities lets RunFirst and RunLast do nothing, in the processes that this one starts, too. It is for tests of
// benchmarks, which run beside other tests and measure nothing.
func LeavePriorities() { os.Setenv(leaveAsIs, "1") }

// RunFirst lets this process run before all others, if that is permitted. It is for what measures: otherwise it would
// wait for the process that it measures, and count that as the process's delay.
func RunFirst() {
	_ = schedule(&unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}) // see MayRunFirst
}

// MayRunFirst reports whether RunFirst is permitted.
func MayRunFirst() bool {
	permitted := make(chan bool)
	go func() {
		runtime.LockOSThread() // and the thread ends with this goroutine
		permitted <- unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0) == nil
	}()
	return <-permitted
}

// RunLast lets this process run only when no other wants to. It is for what would compute on another machine.
func RunLast() error {
	return schedule(&unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE})
}

// schedule gives each thread a policy; threads that they start inherit it.
func schedule(attr *unix.SchedAttr) error {
	if os.Getenv(leaveAsIs) != "" {
		return nil
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetAttr(id, attr, 0); err != nil && err != unix.ESRCH { // the thread may have ended
			return fmt.Errorf("schedule: %w", err)
		}
	}
	return nil
}
