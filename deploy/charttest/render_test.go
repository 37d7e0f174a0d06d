package charttest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1/util"

	loader3 "helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	engine3 "helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

const chartDir = "../chart"

// forKubectl is the case that deploy/kubernetes.yaml is made of.
const forKubectl = "kubernetes"

// cases are the files of values in ci, by their names.
func cases(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartDir, "ci", "*-values.yaml"))
	if err != nil || len(files) < 12 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), "-values.yaml"))
	}
	return names
}

func caseValues(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chartDir, "ci", name+"-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

// chartDefaults are the values that the chart has itself.
func chartDefaults(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// render4 is what `helm template gateway deploy/chart -n kubecast` of Helm 4 makes: each template's text by its path.
func render4(values map[string]any) (map[string]string, error) { return renderIn("kubecast", values) }

func renderIn(namespace string, values map[string]any) (map[string]string, error) {
	return renderAs("gateway", namespace, values)
}

func renderAs(release, namespace string, values map[string]any) (map[string]string, error) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, options, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

// render3 is the same of Helm 3.
func render3(values map[string]any) (map[string]string, error) {
	chart, err := loader3.Load(chartDir)
	if err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: "gateway", Namespace: "kubecast", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine3.Render(chart, all)
}

// manifests are a rendering's objects in the order in which Helm makes them, its hooks at the end.
func manifests(files map[string]string) (string, error) {
	files = withoutNotes(files)
	hooks, sorted, err := release.SortManifests(files, nil, release.InstallOrder)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	write := func(manifest string) { fmt.Fprintf(&text, "---\n%s\n", strings.TrimSpace(manifest)) }
	for _, m := range sorted {
		write(m.Content)
	}
	slices.SortFunc(hooks, func(a, b *releaseHook) int { return strings.Compare(a.Manifest, b.Manifest) })
	for _, h := range hooks {
		write(h.Manifest)
	}
	return text.String(), nil
}

func withoutNotes(files map[string]string) map[string]string {
	left := map[string]string{}
	for name, text := range files {
		if !strings.HasSuffix(name, "NOTES.txt") {
			left[name] = text
		}
	}
	return left
}
