package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/kubecast/kubecast/deploy/alerttest"
	"github.com/kubecast/kubecast/e2e/harness"
)

const (
	// scale is by how much the windows and `for` of all rules, and whatever else of Prometheus is a time, are shorter than
	// where it runs: a minute is a second. What expressions compare with is untouched, as are rates, which are per second.
	scale = 60

	scrapes     = 30 * time.Second / scale
	evaluations = 30 * time.Second / scale
	lookback    = 5 * time.Minute / scale

	job = "kubecast/gateway" // as a PodMonitor names it

	// firesWithin is how long an alert may take once its fault is there; the slowest need windows and `for` of ten minutes each, or
	// thresholds of two minutes that are real ones.
	firesWithin = 5 * time.Minute

	// patience is how long all else may take that takes seconds on an idle machine.
	patience = 2 * time.Minute
)

// server is a Prometheus that scrapes gateways, and evaluates the rules.
type server struct {
	t      *testing.T
	db     *tsdb.DB
	engine *promql.Engine
	rules  *rules.Manager

	mu    sync.Mutex
	fired map[string]string // alerts that have fired at any time, with a summary
}

// scrapeGateways runs a Prometheus that scrapes the ops listeners of gateways until the test ends.
func scrapeGateways(t *testing.T, gateways ...*gateway) *server {
	t.Helper()
	text := fmt.Sprintf("global: {scrape_interval: %dms, scrape_timeout: %[1]dms}\nscrape_configs: [{job_name: %q}]\n", scrapes.Milliseconds(), job)
	cfg, err := config.Load(text, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p := &server{t: t, fired: map[string]string{}}
	quiet := slog.New(slog.DiscardHandler)
	if p.db, err = tsdb.Open(t.TempDir(), quiet, nil, tsdb.DefaultOptions(), nil); err != nil {
		t.Fatal(err)
	}
	p.engine = promql.NewEngine(promql.EngineOpts{Logger: quiet, MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: lookback, Parser: alerttest.Parser})
	scraper, err := scrape.NewManager(&scrape.Options{DiscoveryReloadOnStartup: true}, quiet, nil, nil, p.db, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if err := scraper.ApplyConfig(cfg); err != nil {
		t.Fatal(err)
	}
	targets := make(chan map[string][]*targetgroup.Group, 1)
	group := &targetgroup.Group{Source: job}
	for _, g := range gateways {
		group.Targets = append(group.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(g.ops)})
	}
	targets <- map[string][]*targetgroup.Group{job: {group}}
	p.rules = rules.NewManager(&rules.ManagerOptions{
		AppendableV2: p.db, Queryable: p.db, QueryFunc: rules.EngineQueryFunc(p.engine, p.db), NotifyFunc: p.notify,
		Context: context.Background(), Logger: quiet, Registerer: prometheus.NewRegistry(), GroupLoader: loader{}, Parser: alerttest.Parser,
	})
	if err := p.rules.Update(evaluations, []string{"../../prometheus.yaml"}, labels.EmptyLabels(), "", nil); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = scraper.Run(targets) })
	running.Go(p.rules.Run)
	t.Cleanup(func() {
		p.rules.Stop()
		scraper.Stop()
		close(targets)
		running.Wait()
		if err := p.db.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// loader loads the rules of the manifest, with their times by scale shorter.
type loader struct{}

func (loader) Parse(query string) (parser.Expr, error) { return alerttest.Parser.ParseExpr(query) }

func (l loader) Load(manifest string, _ bool, _ model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	all, err := alerttest.Rules(manifest)
	if err != nil {
		return nil, []error{err}
	}
	for i := range all {
		all[i].For /= scale
		all[i].Expr, err = scaled(all[i].Expr)
		if err != nil {
			return nil, []error{err}
		}
	}
	return &rulefmt.RuleGroups{Groups: []rulefmt.RuleGroup{{Name: "kubecast", Rules: all}}}, nil
}

// scaled is an expression whose windows are by scale shorter.
func scaled(expression string) (string, error) {
	expr, err := alerttest.Parser.ParseExpr(expression)
	if err != nil {
		return "", err
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if n, is := node.(*parser.MatrixSelector); is {
			n.Range /= scale
		}
		return nil
	})
	return expr.String(), nil
}

// notify is what the server would tell the Alertmanager.
func (p *server) notify(_ context.Context, _ string, alerts ...*rules.Alert) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, alert := range alerts {
		if alert.State == rules.StateFiring {
			p.fired[alert.Labels.Get(labels.AlertName)] = alert.Annotations.Get("summary")
		}
	}
}

// everFired are the alerts that have fired since the beginning, with a summary each.
func (p *server) everFired() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]string{}
	for name, summary := range p.fired {
		all[name] = summary
	}
	return all
}

// begins forgets what has fired, once nothing does: a start takes longer than what is by scale shorter than two minutes.
func (p *server) begins() {
	p.t.Helper()
	harness.Eventually(p.t, "nothing fires after the start", patience, func() error {
		for _, rule := range p.rules.AlertingRules() {
			if p.firing(rule.Name()) != nil {
				return errors.New(rule.Name() + " does")
			}
		}
		return nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.fired)
}

// firing are the summaries of an alert that fires at the moment.
func (p *server) firing(alert string) (summaries []string) {
	for _, rule := range p.rules.AlertingRules() {
		if rule.Name() != alert {
			continue
		}
		if err := rule.LastError(); err != nil {
			p.t.Errorf("%s: %v", alert, err)
		}
		for _, active := range rule.ActiveAlerts() {
			if active.State == rules.StateFiring {
				summaries = append(summaries, active.Annotations.Get("summary"))
			}
		}
	}
	return summaries
}

// isSilent waits until some alerts neither fire nor are about to: what they are about has not been brought about. One whose expression
// is always true would be about to for as long as its `for` lasts.
func (p *server) isSilent(alerts ...string) {
	p.t.Helper()
	began := time.Now()
	for _, rule := range p.rules.AlertingRules() {
		if !slices.Contains(alerts, rule.Name()) {
			continue
		}
		harness.Eventually(p.t, rule.Name()+" is silent before there is a fault", patience, func() error {
			if !rule.GetEvaluationTimestamp().After(began) {
				return errors.New("it was not evaluated")
			}
			if active := rule.ActiveAlerts(); len(active) > 0 {
				return fmt.Errorf("%s: %s", active[0].State, active[0].Annotations.Get("summary"))
			}
			return nil
		})
	}
}

// fires waits until an alert fires, and says something in its summary.
func (p *server) fires(alert, says string) {
	p.t.Helper()
	began := time.Now()
	harness.Eventually(p.t, alert+" fires", firesWithin, func() error {
		said := p.firing(alert)
		if len(said) == 0 {
			return errors.New("it does not: " + p.now(alert))
		}
		if !strings.Contains(strings.Join(said, "\n"), says) {
			return fmt.Errorf("it says %q, and not %q", said, says)
		}
		return nil
	})
	p.t.Logf("%s fires after %.1fs: %q", alert, time.Since(began).Seconds(), p.firing(alert))
}

// ends waits until an alert does not fire any more.
func (p *server) ends(alert string) {
	p.t.Helper()
	harness.Eventually(p.t, alert+" ends", firesWithin, func() error {
		if said := p.firing(alert); said != nil {
			return fmt.Errorf("it fires: %q", said)
		}
		return nil
	})
}

// now is what the series of an alert are at the moment, for a test that fails.
func (p *server) now(alert string) string {
	var said strings.Builder
	for _, rule := range p.rules.AlertingRules() {
		if rule.Name() != alert {
			continue
		}
		fmt.Fprintf(&said, "%s\n", rule.Query())
		parser.Inspect(rule.Query(), func(node parser.Node, _ []parser.Node) error {
			if n, is := node.(*parser.VectorSelector); is {
				fmt.Fprintf(&said, "%s: %v\n", n, p.query(n.String()))
			}
			return nil
		})
	}
	return said.String()
}

// query evaluates an expression now.
func (p *server) query(expression string) promql.Vector {
	p.t.Helper()
	query, err := p.engine.NewInstantQuery(p.t.Context(), p.db, nil, expression, time.Now())
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	defer query.Close()
	result := query.Exec(p.t.Context())
	switch value := result.Value.(type) {
	case promql.Vector:
		return append(promql.Vector{}, value...)
	case promql.Scalar:
		return promql.Vector{{T: value.T, F: value.V}}
	default:
		p.t.Fatalf("%s: %v %v", expression, result.Value, result.Err)
		return nil
	}
}

// sees waits until an expression has a value, and returns it: what a test did has been scraped. What is not scraped in time, as on a busy
// machine, has none.
func (p *server) sees(expression string) (value float64) {
	p.t.Helper()
	harness.Eventually(p.t, "Prometheus sees "+expression, patience, func() error {
		found := p.query(expression)
		if len(found) == 0 {
			return errors.New("it does not")
		}
		value = found[0].F
		return nil
	})
	return value
}
