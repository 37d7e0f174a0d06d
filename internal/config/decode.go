package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder fills a Config from YAML nodes. The strict mode of yaml's own decoder knows neither the path of an unknown
// key nor the allowed values, and it silently takes yes for true and 12 for "12".
type decoder struct {
	faults
	lines map[string]int // the line of each key that was read
}

// line is the line of a key, or of the section in which it would be; 0 if neither is in the file.
func (d *decoder) line(key string) int {
	for key != "" {
		if n, ok := d.lines[key]; ok {
			return n
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return 0
}

// decode reads n into target, a pointer to one of the types that Config is made of.
func (d *decoder) decode(n *yaml.Node, key string, target any) {
	d.lines[key] = n.Line
	// Anchors and aliases are not worth their cost: an alias can make a small file grow without bound, and a fault
	// would not be at the line of its key.
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		d.add(n.Line, key, "anchors and aliases are not supported: write the value out")
		return
	}
	if text, ok := target.(encoding.TextUnmarshaler); ok {
		d.text(n, key, text)
		return
	}
	v := reflect.ValueOf(target).Elem()
	switch v.Kind() {
	case reflect.Struct:
		d.section(n, key, v)
	case reflect.Slice:
		d.list(n, key, v)
	case reflect.Map:
		d.table(n, key, v)
	case reflect.String:
		d.scalar(n, key, target, "!!str", "a string (a number or true/false in quotes)")
	case reflect.Bool:
		d.scalar(n, key, target, "!!bool", "true or false")
	case reflect.Int:
		d.scalar(n, key, target, "!!int", "a whole number")
	case reflect.Float64:
		tag := "!!float"
		if n.ShortTag() == "!!int" {
			tag = "!!int"
		}
		d.scalar(n, key, target, tag, "a number")
	default:
		panic("config: no way to read a " + v.Type().String())
	}
}

func (d *decoder) text(n *yaml.Node, key string, target encoding.TextUnmarshaler) {
	tag := n.ShortTag()
	ok := n.Kind == yaml.ScalarNode && (tag == "!!str" || tag == "!!int" || tag == "!!float")
	// The error of this package's types says what they allow. It is wanted also if what is given is no text.
	given := n.Value
	if !ok {
		given = ""
	}
	if err := target.UnmarshalText([]byte(given)); err != nil {
		d.add(n.Line, key, "%s given; allowed: %v", describe(n), err)
	}
}

func (d *decoder) scalar(n *yaml.Node, key string, target any, tag, allowed string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != tag || n.Decode(target) != nil {
		d.add(n.Line, key, "%s given; allowed: %s", describe(n), allowed)
	}
}

// section reads a struct. An empty section, as when all its keys are commented out, changes nothing.
func (d *decoder) section(n *yaml.Node, key string, v reflect.Value) {
	if isNull(n) {
		return
	}
	fields := map[string]reflect.Value{}
	var known []string
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		fields[name] = v.Field(i)
		known = append(known, name)
	}
	slices.Sort(known)

	d.pairs(n, key, func(name string, k, value *yaml.Node) {
		path := join(key, name)
		switch f, ok := fields[name]; {
		case ok:
			d.decode(value, path, f.Addr().Interface())
			d.lines[path] = k.Line
		default:
			d.add(k.Line, path, "unknown key; known here: %s", strings.Join(known, ", "))
		}
	})
}

// list reads a slice, which replaces the default.
func (d *decoder) list(n *yaml.Node, key string, v reflect.Value) {
	if v.Type() == reflect.TypeFor[Addresses]() && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		n = &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line, Content: []*yaml.Node{n}}
	}
	if n.Kind != yaml.SequenceNode {
		d.add(n.Line, key, "%s given; allowed: a list, [] for none", describe(n))
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		element := list.Index(i).Addr().Interface()
		switch e := element.(type) {
		case *JWT:
			e.Claims = DefaultClaims()
		case *Webhook:
			*e = DefaultWebhook()
		}
		d.decode(item, fmt.Sprintf("%s[%d]", key, i), element)
	}
	v.Set(list)
}

// table reads a map whose keys the file's author chooses. It replaces the default.
func (d *decoder) table(n *yaml.Node, key string, v reflect.Value) {
	table := reflect.MakeMap(v.Type())
	d.pairs(n, key, func(name string, k, value *yaml.Node) {
		path := fmt.Sprintf("%s[%s]", key, name)
		mapKey, mapValue := reflect.New(v.Type().Key()), reflect.New(v.Type().Elem())
		before := len(d.faults)
		d.decode(k, path, mapKey.Interface())
		if len(d.faults) > before {
			return
		}
		d.decode(value, path, mapValue.Interface())
		table.SetMapIndex(mapKey.Elem(), mapValue.Elem())
	})
	v.Set(table)
}

// pairs calls each for the entries of a mapping. A key that is not plain or not unique is a fault.
func (d *decoder) pairs(n *yaml.Node, key string, each func(name string, k, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.add(n.Line, key, "%s given; allowed: a map of keys and values, {} for none", describe(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str" {
			d.add(k.Line, key, "%s given as a key; allowed: a plain name", describe(k))
			continue
		}
		if first, twice := seen[k.Value]; twice {
			d.add(k.Line, join(key, k.Value), "given twice, first on line %d", first)
			continue
		}
		seen[k.Value] = k.Line
		each(k.Value, k, value)
	}
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// describe says what a node is, in the words of an error message.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		return quoted(n.Value)
	case n.Kind == yaml.ScalarNode:
		return strings.Trim(quoted(n.Value), `"`)
	default:
		return "an alias"
	}
}
