// Package app builds the gateway from its parts, starts them, and stops them in an order in which nothing is lost. It
// is the only package that knows all others.
package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/internal/audit"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/oidc"
	"github.com/kubecast/kubecast/internal/auth/session"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/config"
	kubecasthttp "github.com/kubecast/kubecast/internal/http"
	"github.com/kubecast/kubecast/web"
)

// Options say how to run.
type Options struct {
	Config  config.Config
	Version string
	Log     *slog.Logger
	// Reload, if not nil, reads Config again. A change of its clusters takes effect while the gateway runs.
	Reload func() (config.Config, error)
	// Poll is how often Reload is called, and the clusters' kubeconfigs are looked at; 0: every two seconds.
	Poll time.Duration
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
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	authorizer, err := newAuthorizer(cfg.Authorizer, registry, log)
	if err != nil {
		return err
	}
	box := newInbox(cfg, registry, log)
	hooks, err := newWebhooks(cfg, registry, log)
	if err != nil {
		return err
	}
	jobs, err := newArchive(cfg, box, hooks, registry, log)
	if err != nil {
		return err
	}
	if jobs != nil {
		defer func() {
			if err := jobs.Close(); err != nil {
				log.Warn("the history's database does not close", "error", err)
			}
		}()
	}
	clusters, err := newClusters(cfg, opts.Version, authorizer, jobs, log)
	if err != nil {
		return err
	}
	registry.MustRegister(cache.NewCollector(clusters.kinds))
	clusters.followRevocations(newRevocations(cfg.Auth.Revocations, registry, log), cfg.Auth.Revocations.ConfigMap)
	authenticator, err := auth.New(authOptions(cfg, clusters, registry), log)
	if err != nil {
		return err
	}
	sealer, err := newSealer(cfg.Auth.CookieKeyFile)
	if err != nil {
		return err
	}
	login, err := newLogin(cfg.Auth, authenticator, sealer, registry, log)
	if err != nil {
		return err
	}
	if login != nil && cfg.Auth.Revocations.ConfigMap == "" {
		log.Info("sessions that the issuer ends are ended by the replica that it tells; auth.revocations.configMap lets all know")
	}
	certificate, err := newCertificate(cfg.TLS, registry, log)
	if err != nil {
		return err
	}
	auditLog, err := newAuditLog(cfg.Audit, registry, log)
	if err != nil {
		return err
	}
	gateway, err := kubecasthttp.New(kubecasthttp.Options{
		Clusters:       clusters.kinds(),
		Authenticator:  authenticator,
		Authorizer:     auth.NewGuard(authorizer, registry),
		Ready:          authorizer.ready,
		Sessions:       session.NewSessions(sealer, authenticator),
		Login:          login,
		Revocations:    clusters.revocations,
		TrustedProxies: cfg.Prefixes(),
		SyncTimeout:    cfg.Cache.SyncTimeout.Std(),
		Stream: kubecasthttp.StreamOptions{
			Heartbeat:    cfg.Stream.Heartbeat.Std(),
			MaxAge:       cfg.Stream.MaxAge.Std(),
			WriteTimeout: cfg.Stream.WriteTimeout.Std(),
			Retry:        cfg.Stream.Retry.Std(),
			Reauthorize:  reauthorize(cfg.Authorizer),
		},
		Limits: kubecasthttp.Limits{
			PerUser: cfg.Stream.PerUser, PerAddress: cfg.Stream.PerAddress, Total: cfg.Stream.Total,
			WatchesPerUser: cfg.Stream.WatchesPerUser, RequestsPerUser: cfg.Requests.PerUser, RequestsPerSecond: cfg.Requests.PerSecond,
		},
		Connections: connectionLimits(cfg.Stream),
		Logs:        kubecasthttp.LogLimits{Total: cfg.Logs.Upstreams, PerUser: cfg.Logs.PerUser},
		LogRing:     int(cfg.Logs.Ring),
		Drain:       cfg.Drain.Std(),
		Compress:    cfg.Stream.Compress,
		Origins:     cfg.CORS.Origins,
		History:     jobs,
		Inbox:       box,
		Webhooks:    hooks,
		SeeTheirOwn: cfg.History.Owners == config.OwnersSeeTheirOwn,
		Portal:      portal(),
		Audit:       auditLog,
		Registerer:  registry,
		Log:         log,
	})
	if err != nil {
		return err
	}
	clusters.serve = gateway.SetClusters

	opsOptions, err := newOpsOptions(cfg, registry)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	opsListener, err := net.Listen("tcp", cfg.OpsListen)
	if err != nil {
		return errors.Join(fmt.Errorf("opsListen: %w", err), listener.Close())
	}
	log.Info("listening", "addr", listener.Addr().String(), "ops", opsListener.Addr().String(), "tls", certificate != nil, "version", opts.Version)

	// The sources of the streams outlive them: they end with `feeding`, which ends after the listeners were closed.
	feeding, stopFeeding := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFeeding()
	if auditLog != nil { // it outlives all that write to it
		auditing, stopAuditing := context.WithCancel(context.WithoutCancel(ctx))
		var written sync.WaitGroup
		written.Go(func() { auditLog.Run(auditing) })
		defer written.Wait()
		defer stopAuditing()
	}
	group, failed := errgroup.WithContext(feeding)
	group.Go(func() error { return clusters.Run(feeding) })
	group.Go(func() error { return authenticator.Run(feeding) })
	group.Go(func() error { return clusters.revocations.Run(feeding) })
	if jobs != nil {
		group.Go(func() error { return jobs.Run(feeding) })
		group.Go(func() error { return box.Run(feeding) })
	}
	if hooks != nil {
		group.Go(func() error { return runWebhooks(feeding, hooks, jobs) })
	}
	reload := newReload(opts, clusters, certificate)
	group.Go(func() error { return reload.Run(feeding) })
	// Requests end with `serving` at the latest. Nothing else knows the connection of a stream.
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	public := gateway.PublicServer(serving)
	if certificate != nil {
		public.TLSConfig = certificate.config()
	}
	ops := gateway.OpsServer(serving, opsOptions)
	streamsEnded := make(chan struct{})
	go func() {
		defer close(streamsEnded)
		gateway.Run(serving)
	}()
	group.Go(func() error { return serve(public, gateway.Listen(listener)) })
	group.Go(func() error { return serve(ops, opsListener) })

	select {
	case <-opts.Drain.Done():
		log.Info("draining", "within", cfg.Drain.Std())
	case <-ctx.Done():
	case <-failed.Done():
	}
	drainStreams(ctx, gateway, cfg.Drain.Std())
	shutDown(ctx, public)
	shutDown(ctx, ops)
	stopServing()
	<-streamsEnded
	stopFeeding()
	err = group.Wait()
	log.Info("ended")
	return err
}

func authOptions(cfg config.Config, clusters *clusters, registerer prometheus.Registerer) auth.Options {
	opts := auth.Options{
		Anonymous: cfg.Auth.Anonymous, ServiceAccounts: clusters.accounts, Revocations: clusters.revocations, Registerer: registerer,
	}
	for _, j := range cfg.Auth.JWT {
		opts.Issuers = append(opts.Issuers, auth.Issuer{
			Issuer:        j.Issuer,
			Audiences:     j.Audiences,
			JWKSURL:       j.JWKSURL,
			PublicKeyFile: j.PublicKeyFile,
			HMACKeyFile:   j.HMACKeyFile,
			CAFile:        j.CAFile,
			Claims:        auth.Claims(j.Claims),
		})
	}
	return opts
}

// newAuditLog returns nil if the configuration has no audit log.
func newAuditLog(cfg config.Audit, registerer prometheus.Registerer, log *slog.Logger) (*audit.Log, error) {
	if cfg.Level == config.AuditNone {
		return nil, nil
	}
	return audit.Open(cfg.File, registerer, log)
}

// newOpsOptions reads the tokens of the ops listener once, so that faults in their file show at the start.
func newOpsOptions(cfg config.Config, gatherer prometheus.Gatherer) (kubecasthttp.OpsOptions, error) {
	opts := kubecasthttp.OpsOptions{Gatherer: gatherer, Profiles: cfg.Ops.Pprof, Open: !cfg.OpsShowsLittle()}
	if cfg.Ops.TokenFile == "" {
		return opts, nil
	}
	opts.Tokens = func() ([]string, error) { return kubecasthttp.ReadOpsTokens(cfg.Ops.TokenFile) }
	if _, err := opts.Tokens(); err != nil {
		return opts, fmt.Errorf("ops.tokenFile: %w", err)
	}
	return opts, nil
}

func newRevocations(cfg config.Revocations, registerer prometheus.Registerer, log *slog.Logger) *auth.Revocations {
	_, name, _ := strings.Cut(cfg.ConfigMap, "/")
	return auth.NewRevocations(auth.RevocationOptions{ConfigMap: name, Keep: cfg.Keep.Std(), Registerer: registerer, Log: log})
}

func newSealer(keyFile string) (*session.Sealer, error) {
	if keyFile == "" {
		return session.NewSealer(session.RandomKey())
	}
	keys, err := session.ReadKeys(keyFile)
	if err != nil {
		return nil, fmt.Errorf("auth.cookieKeyFile: %w", err)
	}
	return session.NewSealer(keys...)
}

// newLogin returns nil if the configuration has no login.
func newLogin(cfg config.Auth, authenticator *auth.Authenticator, sealer *session.Sealer, registerer prometheus.Registerer, log *slog.Logger) (*oidc.Login, error) {
	l := cfg.OIDCLogin
	if l.ClientID == "" {
		return nil, nil
	}
	return oidc.New(oidc.Options{
		Issuer:           cfg.LoginIssuer(),
		ClientID:         l.ClientID,
		ClientSecretFile: l.ClientSecretFile,
		RedirectURL:      l.RedirectURL,
		Scopes:           l.Scopes,
		Registerer:       registerer,
	}, authenticator, sealer, log)
}

func portal() fs.FS {
	if files, built := web.Portal(); built {
		return files
	}
	return nil
}

func serve(server *http.Server, listener net.Listener) error {
	run := server.Serve
	if server.TLSConfig != nil {
		run = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
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
func shutDown(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(ctx, afterDrain)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close() // it fails only because the listener is closed already
	}
}
