package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/kubecast/kubecast/internal/app"
	"github.com/kubecast/kubecast/internal/config"
)

// historyTime bounds how long a database is waited for. That an index is made for millions of rows takes no longer.
const historyTime = time.Hour

// historyCommand is `gateway history migrate|check`: what `serve` does with the database's schema at its start, for who wants to do
// it before, or by another user of the database than the gateway's.
func historyCommand(ctx context.Context, args []string, out io.Writer) (err error) {
	const names = "history: migrate or check is expected"
	if len(args) == 0 {
		return errors.New(names)
	}
	command, args := args[0], args[1:]
	if command != "migrate" && command != "check" {
		return fmt.Errorf("%s, not %q", names, command)
	}
	flags := flag.NewFlagSet("gateway history "+command, flag.ContinueOnError)
	file := flags.String("config", "", "configuration `file`")
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
	database, err := app.OpenHistory(cfg.History)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	if command == "migrate" {
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
