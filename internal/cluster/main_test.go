package cluster

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	klog.LogToStderr(false) // client-go warns of faults that the tests make on purpose
	klog.SetOutput(io.Discard)
	goleak.VerifyTestMain(m)
}

var (
	pods    = Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true, Watchable: true}
	secrets = Kind{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true, Watchable: true}
	crds    = Kind{Group: "example.com", Version: "v1alpha1", Resource: "widgets", Kind: "Widget", Namespaced: true, Watchable: true}
)

// parse reads JSON, and keeps numbers as they are written.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var value map[string]any
	if err := dec.Decode(&value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

// expected is what must remain of an object that the API server sends.
func expected(kind Kind, sent map[string]any) map[string]any {
	sent["kind"], sent["apiVersion"] = kind.Kind, kind.APIVersion()
	if metadata, ok := sent["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		annotations, ok := metadata["annotations"].(map[string]any)
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		if !ok || len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	if kind.isSecret() {
		if metadata, ok := sent["metadata"].(map[string]any); ok {
			annotations, _ := metadata["annotations"].(map[string]any)
			for key := range annotations {
				if !harmlessOnSecrets[key] {
					annotations[key] = ""
				}
			}
		}
		for key := range sent {
			if !slices.Contains([]string{"kind", "apiVersion", "metadata", "data", "type", "immutable"}, key) {
				delete(sent, key)
			}
		}
		if data, ok := sent["data"].(map[string]any); ok {
			for key := range data {
				data[key] = ""
			}
		} else if _, there := sent["data"]; there {
			sent["data"] = nil
		}
	}
	return sent
}

// isStrict reports whether JSON is valid and has no duplicate names, of which parsers make different things.
func isStrict(text []byte) bool {
	dec := jsontext.NewDecoder(strings.NewReader(string(text)))
	for {
		if err := dec.SkipValue(); err != nil {
			return err == io.EOF
		}
	}
}
