package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/app"
	"github.com/kubecast/kubecast/internal/config"
)

// historyTime bounds how long a database is waited for. That an index is made for millions of rows takes no longer.
const historyTime = time.Hour

// historyCommand is `gateway history migrate|check|grants|copy`: what `serve` does with the database's schema at its start, for who
// wants to do it before, or by another user of the database than the gateway's; the rights of such a user; and the way to another database.
func historyCommand(ctx context.Context, args []string, out io.Writer) (err error) {
	const names = "history: migrate, check, grants or copy is expected"
	if len(args) == 0 {
		return errors.New(names)
	}
	command, args := args[0], args[1:]
	if !slices.Contains([]string{"migrate", "check", "grants", "copy"}, command) {
		return fmt.Errorf("%s, not %q", names, command)
	}
	flags := flag.NewFlagSet("gateway history "+command, flag.ContinueOnError)
	if command == "copy" {
		if err := parse(flags, args, 2); err != nil {
			return err
		}
		return app.CopyHistory(ctx, flags.Arg(0), flags.Arg(1), out)
	}
	file := flags.String("config", "", "configuration `file`")
	role := new(string)
	if command == "grants" {
		role = flags.String("role", "", "who gets the rights; the user of history.database unless it is given")
	}
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	if *file == "" {
		return fmt.Errorf("history %s: --config FILE is required", command)
	}
	cfg, err := config.Load(*file)
	if err != nil {
		return err
	}
	if command == "grants" {
		return app.GrantsHistory(cfg.History, *role, out)
	}
	return historySchema(ctx, cfg.History, command == "migrate", out)
}

// historySchema brings the schema up to date, or looks whether it is.
func historySchema(ctx context.Context, cfg config.History, migrate bool, out io.Writer) (err error) {
	database, err := app.OpenHistory(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	if migrate {
		err = database.Migrate(ctx)
	} else {
		err = database.Check(ctx)
	}
	if err != nil {
		return fmt.Errorf("history.database: %w", err)
	}
	fmt.Fprintln(out, "the database's schema is the one that this gateway needs")
	return nil
}
