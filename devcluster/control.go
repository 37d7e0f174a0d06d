package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// The other commands talk to a running "up" over a Unix socket in its directory, in HTTP: POST /fault/NAME, answered
// with 200 when the fault has taken effect, else with the error as text.

const socketName = "control.sock"

// socketPath is a path to the directory's socket that fits into the 108 bytes of a socket's address, however deep the
// directory is. It is valid while the directory is open.
func socketPath(open *os.File) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", open.Fd(), socketName)
}

func listenControl(d directory) (net.Listener, error) {
	open, err := os.Open(string(d))
	if err != nil {
		return nil, fmt.Errorf("opening the control socket: %w", err)
	}
	defer open.Close()
	listener, err := net.Listen("unix", socketPath(open))
	if err != nil {
		return nil, fmt.Errorf("opening the control socket: %w", err)
	}
	// The path is only valid while the directory is open, so closing the listener could not remove the file. The next
	// "up" does.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	return listener, nil
}

// serveControl answers until ctx ends.
func serveControl(ctx context.Context, listener net.Listener, c *cluster) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /fault/{name}", func(w http.ResponseWriter, r *http.Request) {
		// A fault that has begun is finished, even if the command that asked for it has gone.
		if err := c.fault(ctx, r.PathValue("name")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	server := &http.Server{Handler: mux}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(listener); ctx.Err() == nil {
		return fmt.Errorf("the control socket: %w", err)
	}
	return nil
}

const faultHelp = `devcluster fault --dir DIR FAULT

does FAULT to the devcluster that runs in DIR, and returns when it has taken effect:

`

func faultCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	help := faultHelp
	var names []string
	for _, f := range faults {
		names = append(names, f.name)
		help += fmt.Sprintf("  %-18s %s\n", f.name, strings.ReplaceAll(f.help, "\n", "\n"+strings.Repeat(" ", 21)))
	}
	flags := flag.NewFlagSet("fault", flag.ContinueOnError)
	dirFlag := flags.String("dir", "", "directory of the running devcluster (required)")
	if err := parse(flags, args, stderr, help); err != nil {
		return err
	}
	dir, err := openDirectory("fault", *dirFlag)
	if err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("fault: one fault must be named: %s", strings.Join(names, ", "))
	}
	name := flags.Arg(0)
	if findFault(name) == nil {
		return fmt.Errorf("fault: unknown fault %q; there are %s", name, strings.Join(names, ", "))
	}
	if err := requestFault(ctx, dir, name); err != nil {
		return fmt.Errorf("fault %s: %w", name, err)
	}
	fmt.Fprintln(stdout, name, "done")
	return nil
}

func requestFault(ctx context.Context, dir directory, name string) error {
	open, err := os.Open(string(dir))
	if err != nil {
		return fmt.Errorf("no devcluster in %s: %w", dir, err)
	}
	defer open.Close()
	client := &http.Client{
		Timeout: 3 * time.Minute,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socketPath(open))
		}},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://devcluster/fault/"+name, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Errorf("no devcluster is ready in %s", dir)
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(text)))
	}
	return nil
}
