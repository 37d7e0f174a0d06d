package apitest

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/kubecast/kubecast/internal/cluster"
)

// created is when all objects were made: when time begins in a synctest bubble, so that it is never to come.
const created = "2000-01-01T00:00:00Z"

type object struct {
	uid     string
	version uint64
	fields  []string
	json    string
}

func (o object) encoded(kind cluster.Kind, key string) object {
	metadata := map[string]any{"creationTimestamp": created}
	if !kind.Measured {
		metadata["uid"], metadata["resourceVersion"] = o.uid, strconv.FormatUint(o.version, 10)
	}
	namespace, name, namespaced := strings.Cut(key, "/")
	if metadata["name"] = key; namespaced {
		metadata["namespace"], metadata["name"] = namespace, name
	}
	root := map[string]any{"kind": kind.Kind, "apiVersion": kind.APIVersion(), "metadata": metadata}
	for _, field := range o.fields {
		path, text, _ := strings.Cut(field, "=")
		var value any = text
		if raw, isJSON := strings.CutSuffix(path, ":"); isJSON {
			path, value = raw, json.RawMessage(text)
		}
		in, last := root, path
		for head, rest, more := strings.Cut(last, "."); more; head, rest, more = strings.Cut(last, ".") {
			next, ok := in[head].(map[string]any)
			if !ok {
				next = map[string]any{}
				in[head] = next
			}
			in, last = next, rest
		}
		in[last] = value
	}
	o.json = encode(root)
	return o
}

// JSON is an object as an API server sends it. Each field assigns to a path:
// metadata.labels.app=web assigns a string, and spec.replicas:=3 assigns JSON. Names with dots are
// for JSON: metadata.labels:={"a.b":"c"}.
func JSON(kind cluster.Kind, key string, fields ...string) string {
	return object{fields: fields}.encoded(kind, key).json
}

// Set is a field that assigns a value as JSON.
func Set(path string, value any) string { return path + ":=" + encode(value) }

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // a mistake in the test
	}
	return string(text)
}

func contents(of map[string]object) map[string]string {
	found := map[string]string{}
	for key, o := range of {
		found[key] = o.json
	}
	return found
}
