package alerttest

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// A panel whose metric, or label, was renamed shows nothing, and nobody notices.
func TestPanelsAskForWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../grafana/kubecast.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Panels  []any
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	known, asked := metrics(t), 0
	for _, panel := range board.Panels {
		if len(panel.Panels) > 0 {
			t.Errorf("the panels of %q are not looked at", panel.Title)
		}
		for _, target := range panel.Targets {
			asked++
			checkQuery(t, panel.Title, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"), known)
		}
	}
	if asked < 40 {
		t.Errorf("only %d queries were found", asked)
	}
	for _, rule := range alerts(t) {
		checkQuery(t, rule.Alert, rule.Expr, known)
	}
}

// metrics are the labels of those that the gateway has, by their names, from the table that is made from the code.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{ // Prometheus' own, and each Go program's
		"up":                            nil,
		"process_resident_memory_bytes": nil, "process_cpu_seconds_total": nil, "process_open_fds": nil, "process_max_fds": nil, "process_start_time_seconds": nil, "go_gc_gomemlimit_bytes": nil,
	}
	for _, cells := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([\\w, ]*) \\|").FindAllStringSubmatch(string(text), -1) {
		of := strings.FieldsFunc(cells[3], func(c rune) bool { return c == ',' || c == ' ' })
		if cells[2] == "histogram" {
			all[cells[1]+"_bucket"], all[cells[1]+"_count"], all[cells[1]+"_sum"] = append(of, "le"), of, of
			continue
		}
		all[cells[1]] = of
	}
	return all
}

// checkQuery checks that a query is one, and that the metrics that it names have the labels by which it selects and groups.
func checkQuery(t *testing.T, of, expression string, known map[string][]string) {
	t.Helper()
	expr, err := Parser.ParseExpr(expression)
	if err != nil {
		t.Errorf("%s asks for %s: %v", of, expression, err)
		return
	}
	everywhere := []string{"namespace", "job", "instance", model.MetricNameLabel}
	var have, grouped []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			its, there := known[n.Name]
			if !there {
				t.Errorf("%s asks for %s, which there is not", of, n.Name)
			}
			for _, m := range n.LabelMatchers {
				if !slices.Contains(everywhere, m.Name) && !slices.Contains(its, m.Name) {
					t.Errorf("%s asks for %s by %s, which it does not have", of, n.Name, m.Name)
				}
			}
			have = append(have, its...)
		case *parser.AggregateExpr:
			grouped = append(grouped, n.Grouping...)
		}
		return nil
	})
	for _, label := range grouped {
		if !slices.Contains(everywhere, label) && !slices.Contains(have, label) {
			t.Errorf("%s groups by %s, which nothing has: %s", of, label, expression)
		}
	}
}

// The dashboard is that of its source.
func TestTheDashboardIsThatOfItsSource(t *testing.T) {
	want, err := exec.Command("go", "run", "-C", "../grafana", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if is, err := os.ReadFile("../grafana/kubecast.json"); err != nil || string(is) != string(want) {
		t.Errorf("deploy/grafana/kubecast.json is another: make docs (%v)", err)
	}
}
