// Command devissuer runs a real OpenID provider on loopback: Dex, from its module, with its storage in memory. Users
// sign in at it in Kubecast's tests. It can be made to fail on purpose: its keys can be replaced, and it can be away
// for a while.
//
// It is a module of its own because Dex needs many others that the gateway does not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usage = `devissuer runs Dex on loopback until SIGTERM, and prints "issuer=URL control=URL". Its users are mara@example.org,
of the groups platform and team-vision, and bob@example.org, of platform, with the password "password". POST to the control address: /rotate replaces the
signing key, /away and /back take the provider away and bring it back, /end tells the clients that whoever signed in last was
signed out (back-channel logout, which Dex itself does not have), GET /asked?path=/token says how often that was asked.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "devissuer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("devissuer", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	redirects := flags.String("redirects", "", "the `URLs` of clients' callbacks, by commas; after a logout what is above /auth")
	secret := flags.String("secret", "", "of the client kubecast; empty: it is public")
	lasts := flags.Duration("tokens", time.Hour, "how long ID tokens are good")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	controls, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer controls.Close()
	// The issuer is addressed by name, so that it is another site than a gateway at 127.0.0.1.
	issuer := fmt.Sprintf("http://localhost:%d", listener.Addr().(*net.TCPAddr).Port)
	keys, err := newKeys()
	if err != nil {
		return err
	}
	dex, err := newDex(ctx, dexOptions{
		Issuer: issuer, Redirects: strings.Split(*redirects, ","), Secret: *secret, Lasts: *lasts, Keys: keys,
		Log: slog.New(slog.NewTextHandler(stderr, nil)),
	})
	if err != nil {
		return err
	}
	logout := func(ctx context.Context) error {
		return endAtClients(ctx, issuer, strings.Split(*redirects, ","), keys)
	}
	faults := &faults{next: dex, keys: keys, logout: logout, asked: map[string]int{}}
	public, control := &http.Server{Handler: faults}, &http.Server{Handler: faults.control()}
	ended := make(chan error, 2)
	go func() { ended <- public.Serve(listener) }()
	go func() { ended <- control.Serve(controls) }()
	fmt.Fprintf(stdout, "issuer=%s control=http://%s\n", issuer, controls.Addr())
	<-ctx.Done()
	err = errors.Join(public.Close(), control.Close())
	for range 2 {
		if serving := <-ended; !errors.Is(serving, http.ErrServerClosed) {
			err = errors.Join(err, serving)
		}
	}
	return err
}
