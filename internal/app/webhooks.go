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
	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/archive"
	"github.com/kubecast/kubecast/internal/history/store"
	"github.com/kubecast/kubecast/internal/notify/outbox"
	"github.com/kubecast/kubecast/internal/notify/webhook"
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

// newWebhooks returns nil if the configuration has none.
func newWebhooks(cfg config.Config, registerer prometheus.Registerer, log *slog.Logger) (*webhook.Senders, error) {
	if len(cfg.Webhooks) == 0 {
		return nil, nil
	}
	targets, err := webhookTargets(cfg)
	if err != nil {
		return nil, err
	}
	return webhook.New(webhook.Options{Targets: targets, Keep: cfg.Notifications.Keep.Std(), Registerer: registerer, Log: log})
}

// tellWebhooks has the recorders write messages for webhooks, if there are any.
func tellWebhooks(opts *archive.Options, cfg config.Config, hooks *webhook.Senders) {
	if hooks == nil {
		return
	}
	var targets []outbox.Target
	for _, w := range cfg.Webhooks {
		target := outbox.Target{Name: w.Name, Namespaces: w.Namespaces, Clusters: w.Clusters, Digest: w.Digest.Std()}
		for _, state := range w.States {
			target.States = append(target.States, history.State(state))
		}
		targets = append(targets, target)
	}
	opts.Database.Writers = slices.Insert(opts.Database.Writers, 0, store.Writer(outbox.NewWriter(targets)))
	wrote := opts.Wrote
	opts.Wrote = func() {
		if wrote != nil {
			wrote()
		}
		hooks.Wake()
	}
}

// runWebhooks sends until the context ends.
func runWebhooks(ctx context.Context, hooks *webhook.Senders, jobs *archive.Archive) error {
	return hooks.Run(ctx, outbox.New(jobs.Database()), jobs.Ready())
}
