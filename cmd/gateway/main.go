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
	"github.com/kubecast/kubecast/internal/licenses"
)

// version is set when a release is built.
var version = "development"

// command is one of the gateway's commands.
type command struct {
	name, does string
	run        func(ctx context.Context, args []string, out io.Writer) error
}

// commands are all of them. What begins with a flag is serve.
func commands() []command {
	return []command{
		{"serve", "run the gateway (the default)", func(ctx context.Context, args []string, out io.Writer) error { return serve(ctx, args, out) }},
		{"check", "build all that serve builds, and report all faults at once; changes nothing", check},
		{"preflight", "connect to the clusters and the database, and list what is missing", preflight},
		{"explain", "say which binding or policy permits what of a path, or what is missing", explain},
		{"config", "print the configuration that serve would use, without its secrets", printConfig},
		{"history", "migrate or check the schema of the history's database, print the rights it needs, copy it", historyCommand},
		{"watch", "print an event stream of a gateway in the terminal", watch},
		{"token", "sign a token with a development key", token},
		{"licenses", "print the licenses and notices of everything that is inside", printLicenses},
		{"version", "print the version", printVersion},
		{"help", "print this", printUsage},
	}
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		if !errors.Is(err, errLogged) {
			fmt.Fprintln(os.Stderr, "gateway:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	name := "serve"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		name, args = args[0], args[1:]
	}
	for _, c := range commands() {
		if c.name == name {
			return c.run(ctx, args, out)
		}
	}
	return fmt.Errorf("there is no command %q\n\n%s", name, usage())
}

func usage() string {
	text := "usage: gateway [COMMAND] [FLAGS]\n\ncommands:\n"
	for _, c := range commands() {
		text += fmt.Sprintf("  %-10s%s\n", c.name, c.does)
	}
	return text + "\ngateway COMMAND --help lists a command's flags.\n"
}

func printUsage(_ context.Context, args []string, out io.Writer) error {
	if err := newFlags("help", "prints what commands there are", out).parse(args, 0); err != nil {
		return err
	}
	fmt.Fprint(out, usage())
	return nil
}

func printLicenses(_ context.Context, args []string, out io.Writer) error {
	if err := newFlags("licenses", "prints the licenses and notices of everything that is inside", out).parse(args, 0); err != nil {
		return err
	}
	_, err := io.WriteString(out, licenses.Notices)
	return err
}

func printVersion(_ context.Context, args []string, out io.Writer) error {
	if err := newFlags("version", "prints the version", out).parse(args, 0); err != nil {
		return err
	}
	fmt.Fprintln(out, version)
	return nil
}

// configured are the flags of commands that read a configuration as serve does.
type configured struct{ file, kubeconfig, listen, opsListen string }

func (c *configured) addTo(flags flags) {
	flags.StringVar(&c.file, "config", "", "configuration `file`")
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the default cluster")
}

// load reads the file. Flags win over it.
func (c *configured) load() (config.Config, error) {
	cfg := config.Default()
	if c.file != "" {
		var err error
		if cfg, err = config.Load(c.file); err != nil {
			return cfg, err
		}
	}
	if c.kubeconfig != "" {
		cfg.Clusters[0].Kubeconfig = c.kubeconfig
	}
	if c.listen != "" {
		cfg.Listen = c.listen
	}
	if c.opsListen != "" {
		cfg.OpsListen = c.opsListen
	}
	return cfg, cfg.Validate()
}

func serve(ctx context.Context, args []string, out io.Writer) error {
	flags := newFlags("serve", "runs the gateway", out)
	var from configured
	from.addTo(flags)
	flags.StringVar(&from.listen, "listen", "", "`address` for browsers and kubectl")
	flags.StringVar(&from.opsListen, "ops-listen", "", "`address` for metrics, health and debugging")
	if err := flags.parse(args, 0); err != nil {
		return err
	}
	load := from.load
	cfg, err := load()
	if err != nil {
		return err
	}
	level := &slog.LevelVar{}
	level.Set(cfg.Log.SlogLevel())
	log := logger(os.Stderr, cfg.Log, level)
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
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	limitMemory(log)
	err = app.Run(ctx, app.Options{Config: cfg, Version: version, Log: log, Level: level, Drain: drain, Reload: load, Again: again})
	if err != nil && cfg.Log.Format == "json" { // whoever reads the log can read no other line
		log.Error("the gateway ends", "error", err)
		return errLogged
	}
	return err
}

// errLogged is an error that the log has.
var errLogged = errors.New("see the log")

func logger(out io.Writer, cfg config.Log, level slog.Leveler) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: plainLevel}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(out, opts))
	}
	return slog.New(slog.NewTextHandler(out, opts))
}

// plainLevel names each level by one of four words. client-go's log has levels between them, which slog prints as
// DEBUG+2, and no log collector knows.
func plainLevel(groups []string, a slog.Attr) slog.Attr {
	level, is := a.Value.Any().(slog.Level)
	if !is || a.Key != slog.LevelKey || len(groups) > 0 {
		return a
	}
	for _, plain := range []slog.Level{slog.LevelError, slog.LevelWarn, slog.LevelInfo} {
		if level >= plain {
			return slog.String(a.Key, plain.String())
		}
	}
	return slog.String(a.Key, slog.LevelDebug.String())
}

func check(_ context.Context, args []string, out io.Writer) error {
	flags := newFlags("check", "builds all that serve builds, and reports all faults at once. It connects to nothing, and changes nothing", out)
	var from configured
	from.addTo(flags)
	if err := flags.parse(args, 0); err != nil {
		return err
	}
	if from.file == "" {
		return errors.New("check: --config FILE is required")
	}
	cfg, err := from.load()
	if err == nil {
		err = app.Check(cfg)
	}
	if err != nil {
		return err
	}
	for _, warning := range cfg.Warnings() {
		fmt.Fprintln(out, "warning:", warning)
	}
	fmt.Fprintln(out, from.file, "is valid")
	return nil
}

func printConfig(_ context.Context, args []string, out io.Writer) error {
	cfg, err := configuredBy("config", "prints the configuration that serve would use: the defaults, the file and the flags, without secrets", args, out)
	if err != nil {
		return err
	}
	text, err := config.Print(cfg)
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

func preflight(ctx context.Context, args []string, out io.Writer) error {
	cfg, err := configuredBy("preflight",
		"builds all that serve builds, connects to each cluster and to the history's database, and lists what is missing. It changes nothing", args, out)
	if err != nil {
		return err
	}
	return app.Preflight(ctx, app.Options{Config: cfg, Version: version}, out)
}

// configuredBy reads the configuration that the flags of a command name, which has no others.
func configuredBy(name, does string, args []string, out io.Writer) (config.Config, error) {
	flags := newFlags(name, does, out)
	var from configured
	from.addTo(flags)
	if err := flags.parse(args, 0); err != nil {
		return config.Config{}, err
	}
	return from.load()
}

// flags are a command's flags, and how it is helped with.
type flags struct {
	*flag.FlagSet
	help func()
}

// newFlags are the flags of a command, whose help says first what the command does.
func newFlags(name, does string, out io.Writer) flags {
	f := flags{FlagSet: flag.NewFlagSet("gateway "+name, flag.ContinueOnError)}
	f.SetOutput(io.Discard) // what is wrong is returned, and printed once
	f.help = func() {
		fmt.Fprintf(out, "gateway %s %s.\n", name, does)
		f.SetOutput(out)
		f.PrintDefaults()
	}
	return f
}

// parse reads flags, which must be followed by a number of arguments.
func (f flags) parse(args []string, arguments int) error {
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		f.help()
		return err
	case err != nil:
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	if f.NArg() != arguments {
		return fmt.Errorf("%s: %d arguments were expected, not %d: %q", f.Name(), arguments, f.NArg(), f.Args())
	}
	return nil
}
