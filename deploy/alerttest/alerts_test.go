package alerttest

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// gateway is what all series of one have.
const gateway = `job="kubecast/gateway",instance="10.0.0.1:9090"`

// alertCase is an alert with what makes it fire, and what does not. Series are as Prometheus' own tests have
// them, a sample a minute. G stands for a gateway's labels.
type alertCase struct {
	name     string
	fires    string
	after    int    // minutes: it fires then, and not a minute before
	says     string // what its summary contains
	isSilent string
}

var cases = []alertCase{
	{"KubecastAbsent", `up{G} 0x20`, 5, "No gateway is scraped", `kubecast_build_info{G} 1x20`},
	{"KubecastNotReady", `kubecast_ready{G} 1x4 0x20`, 10, "10.0.0.1:9090", `kubecast_ready{G} 0x3 1x20`},
	{"KubecastRestarts", "kubecast_build_info{G} 1x40\n  process_start_time_seconds{G} 10x3 20x3 30x3 40x30", 12, "3 times", "kubecast_build_info{G} 1x40\n  process_start_time_seconds{G} 10x3 20x30\n  process_start_time_seconds{job=\"other\"} 0+1x40"},
	{"KubecastReplicaDown", "up{G} 1x5 0x20\n  up{job=\"kubecast/gateway\",instance=\"old\"} 1x25\n  kubecast_build_info{job=\"kubecast/gateway\",instance=\"old\"} 1x25", 16, "10.0.0.1:9090", "up{G} 0x9 1x20\n  up{job=\"other\"} 0x40\n  kubecast_build_info{G} 1x40"},
	{"KubecastReplicaDown", "up{G,namespace=\"a\"} 1 0x30\n  kubecast_build_info{G,namespace=\"a\"} 1 stale", 11, "10.0.0.1:9090", "up{G,namespace=\"b\"} 0x40\n  kubecast_build_info{G,namespace=\"a\"} 1x40"},
	{"KubecastMemoryFull", "kubecast_build_info{G} 1x20\n  process_resident_memory_bytes{G} 1200x20\n  go_gc_gomemlimit_bytes{G} 1000x20", 5, "1.172kiB", "kubecast_build_info{G} 1x20\n  process_resident_memory_bytes{G} 1000x20\n  go_gc_gomemlimit_bytes{G} 1000x20\n  process_resident_memory_bytes{job=\"other\"} 1200x20\n  go_gc_gomemlimit_bytes{job=\"other\"} 1000x20"},
	{"KubecastMemorySmall", "kubecast_memory_estimate_bytes{G} 2048x20\n  go_gc_gomemlimit_bytes{G} 1024x20", 10, "2kiB", "kubecast_memory_estimate_bytes{G} 1000x20\n  go_gc_gomemlimit_bytes{G} 1024x20"},
	{"KubecastDescriptorsShort", descriptors(100, 950), 5, "95%", descriptors(600, 850) + "\n  process_open_fds{job=\"other\"} 99x20\n  process_max_fds{job=\"other\"} 100x20"},
	{"KubecastDescriptorsShort", descriptors(700, 740), 5, "91.15%", descriptors(690, 740)},
	{"KubecastDescriptorsShort", descriptors(100, 950), 5, "95%", "kubecast_connections{G} 900x20\n  kubecast_connections_limit{G} 0x20"},
	{"KubecastEventsLate", "kubecast_stream_append_to_flush_seconds_bucket{G,le=\"0.25\"} 0+90x40\n  kubecast_stream_append_to_flush_seconds_count{G} 0+100x40", 11, "10%", "kubecast_stream_append_to_flush_seconds_bucket{G,le=\"0.25\"} 0+999x40\n  kubecast_stream_append_to_flush_seconds_count{G} 0+1000x40"},
	{"KubecastResets", `kubecast_stream_resets_total{G,reason="slow"} 0+20x40`, 16, "slow", `kubecast_stream_resets_total{G,reason="slow"} 0+5x40`},
	{"KubecastPermissionsUnconfirmed", `kubecast_rbac_unconfirmed_seconds{G,cluster="a"} 0 10 25`, 2, "Cluster a", `kubecast_rbac_unconfirmed_seconds{G,cluster="a"} 0 10 20 0`},
	{"KubecastPermissionsMirrorOld", `kubecast_rbac_watch_lost_seconds{G,cluster="a",kind="roles"} 0 60 120`, 2, "roles", `kubecast_rbac_watch_lost_seconds{G,cluster="a",kind="roles"} 0 59 0`},
	{"KubecastCacheStale", `kubecast_upstream_live{G,cluster="a",kind="pods"} 1 0x9`, 2, "pods is stale", `kubecast_upstream_live{G,cluster="a",kind="pods"} 1 0 1x9`},
	{"KubecastUpstreamRefuses", `kubecast_upstream_requests_total{G,cluster="a",code="429"} 0+30x30`, 12, "429", `kubecast_upstream_requests_total{G,cluster="a",code="200"} 0+900x30`},
	{"KubecastDenials", `kubecast_auth_decisions_total{G,decision="denied"} 0+60x1500 90000+1200x60`, 1517, "Far more is denied", `kubecast_auth_decisions_total{G,decision="denied"} 0+60x1560`},
	{"KubecastPermissionsUndecided", `kubecast_auth_decisions_total{G,decision="failed"} 0 0 0+1x30`, 8, "cannot be decided", `kubecast_auth_decisions_total{G,decision="failed"} 3x30`},
	{"KubecastSignInsRefused", `kubecast_auth_requests_total{G,result="expired"} 0+700x30`, 19, "credentials", `kubecast_auth_requests_total{G,result="expired"} 0+500x30`},
	{"KubecastLimitsMet", `kubecast_connections_refused_total{G} 0+90x30`, 17, "limit is reached", `kubecast_connections_refused_total{G} 0+50x30`},
	{"KubecastLimitsMet", limits(`0+40x30`, `0+40x30`), 18, "limit is reached", limits(`0+20x30`, `0+20x30`)},
	{"KubecastHistoryAway", `kubecast_history_ready{G} 0x20`, 5, "cannot be used", `kubecast_history_ready{G} 0x4 1x20`},
	{"KubecastHistorySchemaRefused", `kubecast_history_schema_refused{G} 0 1x9`, 2, "another release", `kubecast_history_schema_refused{G} 0x9`},
	{"KubecastHistoryBehind", `kubecast_history_lag_seconds{G,cluster="a",kind="jobs.batch"} 0 60 121`, 2, "121 s behind", `kubecast_history_lag_seconds{G,cluster="a",kind="jobs.batch"} 0 60 120 0`},
	{"KubecastHistoryUnrecorded", recorders("0x9"), 2, "no replica records", recorders("1x9")},
	{"KubecastDigestsOverdue", "kubecast_notifications_digest_overdue_seconds{instance=\"a\"} 130x9\n  kubecast_notifications_digest_overdue_seconds{instance=\"b\"} 140x9", 0, "130 s late", "kubecast_notifications_digest_overdue_seconds{instance=\"a\"} 0x9\n  kubecast_notifications_digest_overdue_seconds{instance=\"b\"} 140x9"},
	{"KubecastWebhookWaits", `kubecast_webhook_oldest_waiting_seconds{G,target="t"} 3590 3650`, 1, "webhook t", `kubecast_webhook_oldest_waiting_seconds{G,target="t"} 3590 0`},
	{"KubecastWebhookOff", `kubecast_webhook_off{G,target="t"} 0 1`, 1, "webhook t", `kubecast_webhook_off{G,target="t"} 0 0`},
	{"KubecastWebhookExpired", `kubecast_webhook_expired_total{G} 0 0 1x9`, 2, "were removed", `kubecast_webhook_expired_total{G} 7x9`},
	{"KubecastWebhookUnsent", senders("0x9"), 2, "webhook t", senders("1x9")},
	{"KubecastAuditLinesLost", `kubecast_audit_lines_total{G,result="lost"} 0 0 1x9`, 2, "are lost", `kubecast_audit_lines_total{G,result="written"} 0+9x9`},
	{"KubecastIssuerKeysOld", `kubecast_auth_issuer_fetched_timestamp_seconds{G,issuer="https://i"} 0x80`, 66, "https://i", `kubecast_auth_issuer_fetched_timestamp_seconds{G,issuer="https://i"} 0x30 1800x50`},
	{"KubecastConfigurationNotUsed", `kubecast_config_reload_successful{G} 1 0x20`, 6, "10.0.0.1:9090", `kubecast_config_reload_successful{G} 1 0x3 1x20`},
	{"KubecastRestartNeeded", `kubecast_config_restart_needed{G} 1x90`, 60, "/debug/config", `kubecast_config_restart_needed{G} 0x90`},
	{"KubecastCertificateEnds", "kubecast_tls_certificate_expiry_timestamp_seconds{G} 604860x9\n  kubecast_tls_certificate_reload_successful{G} 1x9", 2, "within a week", "kubecast_tls_certificate_expiry_timestamp_seconds{G} 704860x9\n  kubecast_tls_certificate_reload_successful{G} 1x9"},
	{"KubecastCertificateEnds", "kubecast_tls_certificate_expiry_timestamp_seconds{G} 904860x9\n  kubecast_tls_certificate_reload_successful{G} 1 0x9", 1, "cannot be used", "kubecast_tls_certificate_reload_successful{G} 1x9"},
}

// A release that is well hides no other's fault: they differ by their namespace, or by their job.
func TestAHealthyReleaseHidesNoOther(t *testing.T) {
	all := alerts(t)
	for name, series := range map[string][2]string{ // of the one that is well, and of the other
		"KubecastAbsent":            {"kubecast_build_info{%s} 1x40", "kubecast_build_info{%s} 1 stale"},
		"KubecastHistoryUnrecorded": {`kubecast_history_recording{%s,cluster="default",kind="jobs.batch"} 1x40`, `kubecast_history_recording{%s,cluster="default",kind="jobs.batch"} 0x40`},
		"KubecastDigestsOverdue":    {"kubecast_notifications_digest_overdue_seconds{%s} 0x40", "kubecast_notifications_digest_overdue_seconds{%s} 900x40"},
		"KubecastWebhookUnsent":     {`kubecast_webhook_sending{%s,target="t"} 1x40`, `kubecast_webhook_sending{%s,target="t"} 0x40`},
	} {
		for _, labels := range [][2]string{{`namespace="a",job="g"`, `namespace="b",job="g"`}, {`job="a"`, `job="b"`}} {
			after, _ := firesAt(t, all[name], fmt.Sprintf(series[0]+"\n  "+series[1], labels[0], labels[1]), 30)
			if after < 0 {
				t.Errorf("%s: that of %s is hidden by %s", name, labels[1], labels[0])
			}
			if after, said := firesAt(t, all[name], fmt.Sprintf(series[0]+"\n  "+series[0], labels[0], labels[1]), 30); after >= 0 {
				t.Errorf("%s fires while both are well: %s", name, said)
			}
		}
	}
}

func limits(streams, requests string) string {
	return `kubecast_streams_ended_total{G,reason="limit"} ` + streams + "\n  kubecast_streams_ended_total{G,reason=\"left\"} 0+900x30\n  " +
		`kubecast_http_requests_total{G,code="429"} ` + requests + "\n  kubecast_http_requests_total{G,code=\"200\"} 0+900x30\n  kubecast_connections_refused_total{G} 0x30"
}

// descriptors are those of a gateway that may have 1,000 files open, and connections as it then allows at a limit of 1,024.
func descriptors(connections, files int) string {
	return fmt.Sprintf("kubecast_build_info{G} 1x20\n  kubecast_connections{G} %dx20\n  kubecast_connections_limit{G} 768x20\n  process_open_fds{G} %dx20\n  process_max_fds{G} 1000x20", connections, files)
}

// recorders are two replicas, of which the first records, or not.
func recorders(first string) string {
	return `kubecast_history_recording{instance="a",cluster="a",kind="jobs.batch"} ` + first + "\n  kubecast_history_recording{instance=\"b\",cluster=\"a\",kind=\"jobs.batch\"} 0x9"
}

func senders(first string) string {
	return `kubecast_webhook_sending{instance="a",target="t"} ` + first + "\n  kubecast_webhook_sending{instance=\"b\",target=\"t\"} 0x9"
}

// alerts are the manifest's, by their names.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	rules, err := Rules("../prometheus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]rulefmt.Rule{}
	for _, rule := range rules {
		if all[rule.Alert].Alert != "" {
			t.Errorf("there are two of %s", rule.Alert)
		}
		all[rule.Alert] = rule
	}
	return all
}

// An alert fires once what it is about has lasted for as long as it says, and not for what only looks like it.
func TestAlertsFireForWhatTheyAreAbout(t *testing.T) {
	all := alerts(t)
	tested := map[string]bool{}
	for _, c := range cases {
		tested[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			rule, there := all[c.name]
			if !there {
				t.Fatal("there is no such alert")
			}
			fired, said := firesAt(t, rule, c.fires, c.after+3)
			if fired != c.after {
				t.Errorf("it fires after %d minutes, not %d", fired, c.after)
			}
			if fired >= 0 && (!strings.Contains(said, c.says) || strings.Contains(said, "error")) {
				t.Errorf("it says %q, and not %q", said, c.says)
			}
			if fired, said := firesAt(t, rule, c.isSilent, c.after+10); fired >= 0 {
				t.Errorf("it fires after %d minutes for what it is not about: %s", fired, said)
			}
		})
	}
	for name := range all {
		if !tested[name] {
			t.Errorf("nothing shows when %s fires", name)
		}
	}
}

// firesAt is after how many minutes a rule fires, evaluated each minute, and its summary; -1: it does not.
func firesAt(t *testing.T, rule rulefmt.Rule, series string, minutes int) (after int, summary string) {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.ReplaceAll(series, "{G", "{"+gateway)+"\n")
	defer func() { _ = storage.Close() }()
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	expr, err := Parser.ParseExpr(rule.Expr)
	if err != nil {
		t.Fatal(err)
	}
	alerting := rules.NewAlertingRule(rule.Alert, expr, time.Duration(rule.For), 0, labels.FromMap(rule.Labels), labels.FromMap(rule.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	for minute := range minutes + 1 {
		at := time.Unix(int64(minute*60), 0)
		if _, err := alerting.Eval(t.Context(), 0, at, rules.EngineQueryFunc(engine, storage), nil, 0); err != nil {
			t.Fatal(err)
		}
		for _, alert := range alerting.ActiveAlerts() {
			if alert.State == rules.StateFiring {
				return minute, alert.Annotations.Get("summary")
			}
		}
	}
	return -1, ""
}

// Whoever is woken by an alert finds what it means, what causes it, and what to do.
func TestEachAlertHasItsRunbook(t *testing.T) {
	text, err := os.ReadFile("../../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]string{}
	for _, entry := range strings.Split(string(text), "\n### ")[1:] {
		name, body, _ := strings.Cut(entry, "\n")
		entries[name] = body
	}
	all := alerts(t)
	for name, rule := range all {
		if body := entries[name]; !strings.Contains(body, "*Means*") || !strings.Contains(body, "*Do*") {
			t.Errorf("docs/runbooks.md does not say what to do for %s", name)
		}
		if want := "https://github.com/kubecast/kubecast/blob/main/docs/runbooks.md#" + strings.ToLower(name); rule.Annotations["runbook_url"] != want {
			t.Errorf("%s links to %q, and not %q", name, rule.Annotations["runbook_url"], want)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
			t.Errorf("%s has the severity %q", name, rule.Labels["severity"])
		}
	}
	for name := range entries {
		if _, there := all[name]; !there {
			t.Errorf("docs/runbooks.md has %s, and there is no such alert", name)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(#([a-z]+)\)`).FindAllStringSubmatch(string(text), -1) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(entries)), func(name string) bool { return strings.ToLower(name) == link[1] }) {
			t.Errorf("docs/runbooks.md links to %s, which it does not have", link[1])
		}
	}
}
