package app

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/kubecast/kubecast/internal/audit"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/oidc"
	"github.com/kubecast/kubecast/internal/auth/session"
	"github.com/kubecast/kubecast/internal/balance"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/config"
	kubecasthttp "github.com/kubecast/kubecast/internal/http"
	"github.com/kubecast/kubecast/internal/jobs/inbox"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/webhook"
	"github.com/kubecast/kubecast/internal/tracing"
	"github.com/kubecast/kubecast/web"
)

// assembly is what a configuration is built into. Nothing of it runs, and it is connected to
// nothing: Run starts it, Check only builds it, Preflight asks with what it has.
type assembly struct {
	cfg      config.Config
	version  string
	log      *slog.Logger
	registry *prometheus.Registry
	dry      bool // no file and no directory is made

	tracer        *tracing.Tracer // nil: there are no traces
	authorizer    authorizer
	box           *inbox.Inbox          // nil: no history is kept
	hooks         *webhook.Senders      // nil: no history is kept
	outbox        *outbox.Writer        // of messages for them
	jobs          *service.Service      // nil: no history is kept
	accounts      *auth.ServiceAccounts // nil: none is accepted
	revocations   *auth.Revocations
	clusters      *clusters
	authenticator *auth.Authenticator
	sealer        *session.Sealer
	login         *oidc.Login  // nil: there is none
	certificate   *certificate // nil: plain HTTP
	auditLog      *audit.Log   // nil: there is none
	opsTokens     opsTokens
	ops           kubecasthttp.OpsOptions
	server        *kubecasthttp.Server
	memory        *memory
	balancer      *balance.Balancer // nil: streams stay where they are
}

// part is a part of a gateway.
type part struct {
	name  string
	needs []string // the parts without which it cannot be built
	build func(*assembly) error
}

// parts are all parts, in the order in which they are built.
var parts = []part{
	{"traces", nil, (*assembly).buildTracer},
	{"authorizer", nil, (*assembly).buildAuthorizer},
	{"webhooks", nil, (*assembly).buildWebhooks},
	{"history", nil, (*assembly).buildHistory},
	{"revocations", nil, (*assembly).buildRevocations},
	{"clusters", nil, (*assembly).buildClusters},
	{"authenticator", nil, (*assembly).buildAuthenticator},
	{"sessions", nil, (*assembly).buildSealer},
	{"client secret", nil, (*assembly).readClientSecret},
	{"login", []string{"authenticator", "sessions", "client secret"}, (*assembly).buildLogin},
	{"certificate", nil, (*assembly).buildCertificate},
	{"audit log", nil, (*assembly).buildAuditLog},
	{"ops listener", nil, (*assembly).buildOps},
	{"server", []string{"authorizer", "webhooks", "history", "clusters", "login", "audit log"}, (*assembly).buildServer},
	{"balancer", []string{"ops listener", "server"}, (*assembly).buildBalancer},
}

// build builds all parts, and reports the faults of all of them at once. A part that needs one that
// cannot be built is left out.
func build(opts Options, dry bool) (*assembly, error) {
	g := &assembly{cfg: opts.Config, version: opts.Version, log: opts.Log, registry: prometheus.NewRegistry(), dry: dry}
	g.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo(opts.Version))
	var faults []error
	missing := map[string]bool{}
	for _, p := range parts {
		if missing[p.name] = slices.ContainsFunc(p.needs, func(needed string) bool { return missing[needed] }); missing[p.name] {
			continue
		}
		if err := p.build(g); err != nil {
			missing[p.name] = true
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		g.close()
		return nil, errors.Join(faults...)
	}
	return g, nil
}

// close ends what was opened. It comes after everything else has ended.
func (g *assembly) close() {
	defer g.tracer.Close()
	if g.jobs == nil {
		return
	}
	if err := g.jobs.Close(); err != nil {
		g.log.Warn("the history's database does not close", "error", err)
	}
}

func (g *assembly) buildTracer() (err error) {
	g.tracer, err = tracing.New(tracing.Options{Endpoint: g.cfg.Tracing.Endpoint, Sample: g.cfg.Tracing.Sample, Version: g.version, Log: g.log})
	return err
}

func (g *assembly) buildAuthorizer() (err error) {
	g.authorizer, err = newAuthorizer(g.cfg.Authorizer, g.registry, g.log)
	return err
}

func (g *assembly) buildWebhooks() (err error) {
	g.hooks, err = newWebhooks(g.cfg, g.registry, g.tracer, g.log)
	return err
}

func (g *assembly) buildHistory() (err error) {
	g.box = newInbox(g.cfg, g.registry, g.log)
	g.jobs, err = newJobs(g)
	return err
}

func (g *assembly) buildRevocations() error {
	_, name, _ := strings.Cut(g.cfg.Auth.Revocations.ConfigMap, "/")
	g.revocations = auth.NewRevocations(auth.RevocationOptions{ConfigMap: name, Keep: g.cfg.Auth.Revocations.Keep.Std(), Registerer: g.registry, Log: g.log})
	if audiences := g.cfg.Auth.ServiceAccounts.Audiences; len(audiences) > 0 {
		g.accounts = auth.NewServiceAccounts(audiences)
	}
	return nil
}

func (g *assembly) buildClusters() (err error) {
	if g.clusters, err = newClusters(g); err != nil {
		return err
	}
	g.registry.MustRegister(cache.NewCollector(g.clusters.kinds))
	return nil
}

func (g *assembly) buildAuthenticator() (err error) {
	g.authenticator, err = auth.New(g.authOptions(), g.log)
	return err
}

func (g *assembly) buildSealer() (err error) {
	keys, err := cookieKeys(g.cfg.Auth.CookieKeyFile)
	if err == nil {
		g.sealer, err = session.NewSealer(keys...)
	}
	return err
}

func (g *assembly) readClientSecret() error {
	if _, err := oidc.ReadSecret(g.cfg.Auth.OIDCLogin.ClientSecretFile); err != nil {
		return fmt.Errorf("auth.oidcLogin.clientSecretFile: %w", err)
	}
	return nil
}

func (g *assembly) buildLogin() (err error) {
	g.login, err = newLogin(g.cfg.Auth, g.authenticator, g.sealer, g.registry, g.log)
	if g.login != nil && g.cfg.Auth.Revocations.ConfigMap == "" {
		g.log.Info("sessions that the issuer ends are ended by the replica that it tells; auth.revocations.configMap lets all know")
	}
	return err
}

func (g *assembly) buildCertificate() (err error) {
	g.certificate, err = newCertificate(g.cfg.TLS, g.registry, g.log)
	return err
}

func (g *assembly) buildAuditLog() (err error) {
	switch {
	case g.cfg.Audit.Level == config.AuditNone:
	case g.dry:
		err = audit.Check(g.cfg.Audit.File)
	default:
		g.auditLog, err = audit.Open(g.cfg.Audit.File, g.registry, g.log)
	}
	return err
}

func (g *assembly) buildOps() (err error) {
	g.ops, err = g.opsTokens.options(g.cfg, g.registry)
	return err
}

func (g *assembly) buildServer() (err error) {
	cfg := g.cfg
	g.clusters.authorize(g.authorizer)
	g.server, err = kubecasthttp.New(kubecasthttp.Options{
		Clusters:       g.clusters.kinds(),
		Authenticator:  g.authenticator,
		Authorizer:     auth.NewGuard(g.authorizer, g.registry),
		Ready:          g.authorizer.ready,
		Sessions:       session.NewSessions(g.sealer, g.authenticator),
		Login:          g.login,
		Revocations:    g.revocations,
		Reauthorize:    reauthorize(cfg.Authorizer),
		BasePath:       cfg.BasePath,
		TrustedProxies: config.Networks(cfg.TrustedProxies),
		ProxyProtocol:  config.Networks(cfg.ProxyProtocol),
		SyncTimeout:    cfg.Cache.SyncTimeout.Std(),
		Stream: kubecasthttp.StreamOptions{
			Heartbeat:    cfg.Stream.Heartbeat.Std(),
			MaxAge:       cfg.Stream.MaxAge.Std(),
			WriteTimeout: cfg.Stream.WriteTimeout.Std(),
			Retry:        cfg.Stream.Retry.Std(),
		},
		Limits:      limits(cfg),
		LogRing:     int(cfg.Logs.Ring),
		Drain:       cfg.Drain.Std(),
		Compress:    cfg.Stream.Compress,
		Share:       shareOf(cfg.Experimental),
		Origins:     cfg.CORS.Origins,
		History:     g.jobs,
		Inbox:       g.box,
		Webhooks:    g.hooks,
		SeeTheirOwn: cfg.History.Owners == config.OwnersSeeTheirOwn,
		NoQueues:    !cfg.Queues.Enabled,
		Portal:      portal(),
		Audit:       g.auditLog,
		Registerer:  g.registry,
		Tracer:      g.tracer,
		Log:         g.log,
	})
	if err != nil {
		return err
	}
	g.clusters.serve = g.server.SetClusters
	g.memory = newMemory(g)
	return nil
}

func (g *assembly) buildBalancer() error {
	if len(g.cfg.Stream.Replicas) == 0 {
		return nil
	}
	replicas := &balance.Replicas{Addresses: g.cfg.Stream.Replicas, Token: g.opsToken, Log: g.log}
	g.balancer = balance.New(balance.Options{
		Self: g.server.Load().Instance, Ask: replicas.Ask, Move: g.server.Move, Returned: g.server.Returned, Registerer: g.registry, Log: g.log,
	})
	return nil
}

// opsToken is what the ops listeners of all replicas want to see; "": nothing.
func (g *assembly) opsToken() (string, error) {
	if g.ops.Tokens == nil {
		return "", nil
	}
	tokens, err := g.ops.Tokens()
	if err != nil {
		return "", err
	}
	return tokens[0], nil
}

func (g *assembly) authOptions() auth.Options {
	return auth.Options{
		Anonymous: g.cfg.Auth.Anonymous, Issuers: issuers(g.cfg.Auth), ServiceAccounts: g.accounts, Revocations: g.revocations, Registerer: g.registry,
	}
}

// issuers are those whose tokens are accepted.
func issuers(cfg config.Auth) (all []auth.Issuer) {
	for _, j := range cfg.JWT {
		all = append(all, auth.Issuer{
			Issuer:        j.Issuer,
			Audiences:     j.Audiences,
			JWKSURL:       j.JWKSURL,
			PublicKeyFile: j.PublicKeyFile,
			HMACKeyFile:   j.HMACKeyFile,
			CAFile:        j.CAFile,
			Claims:        auth.Claims(j.Claims),
		})
	}
	return all
}

// opsTokens is the file with the tokens of the ops listener. It is read for each request.
type opsTokens struct{ file atomic.Pointer[string] }

// options reads the tokens once, so that faults in their file show at the start.
func (t *opsTokens) options(cfg config.Config, gatherer prometheus.Gatherer) (kubecasthttp.OpsOptions, error) {
	opts := kubecasthttp.OpsOptions{Gatherer: gatherer, Profiles: cfg.Ops.Pprof, Open: !cfg.OpsShowsLittle()}
	if cfg.Ops.TokenFile == "" {
		return opts, nil
	}
	opts.Tokens = func() ([]string, error) { return kubecasthttp.ReadOpsTokens(*t.file.Load()) }
	use, err := t.move(cfg.Ops)
	if err == nil {
		use()
	}
	return opts, err
}

// move makes ready that they are read from another file. Whether there are any is decided at the start.
func (t *opsTokens) move(cfg config.Ops) (use func(), err error) {
	if _, err := kubecasthttp.ReadOpsTokens(cfg.TokenFile); err != nil {
		return nil, fmt.Errorf("ops.tokenFile: %w", err)
	}
	return func() { t.file.Store(&cfg.TokenFile) }, nil
}

// cookieKeys are the keys of a file, or a random one if there is no file.
func cookieKeys(file string) ([][]byte, error) {
	if file == "" {
		return [][]byte{session.RandomKey()}, nil
	}
	keys, err := session.ReadKeys(file)
	if err != nil {
		return nil, fmt.Errorf("auth.cookieKeyFile: %w", err)
	}
	return keys, nil
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
