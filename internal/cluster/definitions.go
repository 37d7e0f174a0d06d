package cluster

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// PrinterColumn is one of a CustomResourceDefinition's additionalPrinterColumns.
type PrinterColumn struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int32  `json:"priority"`
	JSONPath    string `json:"jsonPath"`
}

// definitionKind is the kind CustomResourceDefinition.
var definitionKind = Kind{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions", Kind: "CustomResourceDefinition", Watchable: true,
}

// definition is what the gateway needs of a CustomResourceDefinition.
type definition struct {
	at      time.Time
	changes int                        // Cluster.changes when it was read
	columns map[string][]PrinterColumn // by served version; nil if there is no such definition, or it cannot be read
}

// definitions holds the definitions that were asked for, by name (plural.group). Callers ask only for kinds that
// exist, so they are not many.
type definitions struct {
	mu    sync.Mutex
	known map[string]*definition
}

// definitionAge is how long a definition is used if no change of it becomes known, since the gateway may not be
// allowed to watch definitions.
const definitionAge = 10 * time.Second

// PrinterColumns returns the columns in which a custom resource is printed, in the kind's version. It reports false
// for kinds that are no custom resources, and for those whose definition the gateway cannot read.
func (c *Cluster) PrinterColumns(ctx context.Context, kind Kind) ([]PrinterColumn, bool) {
	if kind.Group == "" {
		return nil, false
	}
	_, change := c.latest(kind.Group)
	name := kind.String()
	d := c.definitions.get(name)
	if d == nil || d.changes < change || time.Since(d.at) > definitionAge {
		answer, err := c.once(ctx, "definition "+name, func(ctx context.Context) (any, error) { return c.readDefinition(ctx, name) })
		switch {
		case err == nil:
			d = answer.(*definition)
		case d == nil:
			return nil, false
		}
	}
	columns, ok := d.columns[kind.Version]
	return columns, ok
}

func (d *definitions) get(name string) *definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[name]
}

func (d *definitions) set(name string, now *definition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[string]*definition{}
	}
	d.known[name] = now
}

func (c *Cluster) readDefinition(ctx context.Context, name string) (*definition, error) {
	_, changes := c.known()
	d := &definition{at: time.Now(), changes: changes}
	body, err := c.client.Get().AbsPath(definitionKind.Path(), name).MaxRetries(0).DoRaw(ctx)
	switch {
	case err == nil:
		if d.columns, err = columnsOf(body); err != nil {
			return nil, err
		}
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		// It is remembered that this failed, or each request would ask again.
	default:
		return nil, err
	}
	c.definitions.set(name, d)
	return d, nil
}

// columnsOf returns the printer columns of a CustomResourceDefinition, by served version.
func columnsOf(crd []byte) (map[string][]PrinterColumn, error) {
	var parsed struct {
		Spec struct {
			Versions []struct {
				Name    string          `json:"name"`
				Served  bool            `json:"served"`
				Columns []PrinterColumn `json:"additionalPrinterColumns"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(crd, &parsed); err != nil {
		return nil, err
	}
	columns := map[string][]PrinterColumn{}
	for _, v := range parsed.Spec.Versions {
		if v.Served {
			columns[v.Name] = v.Columns
		}
	}
	return columns, nil
}
