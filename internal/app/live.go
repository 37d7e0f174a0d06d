package app

import (
	"log/slog"
	"slices"

	"github.com/kubecast/kubecast/internal/config"
)

// liveParts are the parts that take over changes while the gateway runs. What none of them has needs a restart.
func (g *assembly) liveParts(level *slog.LevelVar) []*livePart {
	return []*livePart{
		{keys: []string{"log.level"}, take: func(next config.Config) (func(), error) {
			if level == nil {
				return nil, errNeedsRestart
			}
			return func() { level.Set(next.Log.SlogLevel()) }, nil
		}},
		{keys: []string{"clusters"}, take: func(next config.Config) (func(), error) {
			if g.cfg.IsEdge() != next.IsEdge() {
				return nil, errNeedsRestart
			}
			return g.clusters.prepare(next.Clusters)
		}},
		{keys: []string{"tls."}, take: func(next config.Config) (func(), error) { return g.certificate.move(next.TLS) }},
		{keys: []string{"ops.tokenFile"}, take: func(next config.Config) (func(), error) {
			if (g.cfg.Ops.TokenFile == "") != (next.Ops.TokenFile == "") { // this decides what is shown without a token
				return nil, errNeedsRestart
			}
			return g.opsTokens.move(next.Ops)
		}},
		{
			keys:  []string{"auth.cookieKeyFile"},
			files: func(cfg config.Config) []string { return named(cfg.Auth.CookieKeyFile) },
			take: func(next config.Config) (func(), error) {
				keys, err := cookieKeys(next.Auth.CookieKeyFile)
				if err != nil {
					return nil, err
				}
				return g.sealer.Replace(keys...)
			},
		},
		{
			keys: []string{"auth.jwt", "auth.anonymous"},
			files: func(cfg config.Config) (files []string) {
				for _, j := range cfg.Auth.JWT {
					files = append(files, named(j.CAFile)...) // the other files are looked at by the authenticator
				}
				return files
			},
			take: func(next config.Config) (func(), error) {
				if g.login != nil && next.Auth.LoginIssuer() != g.cfg.Auth.LoginIssuer() {
					return nil, errNeedsRestart
				}
				return g.authenticator.Replace(next.Auth.Anonymous, issuers(next.Auth))
			},
		},
		{
			keys: []string{"stream.perUser", "stream.perAddress", "stream.total", "stream.watchesPerUser", "requests.", "gateways", "logs.upstreams", "logs.perUser"},
			take: func(next config.Config) (func(), error) { return func() { g.server.SetLimits(limits(next)) }, nil },
		},
		{keys: []string{"kinds.atMost"}, take: func(next config.Config) (func(), error) {
			return func() { g.clusters.setAtMost(next.Kinds.AtMost) }, nil
		}},
		{keys: []string{"notifications."}, take: func(next config.Config) (func(), error) {
			if g.box == nil {
				return nil, errNeedsRestart
			}
			n := next.Notifications
			return func() { g.box.SetDefaults(notified(n), n.Digest.Std(), n.Keep.Std()) }, nil
		}},
		{
			keys: []string{"webhooks", "notifications.keep"},
			files: func(cfg config.Config) (files []string) {
				for _, w := range cfg.Webhooks {
					files = append(files, named(w.URLFile)...)
				}
				return files
			},
			take: g.replaceWebhooks,
		},
	}
}

// named are the files that there are among names that may be empty.
func named(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}
