//go:build linux

// Package process starts the processes of a benchmark, and measures them. The things that a benchmark compares run in
// separate processes, so that their processor time and memory are measured separately.
package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// CPU is the processor time that a process has used, including its ended threads, in the kernel's full precision
// (/proc counts in steps of 10 ms).
func CPU(pid int) (time.Duration, error) {
	// The clock of another process, as clock_getcpuclockid(3) makes its number: CPUCLOCK_SCHED of the whole process.
	clock := ^int32(pid)<<3 | 2
	var t syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, errno)
	}
	return time.Duration(t.Nano()), nil
}

// Machine is the processor time that all processes together have used, in the kernel's ticks of 10 ms, with what a
// hypervisor gave to others.
func Machine() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	var name string
	var user, nice, system, idle, waiting, interrupts, soft, stolen int64
	if _, err := fmt.Sscan(string(text), &name, &user, &nice, &system, &idle, &waiting, &interrupts, &soft, &stolen); err != nil {
		return 0, fmt.Errorf("/proc/stat: %w", err)
	}
	return time.Duration(user+nice+system+interrupts+soft+stolen) * 10 * time.Millisecond, nil
}

// Waited is how long a process's present threads have waited for a processor while they had something to do. The
// longer they did, the less the other figures mean.
func Waited(pid int) (total time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // the thread has ended
		}
		var ran, waited int64
		if _, err := fmt.Sscan(string(text), &ran, &waited); err != nil {
			return 0, fmt.Errorf("%s: %w", thread, err)
		}
		total += time.Duration(waited)
	}
	return total, nil
}

// Memory is a process's resident memory in bytes, now and at its peak.
type Memory struct{ Now, Peak int64 }

// ReadMemory reads a process's memory.
func ReadMemory(pid int) (m Memory, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		to := map[string]*int64{"VmRSS": &m.Now, "VmHWM": &m.Peak}[name]
		if to == nil {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil {
			return m, fmt.Errorf("memory of process %d: %w", pid, err)
		}
		*to = kib << 10
	}
	return m, nil
}

// Find finds a running process by the names on the way to it: of a child, of that child's child, and so on.
func Find(pid int, names ...string) (int, error) {
	for _, name := range names {
		children, err := children(pid)
		if err != nil {
			return 0, err
		}
		child, ok := children[name]
		if !ok {
			return 0, fmt.Errorf("there is no %s among the children of process %d: %v", name, pid, children)
		}
		pid = child
	}
	return pid, nil
}

// children returns the running children of a process, by name.
func children(pid int) (map[string]int, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	children := map[string]int{}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child)); err == nil {
				children[strings.TrimSpace(string(name))] = child
			}
		}
	}
	return children, nil
}
