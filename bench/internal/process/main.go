//go:build linux

package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Roles are what a benchmark's program can be as a child, by the role's name: each makes the receiver of the parent's calls.
type Roles map[string]func() (receiver any, err error)

// run is the child in a role, until its parent has gone.
func (r Roles) run(role string) error {
	start := r[role]
	if start == nil {
		return fmt.Errorf("there is no role %q", role)
	}
	receiver, err := start()
	if err != nil {
		return err
	}
	return serve(role, receiver)
}

// Main runs a benchmark's program: the role that the process has as a child, or else the benchmark
// itself. If that fails, it says so, and ends the process.
func Main(name string, roles Roles, run func(args []string, out io.Writer) error) {
	var err error
	if role := Role(); role != "" {
		name += " " + role
		err = roles.run(role)
	} else {
		err = run(os.Args[1:], os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// TestMain runs the tests of a benchmark, whose program also serves as its children.
func TestMain(tests interface{ Run() int }, main func()) {
	if Role() != "" {
		main()
		return
	}
	os.Exit(tests.Run())
}

// Interruptible is run with a context that a signal ends.
func Interruptible(run func(ctx context.Context, args []string, out io.Writer) error) func(args []string, out io.Writer) error {
	return func(args []string, out io.Writer) error {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return run(ctx, args, out)
	}
}
