package charttest

import (
	"os"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// ofHelm begin lines that say something of Helm, or of a release, which kubectl knows nothing of.
var ofHelm = []string{"helm.sh/chart: ", "app.kubernetes.io/managed-by: ", "app.kubernetes.io/version: "}

// deploy/kubernetes.yaml is for those who have no Helm. It is what the chart makes of ci/kubernetes-values.yaml, below what is to be
// done first.
func TestRenderingForKubectlIsTheManifest(t *testing.T) {
	files, err := render4(caseValues(t, forKubectl))
	if err != nil {
		t.Fatal(err)
	}
	text, err := manifests(files)
	if err != nil {
		t.Fatal(err)
	}
	header, err := os.ReadFile("kubernetes-header.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifest := strings.Builder{}
	manifest.Write(header)
	for line := range strings.Lines(text) {
		said := false
		for _, beginning := range ofHelm {
			said = said || strings.HasPrefix(strings.TrimSpace(line), beginning)
		}
		if !said {
			manifest.WriteString(line)
		}
	}
	mustBe(t, "../kubernetes.yaml", manifest.String())
}

// Kinds that the control plane of the tests does not have are read by their own types, in which each key must be.
func TestKindsOfOperatorsAreWhatTheirTypesSay(t *testing.T) {
	found := map[string]bool{}
	for _, name := range []string{"monitoring", "large", "gateway-api"} {
		files, err := render4(caseValues(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"kubecast/templates/monitoring.yaml", "kubecast/templates/routes.yaml"} {
			for _, document := range strings.Split(files[file], "\n---\n") {
				var kind struct{ Kind string }
				if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
					t.Fatal(err)
				}
				typed := map[string]any{
					"PodMonitor": &monitoring.PodMonitor{}, "ServiceMonitor": &monitoring.ServiceMonitor{}, "PrometheusRule": &monitoring.PrometheusRule{}, "HTTPRoute": &gateway.HTTPRoute{},
				}[kind.Kind]
				if typed == nil {
					continue
				}
				found[kind.Kind] = true
				if err := yaml.UnmarshalStrict([]byte(document), typed); err != nil {
					t.Errorf("%s: %v\n%s", name, err, document)
				}
			}
		}
	}
	if len(found) != 4 {
		t.Errorf("only %v were found", found)
	}
}
