// Command grafana prints the dashboard that stands beside it (kubecast.json), which `make docs` writes with it.
// deploy/alerttest checks its queries.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func main() {
	text, err := build()
	if err != nil {
		fmt.Fprintln(os.Stderr, "grafana:", err)
		os.Exit(1)
	}
	fmt.Println(text)
}

// panel is one of the dashboard's. In its queries, $I are the chosen instances' labels, and $C these and the cluster's.
type panel struct {
	title, describes, unit string
	height, width          uint32
	isNumber               bool // and no graph
	queries                []query
}

type query struct{ expression, legend string }

type row struct {
	title  string
	panels []panel
}

var rows = []row{
	{"Is it well?", []panel{
		number("Ready replicas", "short", `sum(kubecast_ready{$I})`),
		number("Open streams", "short", `sum(kubecast_streams_open{$I})`),
		number("Events sent, a second", "short", `sum(rate(kubecast_stream_events_sent_total{$I}[$__rate_interval]))`),
		number("99.9 % are sent within", "s", `histogram_quantile(0.999, sum by (le) (rate(kubecast_stream_append_to_flush_seconds_bucket{$I}[$__rate_interval])))`),
		number("Stale kinds", "short", `count(kubecast_upstream_live{$C} == 0) or vector(0)`),
		number("History behind by", "s", `max(kubecast_history_lag_seconds{$C}) or vector(0)`),
	}},
	{"Clients", []panel{
		graph("Open streams", "Each replica's. They are spread evenly a few minutes after replicas came or went.", "short", query{`kubecast_streams_open{$I}`, "{{instance}}"}),
		graph("From a change to the socket", "How long events wait within the gateway.", "s",
			query{`histogram_quantile(0.5, sum by (le) (rate(kubecast_stream_append_to_flush_seconds_bucket{$I}[$__rate_interval])))`, "half"},
			query{`histogram_quantile(0.99, sum by (le) (rate(kubecast_stream_append_to_flush_seconds_bucket{$I}[$__rate_interval])))`, "99 %"},
			query{`histogram_quantile(0.999, sum by (le) (rate(kubecast_stream_append_to_flush_seconds_bucket{$I}[$__rate_interval])))`, "99.9 %"}),
		graph("Streams that ended, a second", "left: the client did. drain and age are planned, and lose nothing.", "short", query{`sum by (reason) (rate(kubecast_streams_ended_total{$I}[$__rate_interval])) > 0`, "{{reason}}"}),
		graph("Snapshots anew, a second", "Clients that could not go on where they were.", "short", query{`sum by (reason) (rate(kubecast_stream_resets_total{$I}[$__rate_interval]))`, "{{reason}}"}),
		graph("Sent, before compression", "Of streams.", "Bps", query{`sum by (instance) (rate(kubecast_stream_bytes_sent_total{$I}[$__rate_interval]))`, "{{instance}}"}),
		graph("Requests, a second", "Streams excepted, by status.", "short", query{`sum by (code) (rate(kubecast_http_requests_total{$I}[$__rate_interval]))`, "{{code}}"}),
		graph("99 % of requests are answered within", "By route.", "s", query{`histogram_quantile(0.99, sum by (route, le) (rate(kubecast_http_request_duration_seconds_bucket{$I}[$__rate_interval])))`, "{{route}}"}),
		graph("Connections", "And the least limit of a replica.", "short", query{`kubecast_connections{$I}`, "{{instance}}"}, query{`min(kubecast_connections_limit{$I} > 0)`, "limit"}),
	}},
	{"API servers", []panel{
		graph("Requests to API servers, a second", "By what they answered.", "short", query{`sum by (cluster, code) (rate(kubecast_upstream_requests_total{$C}[$__rate_interval]))`, "{{cluster}} {{code}}"}),
		graph("Stale kinds", "Whose watch is lost.", "short", query{`kubecast_upstream_live{$C} == 0`, "{{instance}} {{cluster}} {{kind}}"}),
		graph("Kinds listed again, a minute", "Since their watch could not go on.", "short", query{`60 * sum by (cluster, kind) (rate(kubecast_upstream_relists_total{$C}[$__rate_interval])) > 0`, "{{cluster}} {{kind}}"}),
		graph("Objects", "The ten largest kinds.", "short", query{`topk(10, max by (cluster, kind) (kubecast_cache_objects{$C}))`, "{{cluster}} {{kind}}"}),
		graph("How far back streams can go on", "From the replay ring; further back, from the API server.", "s", query{`bottomk(10, min by (cluster, kind) (kubecast_ring_age_seconds{$C}))`, "{{cluster}} {{kind}}"}),
		graph("Memory of objects and rings", "By replica.", "bytes", query{`sum by (instance) (kubecast_cache_bytes{$C})`, "{{instance}} objects"}, query{`sum by (instance) (kubecast_ring_bytes{$C})`, "{{instance}} rings"}),
	}},
	{"Who may see what", []panel{
		graph("Requests by who sends them, a second", "accepted, none, expired, revoked, invalid, …", "short", query{`sum by (result) (rate(kubecast_auth_requests_total{$I}[$__rate_interval])) > 0`, "{{result}}"}),
		graph("Decisions, a second", "Whether somebody may see something.", "short", query{`sum by (decision) (rate(kubecast_auth_decisions_total{$I}[$__rate_interval]))`, "{{decision}}"}),
		graph("Age of permissions", "For how long a cluster that answers did not confirm them. At 60 s nobody is let in.", "s", query{`max by (cluster) (kubecast_rbac_unconfirmed_seconds{$C})`, "{{cluster}}"}),
		graph("Age of issuers' keys", "When they were fetched last.", "s", query{`time() - max by (issuer) (kubecast_auth_issuer_fetched_timestamp_seconds{$I})`, "{{issuer}}"}),
	}},
	{"History", []panel{
		graph("Behind by", "What the API server knows, and the database does not. After five minutes it is late.", "s", query{`max by (cluster, kind) (kubecast_history_lag_seconds{$C})`, "{{cluster}} {{kind}}"}),
		graph("Transitions, a minute", "By state.", "short", query{`60 * sum by (state) (rate(kubecast_history_transitions_total{$C}[$__rate_interval])) > 0`, "{{state}}"}),
		graph("99 % of writes take", "One transaction each.", "s", query{`histogram_quantile(0.99, sum by (le) (rate(kubecast_history_batch_seconds_bucket{$I}[$__rate_interval])))`, "99 %"}),
		graph("Failures of the database, a minute", "By cause.", "short", query{`60 * sum by (cause) (rate(kubecast_history_errors_total{$I}[$__rate_interval])) > 0`, "{{cause}}"}),
	}},
	{"Notifications and webhooks", []panel{
		graph("Notifications, a minute", "Written into inboxes.", "short", query{`60 * sum by (kind) (rate(kubecast_notifications_written_total{$I}[$__rate_interval])) > 0`, "{{kind}}"}),
		graph("Messages that wait", "By webhook.", "short", query{`max by (target) (kubecast_webhook_waiting{$I})`, "{{target}}"}),
		graph("The oldest waits for", "By webhook.", "s", query{`max by (target) (kubecast_webhook_oldest_waiting_seconds{$I})`, "{{target}}"}),
		graph("Attempts, a minute", "By what became of them.", "short", query{`60 * sum by (target, outcome) (rate(kubecast_webhook_attempts_total{$I}[$__rate_interval])) > 0`, "{{target}} {{outcome}}"}),
	}},
	{"The process", []panel{
		graph("Memory", "In use, what it may come to need, and from where on Go collects with more effort.", "bytes",
			query{`process_resident_memory_bytes{$I} and on (job, instance) kubecast_build_info`, "{{instance}}"}, query{`kubecast_memory_estimate_bytes{$I}`, "{{instance}} estimate"}, query{`min(go_gc_gomemlimit_bytes{$I} and on (job, instance) kubecast_build_info)`, "limit"}),
		graph("CPU", "In cores.", "short", query{`rate(process_cpu_seconds_total{$I}[$__rate_interval]) and on (job, instance) kubecast_build_info`, "{{instance}}"}),
		graph("Open files", "Of what each replica may have.", "percentunit", query{`process_open_fds{$I} / process_max_fds{$I} and on (job, instance) kubecast_build_info`, "{{instance}}"}),
		graph("Releases", "Two during an update.", "short", query{`count by (version) (kubecast_build_info{$I})`, "{{version}}"}),
	}},
}

func number(title, unit, expression string) panel {
	return panel{title: title, unit: unit, height: 4, width: 4, isNumber: true, queries: []query{{expression, ""}}}
}

func graph(title, describes, unit string, queries ...query) panel {
	return panel{title: title, describes: describes, unit: unit, height: 7, width: 12, queries: queries}
}

// build is the dashboard as Grafana imports it.
func build() (string, error) {
	chosen := func(name, label, from string) cog.Builder[dashboard.VariableModel] {
		return dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(source).Query(dashboard.StringOrMap{String: &from}).
			Multi(true).IncludeAll(true).AllValue(".*").Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc)
	}
	//lint:ignore SA1019 what it makes is read by each Grafana that is in use; its successor's form by the newest alone
	board := dashboard.NewDashboardBuilder("Kubecast").
		Uid("kubecast").Tags([]string{"kubecast"}).Description("The gateway between Kubernetes and web portals: its clients, its API servers, permissions, history and webhooks.").
		Refresh("30s").Time("now-3h", "now").Timezone("browser").Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(chosen("instance", "Replica", `label_values(kubecast_build_info, instance)`)).
		WithVariable(chosen("cluster", "Cluster", `label_values(kubecast_upstream_live, cluster)`))
	for _, r := range rows {
		board = board.WithRow(dashboard.NewRowBuilder(r.title))
		for _, p := range r.panels {
			board = board.WithPanel(p.build())
		}
	}
	built, err := board.Build()
	if err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(built, "", "  ")
	return string(text), err
}

var source = func() common.DataSourceRef {
	kind, uid := "prometheus", "${datasource}"
	return common.DataSourceRef{Type: &kind, Uid: &uid}
}()

func (p panel) build() cog.Builder[dashboard.Panel] {
	if p.isNumber {
		shown := stat.NewPanelBuilder().Title(p.title).Unit(p.unit).Height(p.height).Span(p.width).Datasource(source).GraphMode(common.BigValueGraphModeArea)
		for _, q := range p.queries {
			shown = shown.WithTarget(q.build())
		}
		return shown
	}
	shown := timeseries.NewPanelBuilder().Title(p.title).Description(p.describes).Unit(p.unit).Height(p.height).Span(p.width).Datasource(source).
		Min(0).FillOpacity(8).LineWidth(1).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	for _, q := range p.queries {
		shown = shown.WithTarget(q.build())
	}
	return shown
}

func (q query) build() cog.Builder[variants.Dataquery] {
	return prometheus.NewDataqueryBuilder().Expr(labels.Replace(q.expression)).LegendFormat(q.legend).Datasource(source)
}

var labels = strings.NewReplacer("$I", `instance=~"$instance"`, "$C", `instance=~"$instance",cluster=~"$cluster"`)
