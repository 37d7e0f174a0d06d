package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Load reads, parses and validates the file. The errors name it.
func Load(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	return parse(data, path)
}

// Parse parses and validates a configuration file. An empty file gives Default. The errors are of type *Error,
// joined, each with its line.
func Parse(data []byte) (Config, error) { return parse(data, "") }

func parse(data []byte, file string) (Config, error) {
	cfg := Default()
	d := decoder{lines: map[string]int{}}

	root, err := document(data)
	if err != nil {
		d.add(0, "", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return Config{}, d.join(file)
	}
	if root != nil {
		d.decode(root, "", &cfg)
	}

	// A value that could not be read has its default now, which is not what the author meant: further faults of it
	// would only confuse.
	unread := d.faults
	for _, e := range cfg.validate() {
		if !unread.covers(e.Key) {
			e.Line = d.line(e.Key)
			d.faults = append(d.faults, e)
		}
	}
	if len(d.faults) > 0 {
		return Config{}, d.join(file)
	}
	return cfg, nil
}

// document returns the content of the only document, or nil if there is none.
func document(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	}
	switch err := dec.Decode(&next); {
	case err == nil:
		return nil, fmt.Errorf("line %d: a second document; allowed: one", next.Line)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, nil
	}
	return doc.Content[0], nil
}
