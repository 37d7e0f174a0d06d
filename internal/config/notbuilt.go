package config

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// notBuilt are the keys of the file's format whose feature does not exist yet. If they were accepted and ignored, the
// file would promise what the gateway does not do. A key leaves this list when it gets its field in Config. At present all are built.
var notBuilt = []string{}

// notBuiltIn returns the names in a section, without those of its subsections, that are not built.
func notBuiltIn(section string) []string {
	var names []string
	for _, key := range notBuilt {
		if section != "" {
			rest, ok := strings.CutPrefix(key, section+".")
			if !ok {
				continue
			}
			key = rest
		}
		name, _, _ := strings.Cut(key, ".")
		if len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	return names
}

// notBuilt refuses a key that has a value. Empty values ask for nothing, so a file that lists every key may keep
// them.
func (d *decoder) notBuilt(n *yaml.Node, key string, line int) {
	switch {
	case isNull(n), n.Kind == yaml.ScalarNode && n.Value == "", n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		return
	}
	names := notBuiltIn(key)
	if n.Kind != yaml.MappingNode || len(names) == 0 && len(n.Content) > 0 {
		d.add(line, key, "is not built yet; leave it out")
		return
	}
	d.pairs(n, key, func(name string, k, value *yaml.Node) {
		for _, known := range names {
			if name == known {
				d.notBuilt(value, join(key, name), k.Line)
				return
			}
		}
		d.add(k.Line, join(key, name), "unknown key; known here: %s", strings.Join(names, ", "))
	})
}
