package app

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/archive"
	"github.com/kubecast/kubecast/internal/notify/inbox"
)

// newInbox returns nil if the configuration wants no history, without which nobody is told anything.
func newInbox(cfg config.Config, registerer prometheus.Registerer, log *slog.Logger) *inbox.Inbox {
	if cfg.History.Database == config.HistoryNone {
		return nil
	}
	opts := inbox.Options{Digest: cfg.Notifications.Digest.Std(), Keep: cfg.Notifications.Keep.Std(), States: []history.State{}, Registerer: registerer, Log: log}
	for _, state := range cfg.Notifications.States {
		opts.States = append(opts.States, history.State(state))
	}
	return inbox.New(opts)
}

// tell lets an archive's transitions be told: whatever it writes, the inbox writes with it.
func tell(opts *archive.Options, box *inbox.Inbox) {
	opts.Database.Writers = append(opts.Database.Writers, box) // last, since it locks what all logs' writers need until the commit
	opts.Wrote = box.Wake
}
