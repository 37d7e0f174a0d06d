//go:build linux

package process

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is a process that this program has started.
type Process struct {
	Pid  int
	cmd  *exec.Cmd
	done chan struct{}
	err  error // Wait's error; read it when done is closed
}

// forks is served by a thread that lasts as long as the process. Linux kills a child when the thread ends that
// started it, not when the process does, and Go ends threads as it likes.
var forks = sync.OnceValue(func() chan<- func() {
	requests := make(chan func())
	go func() {
		runtime.LockOSThread()
		for request := range requests {
			request()
		}
	}()
	return requests
})

// Start starts a command whose process is killed when this one ends.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	forks() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	p := &Process{Pid: cmd.Process.Pid, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Kill ends the process at once.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only if it has ended already
	<-p.done
}

// Stop asks the process to end, and kills it if it does not in good time.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		p.Kill()
	}
}

// Ended says how the process ended; nil while it runs.
func (p *Process) Ended() error {
	select {
	case <-p.done:
		return errors.Join(fmt.Errorf("%s has ended", p.cmd.Path), p.err)
	default:
		return nil
	}
}
