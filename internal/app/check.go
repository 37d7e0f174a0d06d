package app

import (
	"log/slog"

	"github.com/kubecast/kubecast/internal/config"
)

// Check builds all that Run builds, and reports all faults at once: files that are missing or
// cannot be used, and what the configuration's own validation cannot see. It connects to nothing,
// listens nowhere, and makes no file.
func Check(cfg config.Config) error {
	g, err := build(Options{Config: cfg, Log: slog.New(slog.DiscardHandler)}, true)
	if err != nil {
		return err
	}
	g.close()
	return nil
}
