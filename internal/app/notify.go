package app

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/inbox"
	"github.com/kubecast/kubecast/internal/jobs/service"
)

// newInbox returns nil if the configuration wants no history, without which nobody is told anything.
func newInbox(cfg config.Config, registerer prometheus.Registerer, log *slog.Logger) *inbox.Inbox {
	if cfg.History.Database == config.HistoryNone {
		return nil
	}
	return inbox.New(inbox.Options{
		States: notified(cfg.Notifications), Digest: cfg.Notifications.Digest.Std(), Keep: cfg.Notifications.Keep.Std(), Registerer: registerer, Log: log,
	})
}

// notified are the states of which users are told who have not chosen.
func notified(cfg config.Notifications) []jobs.State {
	states := []jobs.State{}
	for _, state := range cfg.States {
		states = append(states, jobs.State(state))
	}
	return states
}

// tell lets the history's transitions be told: whatever it writes, the inbox writes with it.
func tell(opts *service.Options, box *inbox.Inbox) {
	opts.Database.Writers = append(opts.Database.Writers, box) // last, since it locks what all logs' writers need until the commit
	opts.Wrote = box.Wake
}
