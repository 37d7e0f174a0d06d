//go:build linux

package process

import (
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
)

// A benchmark's program starts itself again in other roles. The parent calls such a child over the child's standard
// input and output. The child ends with its input, and so with its parent, however that ends.

// roleVariable has the role of a child; it is not set in the parent.
const roleVariable = "KUBECAST_BENCH_ROLE"

// Role is the role of this process; "" is the parent.
func Role() string { return os.Getenv(roleVariable) }

// serve answers the parent's calls of a receiver's methods, under the name of the role, until the parent has gone.
func serve(role string, receiver any) error {
	server := rpc.NewServer()
	if err := server.RegisterName(role, receiver); err != nil {
		return err
	}
	server.ServeConn(struct {
		io.ReadCloser
		io.Writer
	}{os.Stdin, os.Stdout})
	return nil
}

// Child is a process of this program in another role.
type Child struct {
	*Process
	role   string
	client *rpc.Client
}

// StartChild starts a child. Its standard error is the parent's.
func StartChild(role string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p, err := Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	return &Child{Process: p, role: role, client: rpc.NewClient(struct {
		io.Reader
		io.WriteCloser
	}{out, in})}, nil
}

// None is for a call that takes or gives nothing; an empty struct cannot be encoded.
type None = bool

// Call calls a method of the child's receiver; nil stands for None.
func (c *Child) Call(method string, args, reply any) error {
	if args == nil {
		args = None(false)
	}
	if reply == nil {
		reply = new(None)
	}
	if err := c.client.Call(c.role+"."+method, args, reply); err != nil {
		return fmt.Errorf("%s.%s: %w", c.role, method, err)
	}
	return nil
}
