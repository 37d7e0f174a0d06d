package alerttest

import (
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// Parser parses queries as the server does by default.
var Parser = parser.NewParser(parser.Options{})

// Rules are those of a manifest's PrometheusRules, in their order.
func Rules(manifest string) (all []rulefmt.Rule, err error) {
	file, err := os.Open(manifest)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	for decoder := yaml.NewDecoder(file); ; {
		var object struct {
			Kind string
			Spec yaml.Node
		}
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case object.Kind != "PrometheusRule":
			continue
		}
		text, err := yaml.Marshal(&object.Spec)
		if err != nil {
			return nil, err
		}
		groups, faults := rulefmt.Parse(text, false, model.UTF8Validation, Parser, slog.Default())
		if faults != nil {
			return nil, errors.Join(faults...)
		}
		for _, group := range groups.Groups {
			all = append(all, group.Rules...)
		}
	}
}
