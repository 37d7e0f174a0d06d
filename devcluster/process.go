package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A forker starts processes that die with this one. Linux ties the parent death signal to the thread that forked, not
// to its process, and Go ends threads as it likes. So one thread, which never ends, makes all forks.
type forker chan func()

func newForker() forker {
	requests := make(forker)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread must last as long as the process
		for request := range requests {
			request()
		}
	}()
	return requests
}

func (f forker) start(cmd *exec.Cmd) error {
	result := make(chan error)
	f <- func() { result <- cmd.Start() }
	return <-result
}

// process is one run of a component.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	// stopping is set before devcluster itself ends the process, so that any other end is known to be a failure.
	stopping atomic.Bool
	done     chan struct{} // closed when it has ended
	state    string        // how it ended; read it after done
}

// startProcess runs path with args, and appends its output to the log. It calls failed when the process ends without
// having been asked to.
func startProcess(f forker, name, path, log string, args []string, failed func(*process)) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer out.Close()
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = filepath.Dir(log)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		// The process gets its own group, so that Ctrl-C in a terminal reaches only devcluster, which ends the
		// components in order.
		Setpgid: true,
	}
	if err := f.start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, log: log, cmd: cmd, done: make(chan struct{})}
	go func() {
		cmd.Wait() // its error is in the state
		p.state = cmd.ProcessState.String()
		close(p.done)
		if !p.stopping.Load() {
			failed(p)
		}
	}()
	return p, nil
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the process with SIGKILL, and returns when it is gone.
func (p *process) kill() {
	p.stopping.Store(true)
	p.cmd.Process.Kill() // fails only if it is gone already
	<-p.done
}

// terminate asks the process to end, and kills it when it has not done so within the grace time.
func (p *process) terminate(ctx context.Context, grace time.Duration) {
	p.stopping.Store(true)
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return
	case <-time.After(grace):
	case <-ctx.Done():
	}
	p.kill()
}

// failure is the error for a process that ended by itself, with the end of its log.
func (p *process) failure() error {
	return fmt.Errorf("%s ended by itself (%s); the last lines of %s:\n%s", p.name, p.state, p.log, lastLines(p.log, 15))
}

func lastLines(name string, n int) string {
	file, err := os.Open(name)
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil {
		file.Seek(max(0, info.Size()-16<<10), io.SeekStart)
	}
	data, _ := io.ReadAll(file)
	lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-n):], "\n  ")
}

// poll calls check until that returns nil, and then returns nil. If the context ends first, its error contains the
// last one of check.
func poll(ctx context.Context, interval time.Duration, what string, check func(context.Context) error) error {
	var last error
	for {
		if err := check(ctx); err == nil {
			return nil
		} else if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (last: %w)", what, context.Cause(ctx), last)
		case <-time.After(interval):
		}
	}
}
