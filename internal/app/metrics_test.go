package app

import (
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/certtest"
	"github.com/kubecast/kubecast/internal/config"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

// complete is a configuration of everything that has metrics.
func complete(t *testing.T, url string) config.Config {
	t.Helper()
	cfg, _ := configuration(t, url)
	cfg.Authorizer.Mode = config.AuthorizerRBAC
	cfg.Auth.JWT[0].PublicKeyFile, cfg.Auth.JWT[0].JWKSURL = "", "http://127.0.0.1:1/keys"
	cfg.Auth.OIDCLogin = config.OIDCLogin{ClientID: "kubecast", ClientSecretFile: written(t, "s3cret"), RedirectURL: "https://h/auth/callback"}
	cfg.Auth.Revocations.ConfigMap = "kubecast/revoked"
	cfg.Audit = config.Audit{Level: config.AuditMetadata, File: filepath.Join(t.TempDir(), "audit.log")}
	cfg.Webhooks = []config.Webhook{{Name: "w", URL: "http://127.0.0.1:1", Concurrency: 1}}
	cfg.Stream.Replicas = []string{"127.0.0.1:1"}
	cfg.TLS.CertFile, cfg.TLS.KeyFile = certtest.New(t, "h").Write(t, t.TempDir())
	return cfg
}

func written(t *testing.T, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// metrics are what a gateway exports.
func (g *gateway) metrics() string {
	g.t.Helper()
	_, text := g.get(g.ops, "/metrics")
	return text
}

var (
	selector = regexp.MustCompile(`\b(kubecast_\w+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)=(~?)"([^"]*)"`)
)

// An alert on a vector that has no samples yet sees nothing, and a rate misses what such a counter begins with.
func TestWhatAlertsNeedIsExportedFromTheStart(t *testing.T) {
	_, url := apitest.Start(t)
	g := start(t, complete(t, url), "")
	found := 0
	for line := range strings.Lines(document(t, "deploy/prometheus.yaml")) {
		expression, isRule := strings.CutPrefix(strings.TrimSpace(line), "expr: ")
		if !isRule && !strings.Contains(line, "rate(") {
			continue
		}
		for _, s := range selector.FindAllStringSubmatch(expression, -1) {
			for _, labels := range alternatives(s[2]) {
				found++
				g.until(fmt.Sprintf("%s%v is exported", s[1], labels), func() bool { return exports(g.metrics(), s[1], labels) })
			}
		}
	}
	if found < 25 {
		t.Errorf("only %d series were found in the alerts", found)
	}
}

// alternatives are the labels that each of the series has that a selector is about.
func alternatives(matchers string) []map[string]string {
	all := []map[string]string{{}}
	for _, m := range matcher.FindAllStringSubmatch(matchers, -1) {
		values := []string{m[3]}
		if m[2] != "" {
			values = strings.Split(m[3], "|")
		}
		var more []map[string]string
		for _, labels := range all {
			for _, value := range values {
				with := map[string]string{m[1]: value}
				for k, v := range labels {
					with[k] = v
				}
				more = append(more, with)
			}
		}
		all = more
	}
	return all
}

// exports reports whether a metric has a sample with some labels.
func exports(text, metric string, labels map[string]string) bool {
	for line := range strings.Lines(text) {
		rest, is := strings.CutPrefix(line, metric)
		if is && (rest[0] == '{' || rest[0] == ' ') && !slices.ContainsFunc(slices.Collect(maps.Keys(labels)), func(label string) bool {
			return !strings.Contains(rest, fmt.Sprintf("%s=%q", label, labels[label]))
		}) {
			return true
		}
	}
	return false
}

// metricDescription is how a metric's description prints itself, the only way to read it.
var metricDescription = regexp.MustCompile(`^Desc\{fqName: "(\w+)", help: (".*"), unit: "\w*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// description is what is said of a metric.
type description struct{ help, labels string }

// registered are the descriptions of all metrics of a gateway.
func registered(t *testing.T, cfg config.Config) map[string]description {
	t.Helper()
	opts := Options{Config: cfg, Version: "test", Log: slog.New(slog.DiscardHandler)}
	g, err := build(opts, false)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	newReload(opts, g)
	all := make(chan *prometheus.Desc)
	go func() {
		defer close(all)
		g.registry.Describe(all)
	}()
	found := map[string]description{}
	for d := range all {
		parts := metricDescription.FindStringSubmatch(d.String())
		if parts == nil {
			t.Fatalf("%s does not look as expected", d)
		}
		help, err := strconv.Unquote(parts[2])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(parts[1], "kubecast_") {
			continue // of Go or the process
		}
		var labels []string
		for _, constant := range labelName.FindAllStringSubmatch(parts[3], -1) {
			labels = append(labels, constant[1])
		}
		if parts[4] != "" {
			labels = append(labels, strings.Split(parts[4], ",")...)
		}
		found[parts[1]] = description{strings.ReplaceAll(help, "|", "\\|"), strings.Join(labels, ", ")}
	}
	return found
}

var typeLine = regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)$`)

var labelName = regexp.MustCompile(`(\w+)=`)

// The table in docs/metrics.md is made from what the gateway registers. To write it anew: make docs.
func TestTheTableOfMetricsIsThatOfTheCode(t *testing.T) {
	_, url := apitest.Start(t)
	cfg := complete(t, url)
	rows := map[string]string{}
	g := start(t, cfg, "")
	code := ""
	for _, text := range sources(t, ".go") {
		code += text
	}
	types := map[string]string{}
	g.until("each has a sample", func() bool {
		for _, line := range typeLine.FindAllStringSubmatch(g.metrics(), -1) {
			types[line[1]] = line[2]
		}
		return types["kubecast_history_lag_seconds"] != "" && types["kubecast_webhook_waiting"] != "" && types["kubecast_upstream_live"] != ""
	})
	for name, m := range registered(t, cfg) {
		kind := types[name]
		switch {
		case kind != "":
		case strings.HasSuffix(name, "_total"):
			kind = "counter" // a vector of which nothing was counted
		default: // what is told only while there is something of it
			kind = "gauge"
			if regexp.MustCompile(`HistogramOpts\{\s*Name:\s*"` + name + `"`).MatchString(code) {
				kind = "histogram"
			}
		}
		rows[name] = fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, kind, m.labels, m.help)
	}
	names := slices.Sorted(maps.Keys(rows))
	if len(names) < 80 {
		t.Errorf("only %d metrics were found", len(names))
	}
	const begin = "| metric | type | labels | |\n| --- | --- | --- | --- |\n"
	text := document(t, "docs/metrics.md")
	before, rest, ok := strings.Cut(text, begin)
	if !ok {
		t.Fatal("docs/metrics.md has no table")
	}
	_, after, _ := strings.Cut(rest, "\n\n")
	wanted := before + begin
	for _, name := range names {
		wanted += rows[name]
	}
	wanted += "\n" + after
	switch {
	case text == wanted:
	case *update:
		if err := os.WriteFile(filepath.Join(root, "docs/metrics.md"), []byte(wanted), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/metrics.md is not up to date: make docs")
	}
}
