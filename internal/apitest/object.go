package apitest

import (
	"encoding/json"
	"fmt"
	"strings"
)

func (k *kind) apiVersion() string { return strings.TrimPrefix(k.Group+"/"+k.Version, "/") }

func (k *kind) path() string {
	if k.Group == "" {
		return "/api/" + k.Version + "/" + k.Resource
	}
	return "/apis/" + k.Group + "/" + k.Version + "/" + k.Resource
}

func (k *kind) encode(key string, o object, fields []string) []byte {
	name := key
	metadata := map[string]any{"creationTimestamp": "2026-01-01T00:00:00Z"}
	if !k.Measured {
		metadata["uid"], metadata["resourceVersion"] = o.uid, fmt.Sprint(o.version)
	}
	if namespace, rest, namespaced := strings.Cut(key, "/"); namespaced {
		name, metadata["namespace"] = rest, namespace
	}
	metadata["name"] = name
	root := map[string]any{"kind": k.Kind.Kind, "apiVersion": k.apiVersion(), "metadata": metadata}
	for _, field := range fields {
		path, text, _ := strings.Cut(field, "=")
		var value any = text
		if raw, isJSON := strings.CutSuffix(path, ":"); isJSON {
			path, value = raw, json.RawMessage(text)
		}
		set(root, strings.Split(path, "."), value)
	}
	return encode(root)
}

func (k *kind) bookmark(version uint64) []byte {
	metadata := map[string]any{"resourceVersion": fmt.Sprint(version)}
	return encode(map[string]any{"kind": k.Kind.Kind, "apiVersion": k.apiVersion(), "metadata": metadata})
}

func set(in map[string]any, path []string, value any) {
	for ; len(path) > 1; path = path[1:] {
		next, ok := in[path[0]].(map[string]any)
		if !ok {
			next = map[string]any{}
			in[path[0]] = next
		}
		in = next
	}
	in[path[0]] = value
}

func setVersion(object []byte, version uint64) []byte {
	var root map[string]any
	if err := json.Unmarshal(object, &root); err != nil {
		panic(err) // the JSON is made here
	}
	set(root, []string{"metadata", "resourceVersion"}, fmt.Sprint(version))
	return encode(root)
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // the JSON is made here
	}
	return text
}
