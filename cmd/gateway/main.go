// Command gateway is Kubecast: a read-only HTTP and Server-Sent-Events gateway between Kubernetes and web portals.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/kubecast/kubecast/internal/app"
	"github.com/kubecast/kubecast/internal/config"
)

// version is set when a release is built.
var version = "development"

const usage = `usage: gateway [COMMAND] [FLAGS]

commands:
  serve     run the gateway (the default)
  watch     print an event stream of a gateway in the terminal
  token     sign a token with a development key
  check     validate a configuration file
  history   migrate or check the schema of the history's database, print the rights it needs, copy it
  version   print the version

gateway COMMAND -h lists a command's flags.
`

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	command := "serve"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	switch command {
	case "serve":
		return serve(ctx, args)
	case "watch":
		return watch(ctx, args, out)
	case "token":
		return token(args, out)
	case "check":
		return check(args, out)
	case "history":
		return historyCommand(ctx, args, out)
	case "version":
		fmt.Fprintln(out, version)
		return nil
	case "help":
		fmt.Fprint(out, usage)
		return nil
	}
	return fmt.Errorf("there is no command %q\n\n%s", command, usage)
}

func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("gateway serve", flag.ContinueOnError)
	file := flags.String("config", "", "configuration `file`")
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig `file` of the default cluster")
	listen := flags.String("listen", "", "`address` for browsers and kubectl")
	opsListen := flags.String("ops-listen", "", "`address` for metrics, health and debugging")
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	load := func() (config.Config, error) {
		cfg := config.Default()
		if *file != "" {
			var err error
			if cfg, err = config.Load(*file); err != nil {
				return cfg, err
			}
		}
		// Flags win over the file.
		if *kubeconfig != "" {
			cfg.Clusters[0].Kubeconfig = *kubeconfig
		}
		if *listen != "" {
			cfg.Listen = *listen
		}
		if *opsListen != "" {
			cfg.OpsListen = *opsListen
		}
		return cfg, cfg.Validate()
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	log := logger(cfg.Log)
	klog.SetSlogLogger(log.With("from", "client-go"))

	ctx, cancel := context.WithCancel(ctx)
	drain, stop := context.WithCancel(ctx)
	defer stop()
	signals := make(chan os.Signal, 2)
	// There is no signal.Stop: a second signal that comes when all has ended must not look like a crash.
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel()
	listening.Go(func() {
		for _, end := range []func(){stop, cancel} {
			select {
			case <-signals:
				end()
			case <-ctx.Done():
			}
		}
	})
	limitMemory(log)
	return app.Run(ctx, app.Options{Config: cfg, Version: version, Log: log, Drain: drain, Reload: load})
}

func logger(cfg config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Level)) // cannot fail: the configuration is valid
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, opts))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opts))
}

func check(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("gateway check", flag.ContinueOnError)
	file := flags.String("config", "", "configuration `file`")
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	if *file == "" {
		return errors.New("check: --config FILE is required")
	}
	cfg, err := config.Load(*file)
	if err == nil {
		err = app.Check(cfg)
	}
	if err != nil {
		return err
	}
	for _, warning := range cfg.Warnings() {
		fmt.Fprintln(out, "warning:", warning)
	}
	fmt.Fprintln(out, *file, "is valid")
	return nil
}

// parse reads flags, which must be followed by a number of arguments.
func parse(flags *flag.FlagSet, args []string, arguments int) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != arguments {
		return fmt.Errorf("%s: %d arguments were expected, not %d: %q", flags.Name(), arguments, flags.NArg(), flags.Args())
	}
	return nil
}
