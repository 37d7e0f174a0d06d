package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/jobs/webhook"
	"github.com/kubecast/kubecast/internal/tracing"
)

// webhookTargets are the targets of a configuration, as they are sent to.
func webhookTargets(cfg config.Config) (targets []webhook.Target, err error) {
	for i, w := range cfg.Webhooks {
		if w.URLFile != "" {
			if w.URL, err = webhookURL(w.URLFile); err != nil {
				return nil, fmt.Errorf("webhooks[%d].urlFile: %w", i, err)
			}
		}
		targets = append(targets, webhook.Target{
			Name: w.Name, URL: w.URL, SecretFile: w.SecretFile, Digest: w.Digest.Std(), Concurrency: w.Concurrency, Body: w.Body,
		})
	}
	return targets, nil
}

func webhookURL(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	url := strings.TrimSpace(string(text))
	if err := config.CheckWebhookURL(url); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return url, nil
}

// newWebhooks returns nil if the configuration wants no history, without which there is nothing to be sent.
func newWebhooks(cfg config.Config, registerer prometheus.Registerer, tracer *tracing.Tracer, log *slog.Logger) (*webhook.Senders, error) {
	if cfg.History.Database == config.HistoryNone {
		return nil, nil
	}
	targets, err := webhookTargets(cfg)
	if err != nil {
		return nil, err
	}
	return webhook.New(webhook.Options{Targets: targets, Keep: cfg.Notifications.Keep.Std(), Registerer: registerer, Tracer: tracer, Log: log})
}

// outboxRoutes say which transitions the targets of a configuration are sent.
func outboxRoutes(cfg config.Config) (routes []outbox.Route) {
	for _, w := range cfg.Webhooks {
		route := outbox.Route{Name: w.Name, Namespaces: w.Namespaces, Clusters: w.Clusters, Digest: w.Digest.Std()}
		for _, state := range w.States {
			route.States = append(route.States, jobs.State(state))
		}
		routes = append(routes, route)
	}
	return routes
}

// tellWebhooks has the recorders write messages for webhooks.
func tellWebhooks(opts *service.Options, writer *outbox.Writer, hooks *webhook.Senders) {
	opts.Database.Writers = slices.Insert(opts.Database.Writers, 0, store.Writer(writer))
	wrote := opts.Wrote
	opts.Wrote = func() {
		if wrote != nil {
			wrote()
		}
		hooks.Wake()
	}
}

// replaceWebhooks makes ready that others are told, and of other things. Where no history is kept there are none.
func (g *assembly) replaceWebhooks(next config.Config) (use func(), err error) {
	if g.hooks == nil {
		return nil, errNeedsRestart
	}
	targets, err := webhookTargets(next)
	if err != nil {
		return nil, err
	}
	replace, err := g.hooks.Replace(targets, next.Notifications.Keep.Std())
	if err != nil {
		return nil, err
	}
	return func() {
		replace()
		g.outbox.SetRoutes(outboxRoutes(next))
	}, nil
}

// runWebhooks sends until the context ends.
func runWebhooks(ctx context.Context, hooks *webhook.Senders, jobs *service.Service) error {
	return hooks.Run(ctx, outbox.New(jobs.Database()), jobs.Ready())
}
