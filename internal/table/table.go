// Package table prints objects as the rows of a metav1.Table, as an API server does for kubectl: the same columns and
// the same cells, read from the objects' JSON.
//
// A row is appended to a buffer, so that a list of any length is printed without one being built. Ages are those of
// the moment that Options name; everything else in a row depends on the object alone.
//
// The kinds that people look at most are printed as the API server's own printers do it (builtin.go lists them),
// custom resources by the columns of their definition (custom.go), and all others by name and creation time, which is
// what an API server does for kinds that it has no printer for.
package table

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Table prints the objects of one kind. It may be used concurrently.
type Table struct {
	columns []metav1.TableColumnDefinition
	json    []byte // the columns
	print   func(r *row, o *cluster.Object)
}

// Options say how rows are printed.
type Options struct {
	// Include is what stands in each row beside its cells: the object's metadata (also if it is empty), the whole
	// object, or nothing.
	Include metav1.IncludeObjectPolicy
	// Version is that of meta.k8s.io in which the client asked for a table: v1 (also if it is empty) or v1beta1.
	Version string
	// Now is the moment to which ages are counted.
	Now time.Time
}

func newTable(columns []metav1.TableColumnDefinition, print func(r *row, o *cluster.Object)) *Table {
	text, err := json.Marshal(columns)
	if err != nil {
		panic("table: columns that are no JSON: " + err.Error())
	}
	return &Table{columns: columns, json: text, print: print}
}

// For is how a kind of a cluster is printed. For a custom resource its definition is read; if it cannot be, the kind is
// printed as others are.
func For(ctx context.Context, c *cluster.Cluster, kind cluster.Kind) *Table {
	if t := builtin[groupResource{kind.Group, kind.Resource}]; t != nil {
		return t
	}
	if columns, ok := c.PrinterColumns(ctx, kind); ok {
		return Custom(columns)
	}
	return plain
}

// Columns are the table's columns; nobody may change them.
func (t *Table) Columns() []metav1.TableColumnDefinition { return t.columns }

// AppendColumns appends the columns as JSON: the value of columnDefinitions.
func (t *Table) AppendColumns(dst []byte) []byte { return append(dst, t.json...) }

// AppendRow appends an object's row as JSON: {"cells":[…],"object":…}, with conditions where the API server has some.
func (t *Table) AppendRow(dst []byte, o *cluster.Object, opts Options) []byte {
	r := row{buf: append(dst, `{"cells":[`...), now: opts.Now}
	t.print(&r, o)
	dst = append(r.buf, ']')
	if r.conditions != "" {
		dst = append(dst, `,"conditions":`...)
		dst = append(dst, r.conditions...)
	}
	dst = append(dst, `,"object":`...)
	switch opts.Include {
	case metav1.IncludeObject:
		dst = append(dst, o.JSON()...)
	case metav1.IncludeNone:
		dst = append(dst, "null"...)
	default:
		dst = AppendMetadata(dst, o, opts.Version)
	}
	return append(dst, '}')
}

// AppendMetadata appends an object's PartialObjectMetadata, in a version of meta.k8s.io.
func AppendMetadata(dst []byte, o *cluster.Object, version string) []byte {
	if version == "" {
		version = "v1"
	}
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, version...)
	dst = append(dst, `","metadata":`...)
	dst = append(dst, o.Path("metadata").Raw...)
	return append(dst, '}')
}

// parts are the members of an object that its printer reads, found in one pass.
type parts struct{ metadata, spec, status gjson.Result }

func partsOf(o *cluster.Object) (p parts) {
	gjson.Parse(o.JSON()).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "metadata":
			p.metadata = value
		case "spec":
			p.spec = value
		case "status":
			p.status = value
		}
		return true
	})
	return p
}
