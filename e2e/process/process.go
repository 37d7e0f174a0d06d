// Package process runs the programs of tests and benchmarks: control planes and gateways. A process that it starts
// dies with the process that started it, even if that is killed. So a test that ends badly leaves nothing behind. It
// works only on Linux, because that promise needs Linux's parent death signal.
package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is one run of a program. Its methods may be called concurrently.
type Process struct {
	// Stdout and Stderr hold what it has printed so far.
	Stdout, Stderr *Log

	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// Options say how to run a program.
type Options struct {
	Path string   // of the program
	Args []string // without the program's name
	Env  []string // beyond this process's own, as NAME=VALUE
	Dir  string   // to run in; empty: this process's own
}

// Start runs a program.
func Start(opts Options) (*Process, error) {
	p := &Process{Stdout: newLog(), Stderr: newLog(), done: make(chan struct{})}
	p.cmd = exec.Command(opts.Path, opts.Args...)
	p.cmd.Env = append(os.Environ(), opts.Env...)
	p.cmd.Dir = opts.Dir
	p.cmd.Stdout, p.cmd.Stderr = p.Stdout, p.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// A grandchild may hold the pipes after the program has ended; it is not waited for.
	p.cmd.WaitDelay = time.Second
	if err := fork(p.cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", opts.Path, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		p.Stdout.close()
		p.Stderr.close()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether the program has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ExitCode waits for the program's end, and returns its exit code; -1 if a signal ended it.
func (p *Process) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal, unless the program has ended.
func (p *Process) Signal(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal) // fails only if it has ended
}

// Kill ends the program with SIGKILL, and returns when it is gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Terminate asks the program to end, and kills it when it has not done so within the grace time.
func (p *Process) Terminate(grace time.Duration) {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.Kill()
	}
}

// forks makes all forks in one thread that lasts as long as the process. Linux ties the parent death signal to the
// thread that forked, and Go ends threads as it likes.
var forks = sync.OnceValue(func() chan<- func() {
	requests := make(chan func())
	go func() {
		runtime.LockOSThread() // never unlocked
		for request := range requests {
			request()
		}
	}()
	return requests
})

func fork(cmd *exec.Cmd) error {
	result := make(chan error)
	forks() <- func() { result <- cmd.Start() }
	return <-result
}
