package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/kubecast/kubecast/e2e/harness"
)

// withFaultsOnly are the panels that show something only while something is wrong, with the scene that looks at them then.
var withFaultsOnly = map[string]string{
	"Stale kinds":                        "cluster",
	"Kinds listed again, a minute":       "none: a watch that is answered 410 is listed again too seldom for a window of seconds",
	"Failures of the database, a minute": "database",
}

// While nothing is wrong no alert fires, and each panel of the dashboard shows something of a gateway that has everything and is used.
func TestNothingFiresAndEachPanelShowsSomethingWhileAllIsWell(t *testing.T) {
	s := onStage(t)
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(keys)) }))
	t.Cleanup(issuer.Close)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	g := s.gateway(t, options{
		auth:   fmt.Sprintf("  - {issuer: \"https://there.example.org\", audiences: [kubecast], jwksURL: \"%s/keys\", trusted: same}\n", issuer.URL),
		config: fmt.Sprintf("webhooks: [{name: here, url: %q}]\naudit: {level: metadata, file: %q}\n", receiver.URL, t.TempDir()+"/audit.log"),
		env:    []string{"GOMEMLIMIT=1GiB"},
	}).start().ready()
	p := scrapeGateways(t, g)
	p.sees("min(kubecast_history_recording) == 1 and sum(kubecast_webhook_sending) == 1")
	p.begins()

	viewer, stranger := s.viewer(t, "quiet"), s.user(t, "quiet-stranger")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	reading := eachOf(t, 2, func(<-chan struct{}) { _ = stream(ctx, g, viewer, "/api/v1/pods", "", "never") })
	defer reading()
	defer leave() // before they are waited for
	often(t, 5, func(ctx context.Context) { _ = stream(ctx, g, viewer, "/apis/batch/v1/jobs", "", "event: synced") })
	often(t, 5, func(context.Context) { _, _, _ = g.get("http://"+g.listen, viewer, "/api/v1/pods") })
	often(t, 1, func(context.Context) { _, _, _ = g.get("http://"+g.listen, stranger, "/api/v1/pods") })
	often(t, 1, func(context.Context) { _, _, _ = g.get("http://"+g.listen, "none.at.all", "/api/v1/pods") })
	jobs := make(chan struct{})
	go func() { // whose pods and states are told of
		defer close(jobs)
		for n := 0; ctx.Err() == nil; n++ {
			_ = s.live(ctx, fmt.Sprintf("quiet-%d", n), "owner")
		}
	}()
	t.Cleanup(func() { leave(); <-jobs })

	unseen := map[string]string{}
	for _, q := range queries(t) {
		if withFaultsOnly[q.title] == "" {
			unseen[q.title+": "+q.expression] = q.expression
		}
	}
	if len(unseen) < 35 {
		t.Errorf("only %d queries were found", len(unseen))
	}
	began := time.Now()
	harness.Eventually(t, "each panel shows something", patience, func() error {
		for of, expression := range unseen {
			if shows(p.query(expression)) {
				delete(unseen, of)
			}
		}
		if len(unseen) > 0 {
			return fmt.Errorf("these do not: %q", unseen)
		}
		return nil
	})
	t.Logf("each panel shows something after %.0fs", time.Since(began).Seconds())
	time.Sleep(time.Until(began.Add(25 * time.Second))) // windows and `for` of ten minutes, and somewhat more
	if fired := p.everFired(); len(fired) > 0 {
		t.Errorf("these fire, and nothing is wrong: %q", fired)
	}
}

// shows reports whether a panel shows something: a quantile of nothing is none.
func shows(v promql.Vector) bool {
	return slices.ContainsFunc(v, func(s promql.Sample) bool { return !math.IsNaN(s.F) })
}

// showsPanel waits until a panel shows something that shows faults alone.
func (p *server) showsPanel(scene, title string) {
	p.t.Helper()
	if withFaultsOnly[title] != scene {
		p.t.Errorf("%q is not one of those that %q looks at", title, scene)
	}
	for _, q := range queries(p.t) {
		if q.title != title {
			continue
		}
		harness.Eventually(p.t, "the panel "+title+" shows something", patience, func() error {
			if !shows(p.query(q.expression)) {
				return errors.New("it does not")
			}
			return nil
		})
		return
	}
	p.t.Errorf("there is no panel %q", title)
}

// panelQuery is one of a panel's.
type panelQuery struct{ title, expression string }

// queries are those of the dashboard, for all replicas and clusters, with windows by scale shorter.
func queries(t *testing.T) (all []panelQuery) {
	t.Helper()
	text, err := os.ReadFile("../../grafana/kubecast.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		title := panel.Title
		if panel.Type == "stat" { // a number, of which some are graphs as well
			title += ", now"
		}
		for _, target := range panel.Targets {
			expression, err := scaled(strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$cluster", ".*").Replace(target.Expr))
			if err != nil {
				t.Fatalf("%s: %v", title, err)
			}
			all = append(all, panelQuery{title, expression})
		}
	}
	return all
}
