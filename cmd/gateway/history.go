package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/app"
	"github.com/kubecast/kubecast/internal/config"
)

// historyTime bounds how long a database is waited for. That an index is made for millions of rows takes no longer.
const historyTime = time.Hour

// historyCommands are those of `gateway history`: what `serve` does with the database's schema at
// its start, for who wants to do it before, or by another user of the database than the gateway's;
// the rights of such a user; and the way to another database.
var historyCommands = []command{
	{"migrate", "brings the schema up to date", migrateHistory},
	{"check", "says whether the schema fits, and changes nothing", checkHistory},
	{"grants", "prints the rights that a gateway needs which does not change the schema", grantsHistory},
	{"copy", "FROM TO copies everything to an empty database; each is a configuration file or an address", copyHistory},
}

func historyCommand(ctx context.Context, args []string, out io.Writer) error {
	var names []string
	for _, c := range historyCommands {
		if names = append(names, c.name); len(args) > 0 && args[0] == c.name {
			return c.run(ctx, args[1:], out)
		}
	}
	if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		for _, c := range historyCommands {
			fmt.Fprintf(out, "gateway history %s %s.\n", c.name, c.does)
		}
		return nil
	}
	return fmt.Errorf("history: one of %s is expected, not %q", strings.Join(names, ", "), args)
}

// historyOf parses the flags of a command that needs a configuration file, and reads that.
func historyOf(flags flags, args []string) (config.History, error) {
	file := flags.String("config", "", "configuration `file`")
	if err := flags.parse(args, 0); err != nil {
		return config.History{}, err
	}
	if *file == "" {
		return config.History{}, fmt.Errorf("%s: --config FILE is required", flags.Name())
	}
	cfg, err := config.Load(*file)
	return cfg.History, err
}

func migrateHistory(ctx context.Context, args []string, out io.Writer) error {
	cfg, err := historyOf(newFlags("history migrate", "brings the schema of the history's database up to date", out), args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	return isTheOne(app.MigrateHistory(ctx, cfg, version), out)
}

func checkHistory(ctx context.Context, args []string, out io.Writer) error {
	cfg, err := historyOf(newFlags("history check", "says whether the schema of the history's database is one that this gateway can use, and changes nothing", out), args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	return isTheOne(app.CheckHistory(ctx, cfg), out)
}

func isTheOne(err error, out io.Writer) error {
	if err == nil {
		fmt.Fprintln(out, "the database's schema is one that this gateway can use")
	}
	return err
}

func grantsHistory(_ context.Context, args []string, out io.Writer) error {
	flags := newFlags("history grants", "prints the statements that give a role the rights of a gateway which does not change the schema. The tables' owner executes them", out)
	role := flags.String("role", "", "`who` gets the rights, for MariaDB also NAME@HOST; the user of history.database unless it is given")
	cfg, err := historyOf(flags, args)
	if err != nil {
		return err
	}
	return app.GrantsHistory(cfg, *role, out)
}

func copyHistory(ctx context.Context, args []string, out io.Writer) error {
	flags := newFlags("history copy", "FROM TO copies everything to an empty database, whose tables were made by `gateway history migrate`. Each is a configuration file, or an address. No gateway may run. A copy that broke off is gone on with by the same command", out)
	if err := flags.parse(args, 2); err != nil {
		return err
	}
	return app.CopyHistory(ctx, flags.Arg(0), flags.Arg(1), out)
}
