package charttest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	lint3 "helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	v1 "helm.sh/helm/v4/pkg/release/v1"
	"sigs.k8s.io/yaml"
)

type releaseHook = v1.Hook

var update = flag.Bool("update", false, "write what is rendered to testdata and deploy")

// What is rendered must be the same each time, else a controller that renders again and again never comes to rest; and the same by
// Helm 3 and 4.
func TestRenderingsAreTheSameEachTimeAndByBothHelms(t *testing.T) {
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			first, err := render4(caseValues(t, name))
			if err != nil {
				t.Fatal(err)
			}
			for by, render := range map[string]func(map[string]any) (map[string]string, error){"Helm 4": render4, "Helm 3": render3} {
				again, err := render(caseValues(t, name))
				if err != nil {
					t.Fatal(by, err)
				}
				if diff := cmp.Diff(first, again); diff != "" {
					t.Error(by, diff)
				}
			}
			for file, text := range first {
				if strings.Contains(text, "<no value>") || strings.Contains(text, "%!") {
					t.Errorf("%s: %s", file, text)
				}
			}
		})
	}
}

// A change of the chart shows what it changes of each case.
func TestRenderingsAreThoseOfTestdata(t *testing.T) {
	for _, name := range cases(t) {
		if name == forKubectl {
			continue
		}
		files, err := render4(caseValues(t, name))
		if err != nil {
			t.Fatal(name, err)
		}
		text, err := manifests(files)
		if err != nil {
			t.Fatal(name, err)
		}
		mustBe(t, filepath.Join("testdata", name+".yaml"), text)
	}
}

// mustBe compares a file with what it should have, or writes that.
func mustBe(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), want); diff != "" {
		t.Errorf("%s is not what the chart makes (make docs): %s", file, diff)
	}
}

func TestLintersFindNothing(t *testing.T) {
	for _, name := range cases(t) {
		for _, m := range lint.RunAll(chartDir, caseValues(t, name), "kubecast").Messages {
			if m.Severity > 1 {
				t.Errorf("Helm 4: %s: %s", name, m)
			}
		}
		for _, m := range lint3.All(chartDir, caseValues(t, name), "kubecast", true).Messages {
			if m.Severity > 1 {
				t.Errorf("Helm 3: %s: %s", name, m)
			}
		}
	}
}

// A list of keys that is not what kubectl and the API server read is no manifest.
func TestEachManifestIsStrictYAML(t *testing.T) {
	for _, name := range cases(t) {
		files, err := render4(caseValues(t, name))
		if err != nil {
			t.Fatal(name, err)
		}
		for file, text := range withoutNotes(files) {
			for _, document := range strings.Split(text, "\n---\n") {
				var object map[string]any
				if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
					t.Errorf("%s: %s: %v\n%s", name, file, err, document)
				}
			}
		}
	}
}

// What would not work is refused at rendering, by a message that says what to do.
func TestWhatWouldNotWorkIsRefused(t *testing.T) {
	for values, want := range map[string]string{
		"config: {stream: {hartbeat: 15s}}":                 "hartbeat",
		"config: {stream: {heartbeat: soon}}":               "/config/stream/heartbeat",
		"config: {authorizer: {mode: abac}}":                "/config/authorizer/mode",
		"config: {auth: {jwt: [{issuer: a, audience: b}]}}": "audience",
		"config: {drain: 30}":                               "a duration such as 30s",
		"config: {stream: {maxAge: 90}}":                    "a duration such as 30s",
		"{keys: {existingSecret: k}, autoscaling: {enabled: true, minReplicas: 5, maxReplicas: 3}}": "autoscaling.maxReplicas (3)",
		"{keys: {existingSecret: k}, autoscaling: {enabled: true}, replicas: 0}":                    "replicas and autoscaling.enabled",
		"{keys: {existingSecret: k}, autoscaling: {enabled: true}, replicas: 7}":                    "replicas and autoscaling.enabled",
		"config: {listen: \":65536\"}":                                           "config.listen has no port",
		"config: {auth: {jwt: [{issuer: \"https://h:65536\", audiences: [a]}]}}": "65536 is no port",
		"config: {webhooks: [{name: chat, url: \"http://[::1]:0/a\"}]}":          "0 is no port",
		"config: {history: {database: \"postgres://u@h:99999/d\"}}":              "99999 is no port",
		"service: {spec: {selector: {a: b}}}":                                    "service.spec has selector",
		"jobs: {annotations: {helm.sh/hook: test}}":                              "jobs.annotations has helm.sh/hook",
		"replica: 2":                             "replica",
		"ingress: {hosts: [a]}":                  "hosts",
		"replicas: 2":                            "keys.existingSecret",
		"autoscaling: {enabled: true}":           "keys.existingSecret",
		"metrics: {podMonitor: {enabled: true}}": "keys.existingSecret",
		"{keys: {existingSecret: k}, metrics: {podMonitor: {enabled: true}, serviceMonitor: {enabled: true}}}":                          "twice",
		"config: {clusters: [{name: a, kubeconfig: one}, {name: b, kubeconfig: two}, {name: a, kubeconfig: three}]}":                    "two clusters have the name a",
		"clusters: [{name: west, existingSecret: a}, {name: west, existingSecret: b}]":                                                  "two clusters have the name west",
		"config: {history: {database: \"MySQL://u:secret@h/d\"}}":                                                                       "history.existingSecret",
		"{replicas: 2, keys: {existingSecret: k}, config: {history: {database: sqlite}}}":                                               "/replicas",
		"{autoscaling: {enabled: true}, keys: {existingSecret: k}, config: {history: {database: \"sqlite:///x\"}}}":                     "/autoscaling/enabled",
		"config: {kinds: {allow: [\"*\"]}}":                                                                                             "rbac.extraRules",
		"config: {kinds: {allow: null}}":                                                                                                "rbac.extraRules",
		"config: {kinds: {allow: [pods, \"*.ray.io\"]}}":                                                                                "Name its kinds, or say in rbac.extraRules what of ray.io",
		"{config: {kinds: {allow: [\"*.ray.io\"]}}, rbac: {extraRules: [{apiGroups: [apps], resources: [deployments], verbs: [get]}]}}": "what of ray.io",
		"podLabels: {app.kubernetes.io/name: other}":                                                                                    "podLabels has app.kubernetes.io/name",
		"commonLabels: {app.kubernetes.io/instance: other}":                                                                             "commonLabels has app.kubernetes.io/instance",
		"podAnnotations: {checksum/config: x}":                                                                                          "podAnnotations has checksum/config",
		"{keys: {existingSecret: k}, metrics: {podMonitor: {enabled: true, labels: {app.kubernetes.io/component: x}}}}":                 "metrics.podMonitor.labels has",
		"terminationGracePeriodSeconds: 20":                                                                                             "at least 30",
		"{terminationGracePeriodSeconds: 60, config: {drain: 1m}}":                                                                      "at least 70",
		"ingress: {enabled: true}":                                                                                                      "ingress.host",
		"httpRoute: {enabled: true}":                                                                                                    "httpRoute.parentRefs",
		"serviceAccount: {create: false}":                                                                                               "serviceAccount.name",
		"history: {migration: {enabled: true}}":                                                                                         "config.history.database",
		"{config: {history: {database: \"postgres://u@h/d\"}}, history: {migration: {enabled: true}}}":                                  "history.migration.database",
		"{clusters: [{name: west, existingSecret: s}], config: {clusters: [{name: a}]}}":                                                "config.clusters",
		"config: {history: {database: \"mysql://u:secret@h/d\"}}":                                                                       "history.existingSecret",
		"config: {history: {database: \"postgres://u@h/d?password=secret\"}}":                                                           "history.existingSecret",
		"config: {history: {database: \"postgres://u@h/d?sslmode=require&Password=secret\"}}":                                           "history.existingSecret",
		"config: {history: {database: \"postgres://u@h/d?passfile=/x\"}}":                                                               "history.existingSecret",
		"config: {history: {database: \"postgres://u:se/cret@h/d\"}}":                                                                   "history.existingSecret",
		"config: {history: {database: \"host=h user=u password = secret\"}}":                                                            "history.existingSecret",
		"{config: {history: {database: \"postgres://u@h/d\"}}, history: {migration: {enabled: true, existingSecret: s, database: \"postgres://o:secret@h/d\"}}}":          "history.migration.existingSecret",
		"{config: {history: {database: \"postgres://u@h/d\"}}, history: {migration: {enabled: true, existingSecret: s, database: \"postgres://o@h/d?password=secret\"}}}": "history.migration.existingSecret",
		"edge: {enabled: true, existingSecret: s}":                                                                                 "edge.core has no address",
		"edge: {enabled: true, core: [\"https://a.example\"]}":                                                                     "edge.existingSecret is empty",
		"edge: {core: [\"http://a.example\"]}":                                                                                     "/edge/core/0",
		"edge: {enabled: true, core: [\"https://a.example:0\"], existingSecret: s}":                                                "0 is no port",
		"config: {edge: {core: \"https://u:p@a.example\"}}":                                                                        "config.edge.core[0] has a password",
		"{edge: {enabled: true, core: [\"https://a.example\"], existingSecret: s}, config: {edge: {core: \"https://b.example\"}}}": "edge.enabled and config.edge",
		"{edge: {enabled: true, core: [\"https://a.example\"], existingSecret: s}, clusters: [{name: west, existingSecret: w}]}":   "clusters and edge.enabled",
		"clusters: [{name: default, existingSecret: s}]":                                                                           "/clusters/0/name",
		"config: {history: {database: sqlite, kinds: [{resource: a.b}]}, kinds: {deny: [a.b]}}":                                    "config.kinds.deny",
		"config: {auth: {oidcLogin: {clientSecretFile: /etc/kubecast-keys/client-secret}}}":                                        "name the Secret that has it in keys.existingSecret",
		"config: {ops: {tokenFile: /etc/kubecast-keys/ops.token}}":                                                                 "config.ops.tokenFile",
		"{keys: {existingSecret: k}, config: {auth: {cookieKeyFile: /etc/kubecast/cookie-key}}}":                                   "where the ConfigMap is",
	} {
		for by, render := range map[string]func(map[string]any) (map[string]string, error){"Helm 4": render4, "Helm 3": render3} {
			if _, err := render(parse(t, values)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: %v, nothing of %s", by, values, err, want)
			}
		}
	}
}

// A role's "*" covers subresources, too: whoever may get pods/exec runs commands, and who may get nodes/proxy asks the Kubelet.
func TestNoRolePermitsAllOfAllGroups(t *testing.T) {
	for _, name := range cases(t) {
		files, err := render4(caseValues(t, name))
		if err != nil {
			t.Fatal(name, err)
		}
		for _, document := range strings.Split(files["kubecast/templates/rbac.yaml"], "\n---\n") {
			var role struct {
				Rules []struct{ APIGroups, Resources []string }
			}
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				t.Fatal(name, err)
			}
			for _, rule := range role.Rules {
				core := slices.Contains(rule.APIGroups, "") || slices.Contains(rule.APIGroups, "*")
				if core && slices.ContainsFunc(rule.Resources, func(r string) bool {
					return strings.Contains(r, "*") || r == "pods/exec" || strings.HasSuffix(r, "/proxy")
				}) {
					t.Errorf("%s: %v", name, rule)
				}
			}
		}
	}
}

// Every key of the gateway's configuration can be set by the chart.
func TestEachKeyOfTheConfigurationIsTaken(t *testing.T) {
	text, err := os.ReadFile("../../internal/config/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := parse(t, string(text))
	config["kinds"].(map[string]any)["allow"] = []any{"pods", "jobs.batch"}
	files, err := render4(map[string]any{"config": config})
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(files["kubecast/templates/configmap.yaml"]), &object); err != nil {
		t.Fatal(err)
	}
	got := parse(t, object.Data["gateway.yaml"])
	for key, value := range config {
		if key == "history" || key == "kinds" { // to which the chart adds
			continue
		}
		if diff := cmp.Diff(value, got[key]); diff != "" {
			t.Error(key, diff)
		}
	}
}

// A chart that this one is part of gives values for all, and some for this one, whose schema still counts.
func TestItCanBePartOfAnotherChart(t *testing.T) {
	render := func(values string) (map[string]string, error) {
		part, err := loader.Load(chartDir)
		if err != nil {
			t.Fatal(err)
		}
		whole := &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "platform", Version: "1.0.0"}}
		whole.AddDependency(part)
		options := common.ReleaseOptions{Name: "platform", Namespace: "kubecast", IsInstall: true}
		all, err := util.ToRenderValues(whole, parse(t, values), options, common.DefaultCapabilities)
		if err != nil {
			return nil, err
		}
		return engine.Render(whole, all)
	}
	files, err := render("{global: {imageRegistry: registry.example.org}, kubecast: {size: {pods: 100000}}}")
	if text := files["platform/charts/kubecast/templates/deployment.yaml"]; err != nil || !strings.Contains(text, "name: platform-kubecast") || !strings.Contains(text, "memory: 1152Mi") {
		t.Error(err, text)
	}
	if _, err := render("kubecast: {config: {kindz: {}}}"); err == nil || !strings.Contains(err.Error(), "kindz") {
		t.Error(err)
	}
}

// Numbers must not come out as 6.7e+07, which the gateway refuses.
func TestLargeNumbersStayWhole(t *testing.T) {
	text, err := os.ReadFile("testdata/large.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"total: 2000000\n", "ring: 4194304\n"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Error(want)
		}
	}
}

// The rules that the chart makes are those of deploy/prometheus.yaml, for those who have no Helm.
func TestRulesAreThoseOfTheManifest(t *testing.T) {
	text, err := os.ReadFile("../prometheus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, rules, ok := strings.Cut(string(text), "kind: PrometheusRule\n")
	_, rules, found := strings.Cut(rules, "\nspec:\n")
	if !ok || !found {
		t.Fatal("deploy/prometheus.yaml has no rules")
	}
	rules, _, _ = strings.Cut(rules, "\n---\n")
	var lines []string
	for line := range strings.Lines(rules) {
		lines = append(lines, strings.TrimPrefix(line, "  "))
	}
	mustBe(t, "../chart/files/rules.yaml", strings.Join(lines, ""))
}

// The owners' policies that the chart makes are those of deploy/owners.yaml, with those who are trusted, too.
func TestOwnersAreThoseOfTheManifest(t *testing.T) {
	text, err := os.ReadFile("../owners.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mustBe(t, "../chart/files/owners.yaml", string(text))
	files, err := render4(parse(t, "owners: {enabled: true, trusted: [{kind: ServiceAccount, name: operator, namespace: ray}]}"))
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(files["kubecast/templates/owners.yaml"], "\n---\n")
	var binding struct{ Subjects []struct{ Kind, Name string } }
	if err := yaml.UnmarshalStrict([]byte(documents[len(documents)-1]), &map[string]any{}); err != nil {
		t.Error(err)
	}
	if err := yaml.Unmarshal([]byte(documents[len(documents)-1]), &binding); err != nil || len(binding.Subjects) != 3 || binding.Subjects[2].Name != "operator" {
		t.Errorf("%v: %v", err, binding)
	}
}

// The dashboard that the chart installs is deploy/grafana's, and what Grafana's sidecar looks for has its label.
func TestDashboardIsThatOfGrafana(t *testing.T) {
	text, err := os.ReadFile("../grafana/kubecast.json")
	if err != nil {
		t.Fatal(err)
	}
	mustBe(t, "../chart/files/dashboard.json", string(text))
	for values, want := range map[string]string{
		"{}":                                    "",
		"metrics: {dashboard: {enabled: true}}": string(text),
	} {
		got := ""
		for _, o := range objects(t, values, "kubecast") {
			if o.Metadata.Labels["grafana_dashboard"] == "1" {
				got += o.Data["kubecast.json"]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(values, diff)
		}
	}
}
