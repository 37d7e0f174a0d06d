// Package app builds the gateway from its parts, starts them, and stops them in an order in which nothing is lost. It
// is the only package that knows all others.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/internal/config"
	kubecasthttp "github.com/kubecast/kubecast/internal/http"
)

// Options say how to run.
type Options struct {
	Config  config.Config
	Version string
	Log     *slog.Logger
	Level   *slog.LevelVar // of Log; nil: it cannot be changed
	// Reload, if not nil, reads Config again. What changes takes effect while the gateway runs, as far as it can.
	Reload func() (config.Config, error)
	// Poll is how often Reload is called, and the files that the configuration names are looked at; 0: every two
	// seconds. Again asks for it at once, and may be nil.
	Poll  time.Duration
	Again <-chan os.Signal
	// Drain begins the shutdown when it is done: readiness ends, then the streams, then the rest. When Run's own
	// context is done, everything ends at once.
	Drain context.Context
}

// afterDrain is how long other requests may still take once the streams have ended.
const afterDrain = 5 * time.Second

// Run runs the gateway until opts.Drain or ctx is done. Everything that it started has ended when it returns.
func Run(ctx context.Context, opts Options) error {
	cfg, log := opts.Config, opts.Log
	for _, warning := range cfg.Warnings() {
		log.Warn(warning)
	}
	g, err := build(opts, false)
	if err != nil {
		return err
	}
	defer g.close()
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	opsListener, err := net.Listen("tcp", cfg.OpsListen)
	if err != nil {
		return errors.Join(fmt.Errorf("opsListen: %w", err), listener.Close())
	}
	log.Info("listening", "addr", listener.Addr().String(), "ops", opsListener.Addr().String(), "tls", g.certificate != nil, "version", opts.Version)

	// The sources of the streams outlive them: they end with `feeding`, which ends after the listeners were closed.
	feeding, stopFeeding := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFeeding()
	if g.auditLog != nil { // it outlives all that write to it
		auditing, stopAuditing := context.WithCancel(context.WithoutCancel(ctx))
		var written sync.WaitGroup
		written.Go(func() { g.auditLog.Run(auditing) })
		defer written.Wait()
		defer stopAuditing()
	}
	group, failed := errgroup.WithContext(feeding)
	group.Go(func() error { return g.clusters.Run(feeding) })
	group.Go(func() error { return g.authenticator.Run(feeding) })
	group.Go(func() error { return g.revocations.Run(feeding) })
	if g.jobs != nil {
		group.Go(func() error { return g.jobs.Run(feeding) })
		group.Go(func() error { return g.box.Run(feeding) })
	}
	if g.hooks != nil {
		group.Go(func() error { return runWebhooks(feeding, g.hooks, g.jobs) })
	}
	if g.balancer != nil {
		group.Go(func() error { return g.balancer.Run(feeding) })
	}
	group.Go(func() error { return g.memory.Run(feeding) })
	reload := newReload(opts, g)
	g.ops.Config = reload.print
	group.Go(func() error { return reload.Run(feeding) })
	// Requests end with `serving` at the latest. Nothing else knows the connection of a stream.
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	public := g.server.PublicServer(serving)
	if g.certificate != nil {
		public.TLSConfig = g.certificate.config()
	}
	ops := g.server.OpsServer(serving, g.ops)
	streamsEnded := make(chan struct{})
	go func() {
		defer close(streamsEnded)
		g.server.Run(serving)
	}()
	group.Go(func() error { return serve(public, g.server.Listen(listener)) })
	group.Go(func() error { return serve(ops, opsListener) })

	var closing sync.WaitGroup
	defer closing.Wait()
	select {
	case <-opts.Drain.Done():
		log.Info("draining", "within", cfg.Drain.Std())
		public.SetKeepAlivesEnabled(false) // whoever kept a connection would come back to this replica by it
		if cfg.DrainClosesListener {
			closing.Go(func() { _ = public.Shutdown(serving) }) // closes the listener at once; the context ends, or shutDown breaks off what is left
		}
	case <-ctx.Done():
	case <-failed.Done():
	}
	drainStreams(ctx, g.server, cfg.Drain.Std())
	shutDown(ctx, public, log)
	shutDown(ctx, ops, log)
	stopServing()
	<-streamsEnded
	stopFeeding()
	err = group.Wait()
	log.Info("ended")
	return err
}

func serve(server *http.Server, listener net.Listener) error {
	run := server.Serve
	if server.TLSConfig != nil {
		run = func(l net.Listener) error { return kubecasthttp.ServeTLS(server, l) }
	}
	if err := run(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func drainStreams(ctx context.Context, gateway *kubecasthttp.Server, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	gateway.Drain(ctx)
}

// shutDown closes a server's listener, gives its requests afterDrain to end, and then breaks them off.
func shutDown(ctx context.Context, server *http.Server, log *slog.Logger) {
	within, cancel := context.WithTimeout(ctx, afterDrain)
	defer cancel()
	if server.Shutdown(within) == nil {
		return
	}
	if ctx.Err() == nil { // else nothing was waited for
		log.Warn("requests are broken off, since they have not ended", "within", afterDrain)
	}
	_ = server.Close() // it fails only because the listener is closed already
}
