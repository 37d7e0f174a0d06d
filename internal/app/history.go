package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/history/archive"
	"github.com/kubecast/kubecast/internal/history/rules"
	"github.com/kubecast/kubecast/internal/history/store"
	"github.com/kubecast/kubecast/internal/notify/inbox"
	"github.com/kubecast/kubecast/internal/notify/webhook"
)

// newArchive returns nil if the configuration wants no history.
func newArchive(cfg config.Config, box *inbox.Inbox, hooks *webhook.Senders, registerer prometheus.Registerer, log *slog.Logger) (*archive.Archive, error) {
	if cfg.History.Database == config.HistoryNone {
		return nil, nil
	}
	set, err := historyRules(cfg.History)
	if err != nil {
		return nil, err
	}
	database, err := makeHistoryDatabase(cfg.History)
	if err != nil {
		return nil, err
	}
	opts := archive.Options{
		Database: database, Rules: set, Serves: cfg.Kinds.Serves, Migrate: cfg.History.Migrate, Keep: cfg.History.Keep.Std(), Runs: cfg.History.Runs, KeepSpec: cfg.History.KeepSpec, LogTail: int(cfg.History.KeepLogTail),
		Registerer: registerer, Log: log,
	}
	tell(&opts, box)
	tellWebhooks(&opts, cfg, hooks)
	a, err := archive.New(opts)
	if err != nil {
		return nil, fmt.Errorf("history.database: %w", err)
	}
	box.Use(a.Database(), a.Ready(), a.Seal)
	return a, nil
}

// historyRules compiles the rules. Its errors name their keys.
func historyRules(cfg config.History) (*rules.Set, error) {
	opts := rules.Options{Key: "history", Owner: cfg.Owner}
	for _, k := range cfg.Kinds {
		opts.Kinds = append(opts.Kinds, rules.Kind(k))
	}
	return rules.New(opts)
}

// OpenHistory opens the database of a configuration, without connecting to it. The errors name the key.
func OpenHistory(cfg config.History) (*store.Store, error) {
	if cfg.Database == config.HistoryNone {
		return nil, errors.New("history.database: none: there is no history")
	}
	database, err := makeHistoryDatabase(cfg)
	if err != nil {
		return nil, err
	}
	s, err := store.New(database)
	if err != nil {
		return nil, fmt.Errorf("history.database: %w", err)
	}
	return s, nil
}

// GrantsHistory prints the rights that a role needs at the database of a configuration; "" is the database's user.
func GrantsHistory(cfg config.History, role string, out io.Writer) error {
	statements, err := store.Grants(store.Options{Address: cfg.Database}, role)
	if err != nil {
		return fmt.Errorf("history.database: %w", err)
	}
	for _, statement := range statements {
		fmt.Fprintln(out, statement)
	}
	return nil
}

// CopyHistory copies one database to another. Each is an address, or a configuration file.
func CopyHistory(ctx context.Context, from, to string, out io.Writer) (err error) {
	var both [2]*store.Store
	for i, name := range []string{from, to} {
		history := config.Default().History
		if history.Database = name; !strings.Contains(name, "://") {
			cfg, err := config.Load(name)
			if err != nil {
				return err
			}
			history = cfg.History
		}
		if both[i], err = OpenHistory(history); err != nil {
			return fmt.Errorf("%s: %w", [2]string{"from", "to"}[i], err)
		}
		defer func() { err = errors.Join(err, both[i].Close()) }()
	}
	return store.Copy(ctx, both[0], both[1], func(table string, rows int) { fmt.Fprintf(out, "%-14s %d rows\n", table, rows) })
}

// checkHistory finds faults of the rules, and of where the database is.
func checkHistory(cfg config.History) error {
	if cfg.Database == config.HistoryNone {
		return nil
	}
	if _, err := historyRules(cfg); err != nil {
		return err
	}
	database, err := historyDatabase(cfg)
	if err != nil {
		return err
	}
	s, err := store.New(database)
	if err != nil {
		return fmt.Errorf("history.database: %w", err)
	}
	return s.Close()
}

// historyDatabase says where the database is. The errors name the key of what is missing.
func historyDatabase(cfg config.History) (store.Options, error) {
	opts := store.Options{Address: cfg.Database, StateDir: cfg.StateDir, PasswordFile: cfg.PasswordFile, KeepBudget: int64(cfg.KeepBudget)}
	if cfg.PasswordFile != "" {
		if _, err := os.ReadFile(cfg.PasswordFile); err != nil {
			return opts, fmt.Errorf("history.passwordFile: %w", err)
		}
	}
	if cfg.Database != config.HistorySQLite {
		return opts, hasDirectory(cfg.Database)
	}
	if opts.StateDir == "" {
		var err error
		if opts.StateDir, err = userState(); err != nil {
			return opts, fmt.Errorf("history.stateDir: %w", err)
		}
	}
	return opts, nil
}

// makeHistoryDatabase is historyDatabase, and makes the directory of the default SQLite file.
func makeHistoryDatabase(cfg config.History) (store.Options, error) {
	opts, err := historyDatabase(cfg)
	if err != nil || opts.StateDir == "" {
		return opts, err
	}
	if err := os.MkdirAll(opts.StateDir, 0o700); err != nil {
		return opts, fmt.Errorf("history.stateDir: the history's file needs a directory (or set history.database): %w", err)
	}
	return opts, nil
}

// hasDirectory looks for the directory of a file that an address names.
func hasDirectory(database string) error {
	address, err := url.Parse(database)
	if err != nil || address.Scheme != "sqlite" {
		return nil // which is looked at by package store
	}
	directory := filepath.Dir(address.Path)
	switch info, err := os.Stat(directory); {
	case err != nil:
		return fmt.Errorf("history.database: %w", err)
	case !info.IsDir():
		return fmt.Errorf("history.database: %s is no directory", directory)
	}
	return nil
}

// userState is the directory in which a user's programs keep their state (XDG Base Directory Specification).
func userState() (string, error) {
	if directory := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(directory) {
		return filepath.Join(directory, "kubecast"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("is empty, and there is no home directory: name one, or set history.database")
	}
	return filepath.Join(home, ".local", "state", "kubecast"), nil
}
