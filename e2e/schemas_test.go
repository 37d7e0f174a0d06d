package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the chart makes of each case fits the schemas of the cluster's own OpenAPI, with no key that these do not know, by kubeconform.
// Kinds of Prometheus Operator and of the Gateway API are not in the cluster; deploy/charttest reads them by their types.
func TestEachCaseFitsTheClustersSchemas(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	tools, err := chartTools()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeSchemas(t, []byte(s.kubectl(t, "", "get", "--raw", "/openapi/v2")), dir)
	conform := func(files ...string) (string, error) {
		args := append([]string{"-strict", "-summary", "-skip", "PodMonitor,ServiceMonitor,PrometheusRule,HTTPRoute",
			"-schema-location", dir + "/{{.ResourceKind}}{{.KindSuffix}}.json"}, files...)
		out, err := exec.Command(filepath.Join(tools, "kubeconform"), args...).CombinedOutput()
		return string(out), err
	}
	files := []string{"../deploy/kubernetes.yaml", "../deploy/owners.yaml"}
	for _, name := range chartCases(t) {
		files = append(files, "../deploy/charttest/testdata/"+name+".yaml")
	}
	out, err := conform(files...)
	if err != nil || !strings.Contains(out, fmt.Sprintf("in %d files", len(files))) {
		t.Errorf("%v: %s", err, out)
	}
	text, err := os.ReadFile("../deploy/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"terminationGraceSeconds: 40", "terminationGracePeriodSeconds: soon"} {
		file := filepath.Join(t.TempDir(), "wrong.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), "terminationGracePeriodSeconds: 40", wrong, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := conform(file); err == nil || !strings.Contains(out, "Deployment") {
			t.Errorf("%s passes: %s", wrong, out)
		}
	}
}

// writeSchemas writes a file for each kind of an OpenAPI document, which refers to one with all definitions.
func writeSchemas(t *testing.T, document []byte, dir string) {
	t.Helper()
	var api struct{ Definitions map[string]map[string]any }
	if err := json.Unmarshal(document, &api); err != nil {
		t.Fatal(err)
	}
	write := func(name string, value any) {
		text, err := json.Marshal(value)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, definition := range api.Definitions {
		if definition["properties"] != nil {
			definition["additionalProperties"] = false
		}
		if definition["format"] == "int-or-string" || strings.HasSuffix(name, ".Quantity") {
			delete(definition, "format")
			definition["type"] = []string{"string", "integer"}
		}
		kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
		for _, of := range kinds {
			kind := of.(map[string]any)
			group, _, _ := strings.Cut(kind["group"].(string), ".")
			if group != "" {
				group = "-" + group
			}
			file := strings.ToLower(fmt.Sprintf("%s%s-%s.json", kind["kind"], group, kind["version"]))
			write(file, map[string]any{"$ref": "_definitions.json#/definitions/" + name})
		}
	}
	write("_definitions.json", map[string]any{"definitions": api.Definitions})
}
