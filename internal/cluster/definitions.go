package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// PrinterColumn is a column that a CustomResourceDefinition asks to be printed (additionalPrinterColumns).
type PrinterColumn struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int32  `json:"priority"`
	JSONPath    string `json:"jsonPath"`
}

// definition is what the gateway needs of a CustomResourceDefinition, or that there is none.
type definition struct {
	at      time.Time
	columns map[string][]PrinterColumn // by served version; nil if there is no such definition
	err     error                      // it could not be read
}

// definitions are those that were asked for.
type definitions struct {
	mu    sync.Mutex
	known map[string]*definition // by name: plural.group
}

// definitionAge is how long a definition is believed that nobody watches.
const definitionAge = 10 * time.Second

// PrinterColumns are the columns by which a custom resource is printed, in the kind's version. It is false for kinds
// that are no custom resources, and for those whose definition the gateway cannot read.
func (c *Cluster) PrinterColumns(ctx context.Context, kind Kind) ([]PrinterColumn, bool) {
	if kind.Group == "" {
		return nil, false
	}
	d := c.definitions.get(kind.String())
	if d == nil {
		answer, err := c.once(ctx, "definition "+kind.String(), func(ctx context.Context) (any, error) {
			return c.readDefinition(ctx, kind.String()), nil
		})
		if err != nil {
			return nil, false
		}
		d = answer.(*definition)
	}
	columns, ok := d.columns[kind.Version]
	return columns, ok
}

func (d *definitions) get(name string) *definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.known[name]
	if known == nil || time.Since(known.at) > definitionAge {
		return nil
	}
	return known
}

func (d *definitions) set(name string, now *definition) *definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	if before := d.known[name]; now.err != nil && before != nil {
		now.columns = before.columns // better than none
	}
	if d.known == nil {
		d.known = map[string]*definition{}
	}
	d.known[name] = now
	return now
}

// definitionsPath is where CustomResourceDefinitions are.
const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

func (c *Cluster) readDefinition(ctx context.Context, name string) *definition {
	at := time.Now()
	body, err := c.client.Get().AbsPath(definitionsPath, name).MaxRetries(0).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return c.definitions.set(name, &definition{at: at})
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Name    string          `json:"name"`
				Served  bool            `json:"served"`
				Columns []PrinterColumn `json:"additionalPrinterColumns"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err == nil {
		err = json.Unmarshal(body, &crd)
	}
	if err != nil {
		return c.definitions.set(name, &definition{at: at, err: fmt.Errorf("reading the definition of %s: %w", name, err)})
	}
	columns := map[string][]PrinterColumn{}
	for _, v := range crd.Spec.Versions {
		if v.Served {
			columns[v.Name] = v.Columns
		}
	}
	return c.definitions.set(name, &definition{at: at, columns: columns})
}
