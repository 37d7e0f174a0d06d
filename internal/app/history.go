package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
	"github.com/kubecast/kubecast/internal/jobs/rules"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// newJobs returns nil if the configuration wants no history.
func newJobs(g *assembly) (*service.Service, error) {
	cfg := g.cfg
	if cfg.History.Database == config.HistoryNone {
		return nil, nil
	}
	set, badRules := historyRules(cfg.History)
	database, err := historyDatabase(cfg.History, g.version)
	database.Tracer = g.tracer
	if err == nil {
		err = hasDirectory(database, g.dry)
	}
	if err := errors.Join(badRules, err); err != nil {
		return nil, err
	}
	opts := service.Options{
		Database: database, Rules: set, Serves: cfg.Kinds.Serves, Migrate: cfg.History.Migrate, Keep: cfg.History.Keep.Std(), Runs: cfg.History.Runs, KeepSpec: cfg.History.KeepSpec, LogTail: int(cfg.History.KeepLogTail),
		Registerer: g.registry, Log: g.log,
	}
	tell(&opts, g.box)
	g.outbox = outbox.NewWriter(outboxRoutes(cfg))
	tellWebhooks(&opts, g.outbox, g.hooks)
	a, err := service.New(opts)
	if err != nil {
		return nil, fmt.Errorf("history.database: %w", err)
	}
	g.box.Use(a.Database(), a.Ready(), a.Seal)
	return a, nil
}

// historyRules compiles the rules. Its errors name their keys.
func historyRules(cfg config.History) (*rules.Set, error) {
	opts := rules.Options{Key: "history", Owner: cfg.Owner}
	for _, k := range cfg.Kinds {
		opts.Kinds = append(opts.Kinds, rules.KindRules(k))
	}
	return rules.New(opts)
}

// openHistory opens the database of a configuration, without connecting to it. The errors name the key.
func openHistory(cfg config.History) (*store.Store, error) {
	database, err := historyDatabase(cfg, "")
	if err != nil {
		return nil, err
	}
	return openDatabase(database)
}

func openDatabase(database store.Options) (*store.Store, error) {
	s, err := store.New(database)
	if err != nil {
		return nil, fmt.Errorf("history.database: %w", err)
	}
	return s, nil
}

// CheckHistory looks whether the schema of a configuration's database is the one that this gateway
// needs, and changes nothing.
func CheckHistory(ctx context.Context, cfg config.History) error {
	s, err := openHistory(cfg)
	if err != nil {
		return err
	}
	return ofHistory(s.Check(ctx), s)
}

// MigrateHistory brings it up to date. The version is the gateway's.
func MigrateHistory(ctx context.Context, cfg config.History, version string) error {
	database, err := historyDatabase(cfg, version)
	if err == nil {
		err = hasDirectory(database, false)
	}
	if err != nil {
		return err
	}
	s, err := openDatabase(database)
	if err != nil {
		return err
	}
	return ofHistory(s.Migrate(ctx), s)
}

// ofHistory closes a database, and names the key of an error.
func ofHistory(err error, s *store.Store) error {
	if err != nil {
		err = fmt.Errorf("history.database: %w", err)
	}
	return errors.Join(err, s.Close())
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
		if both[i], err = openHistory(history); err != nil {
			return fmt.Errorf("%s: %w", [2]string{"from", "to"}[i], err)
		}
		defer func() { err = errors.Join(err, both[i].Close()) }()
	}
	return store.Copy(ctx, both[0], both[1], func(table string, rows int) { fmt.Fprintf(out, "%-14s %d rows\n", table, rows) })
}

// historyDatabase says where the database is. The errors name the key of what is missing.
func historyDatabase(cfg config.History, version string) (store.Options, error) {
	if cfg.Database == config.HistoryNone {
		return store.Options{}, errors.New("history.database: none: there is no history")
	}
	opts := store.Options{Address: cfg.Database, StateDir: cfg.StateDir, PasswordFile: cfg.PasswordFile, KeepBudget: int64(cfg.KeepBudget), Release: version}
	if cfg.PasswordFile != "" {
		if _, err := os.ReadFile(cfg.PasswordFile); err != nil {
			return opts, fmt.Errorf("history.passwordFile: %w", err)
		}
	}
	if cfg.Database == config.HistorySQLite && opts.StateDir == "" {
		var err error
		if opts.StateDir, err = userState(); err != nil {
			return opts, fmt.Errorf("history.stateDir: %w", err)
		}
	}
	return opts, nil
}

// hasDirectory looks for the directory of a file. That of the default file is made, unless dry:
// then it only must not be in the way of it.
func hasDirectory(opts store.Options, dry bool) error {
	if opts.Address == config.HistorySQLite {
		if err := madeDirectory(opts.StateDir, dry); err != nil {
			return fmt.Errorf("history.stateDir: the history's file needs a directory (or set history.database): %w", err)
		}
		return nil
	}
	if opts.File() == "" {
		return nil // which is looked at by package store
	}
	directory := filepath.Dir(opts.File())
	switch info, err := os.Stat(directory); {
	case err != nil:
		return fmt.Errorf("history.database: %w", err)
	case !info.IsDir():
		return fmt.Errorf("history.database: %s is no directory", directory)
	}
	return nil
}

func madeDirectory(path string, dry bool) error {
	if !dry {
		return os.MkdirAll(path, 0o700)
	}
	for ; ; path = filepath.Dir(path) {
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path):
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is no directory", path)
		default:
			return nil
		}
	}
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
