package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/kubecast/kubecast/internal/config"
)

// A key of the configuration that the chart does not know could not be set by it.
func TestTheChartsSchemaIsThatOfTheConfiguration(t *testing.T) {
	want, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../deploy/chart/values.schema.json")
	if err != nil || !bytes.Equal(have, want) {
		t.Errorf("deploy/chart/values.schema.json is not what the code says (%v): make docs", err)
	}
	if bytes.Contains(want, []byte(`"$ref": "http`)) {
		t.Error("something of the schema would be fetched from elsewhere")
	}
}

// Where the schema knows the words of a key, the gateway knows the same.
func TestTheSchemasWordsAreThoseOfTheGateway(t *testing.T) {
	for key, all := range words {
		for _, word := range append(all, "other") {
			_, err := config.Parse(file(t, key, word))
			refused := err != nil && strings.Contains(err.Error(), strings.ReplaceAll(key, "[]", "[0]"))
			if mode := word == config.AuthorizerPolicy; refused != (word == "other") && !mode {
				t.Errorf("%s: %q: %v", key, word, err)
			}
		}
	}
}

// file is a configuration in which one key has a value.
func file(t *testing.T, key, word string) []byte {
	t.Helper()
	var value any = word
	parts := strings.Split(key, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		name, list := strings.CutSuffix(parts[i], "[]")
		if list {
			if section, ok := value.(object); ok {
				section["issuer"], section["audiences"] = "https://id.example.org", []string{"kubecast"}
			}
			value = []any{value}
		}
		value = object{name: value}
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What the chart writes for the gateway must be a configuration that it starts with.
func TestWhatTheChartWritesIsAConfiguration(t *testing.T) {
	files, err := filepath.Glob("../../deploy/charttest/testdata/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatal(files, err)
	}
	for _, name := range append(files, "../../deploy/kubernetes.yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var object struct {
				Kind string
				Data map[string]string
			}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(name, err)
			}
			if written, ok := object.Data["gateway.yaml"]; ok && object.Kind == "ConfigMap" {
				found++
				if _, err := config.Parse([]byte(written)); err != nil {
					t.Errorf("%s: %v\n%s", name, err, written)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s has no configuration", name)
		}
	}
}

// Each section of the chart's own values refuses keys that it does not know, too.
func TestNoSectionOfTheSchemaIsOpen(t *testing.T) {
	text, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	var whole object
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	delete(whole, "if")
	delete(whole, "then")
	var look func(at string, s object)
	look = func(at string, s object) {
		if s["properties"] != nil && s["additionalProperties"] != false {
			t.Errorf("%s takes any key", at)
		}
		for key, value := range s {
			if below, ok := value.(object); ok {
				look(at+"."+key, below)
			}
		}
	}
	look("values", whole)
}
