// Command chartschema prints the JSON schema of the chart's values: those of values.yaml beside it, and of config, which is
// the gateway's own configuration, what package config reads. So a chart refuses a key that the gateway does not know.
package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/kubecast/kubecast/internal/config"
)

//go:embed values.yaml
var values []byte

func main() {
	text, err := schema()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chartschema:", err)
		os.Exit(1)
	}
	os.Stdout.Write(text)
}

type object = map[string]any

// schema is the whole schema. It is made the same each time.
func schema() ([]byte, error) {
	var chart object
	if err := yaml.Unmarshal(values, &chart); err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	closed(chart)
	chart["$schema"] = "http://json-schema.org/draft-07/schema#"
	chart["properties"].(object)["config"] = of(reflect.TypeFor[config.Config](), "")
	text, err := json.MarshalIndent(chart, "", " ")
	return append(text, '\n'), err
}

// closed has each object with properties refuse others, but in conditions, which look at some properties only.
func closed(schema object) {
	if _, has := schema["properties"]; has && schema["type"] == "object" {
		schema["additionalProperties"] = false
	}
	for key, value := range schema {
		if below, ok := value.(object); ok && key != "if" && key != "then" {
			closed(below)
		}
	}
}

// words are what texts of the configuration may be. Package config says the same of any other.
var words = map[string][]string{
	"auth.jwt[].trusted": {"", "same"},
	"authorizer.mode":    {config.AuthorizerRBAC, config.AuthorizerSAR, config.AuthorizerPolicy},
	"audit.level":        {config.AuditNone, config.AuditMetadata},
	"history.owners":     {config.OwnersAsPermitted, config.OwnersSeeTheirOwn},
	"log.level":          {"debug", "info", "warn", "error"},
	"log.format":         {"text", "json"},
	"stream.compress[]":  {"zstd", "gzip"},
}

const (
	part    = `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`
	kind    = `^` + part + `(\.` + part + `)*$`
	pattern = `^(\*|(\*\.)?` + part + `(\.` + part + `)*)$`
)

// of is the schema of a type that the configuration is made of.
func of(t reflect.Type, key string) object {
	switch t {
	case reflect.TypeFor[config.Duration]():
		// Of numbers there is 0 only. The other word is none that a number could be: validators tell it.
		only := object{"enum": []any{0, "a duration such as 30s"}}
		return object{
			"type": []string{"string", "integer"}, "pattern": `^(0|([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+)$`,
			"if": object{"type": "integer"}, "then": only,
		}
	case reflect.TypeFor[config.ByteSize]():
		return object{"type": []string{"string", "integer"}, "pattern": `^[0-9]+(Ti|Gi|Mi|Ki|T|G|M|k)?$`, "minimum": 0}
	case reflect.TypeFor[config.Kind]():
		return object{"type": "string", "pattern": kind}
	case reflect.TypeFor[config.KindPattern]():
		return object{"type": "string", "pattern": pattern}
	case reflect.TypeFor[config.Addresses]():
		return object{"type": []string{"string", "array"}, "items": object{"type": "string"}}
	}
	switch t.Kind() {
	case reflect.Struct:
		keys := object{}
		for i := range t.NumField() {
			name := t.Field(i).Tag.Get("yaml")
			below := name
			if key != "" {
				below = key + "." + name
			}
			keys[name] = of(t.Field(i).Type, below)
		}
		return object{"type": "object", "additionalProperties": false, "properties": keys}
	case reflect.Slice:
		return object{"type": "array", "items": of(t.Elem(), key+"[]")}
	case reflect.Map:
		return object{"type": "object", "propertyNames": of(t.Key(), key), "additionalProperties": of(t.Elem(), key+"{}")}
	case reflect.String:
		if enum := words[key]; enum != nil {
			return object{"enum": enum}
		}
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	}
	panic("chartschema: no way to describe " + t.String())
}
