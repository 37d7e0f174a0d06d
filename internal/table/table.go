// Package table prints objects as the rows of a metav1.Table, as an API server does for kubectl. The columns and
// cells are the same; they are read from the objects' JSON.
//
// A row is appended to a buffer, so that a list of any length is printed without being built in memory. Ages are
// counted up to Options.Now; everything else in a row depends only on the object.
//
// Built-in kinds are printed as the API server's own printers do it (builtin.go, listed.go), and
// custom resources by the columns of their definition (custom.go). All other kinds are printed by
// name and creation time, as an API server does for kinds without a printer.
package table

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Table prints the objects of one kind. It may be used concurrently.
type Table struct {
	columns []metav1.TableColumnDefinition
	json    []byte // the columns, encoded
	print   func(r *row, o *cluster.Object)
}

// Options say how rows are printed.
type Options struct {
	// Include says what each row has beside its cells: the object's metadata (the default), the whole object, or
	// nothing.
	Include metav1.IncludeObjectPolicy
	// Version is the version of meta.k8s.io in which the client asked for a table: v1 (the default) or v1beta1.
	Version string
	// Now is the moment up to which ages are counted.
	Now time.Time
}

func newTable(columns []metav1.TableColumnDefinition, print func(r *row, o *cluster.Object)) *Table {
	text, err := json.Marshal(columns)
	if err != nil {
		panic("table: columns that are no JSON: " + err.Error())
	}
	return &Table{columns: columns, json: text, print: print}
}

// For returns the table of a kind of a cluster. For a custom resource it reads the definition. If that cannot be
// read, the kind is printed by name and creation time.
func For(ctx context.Context, c *cluster.Cluster, kind cluster.Kind) *Table {
	if t := builtin[groupResource{kind.Group, kind.Resource}]; t != nil {
		return t
	}
	if columns, ok := c.PrinterColumns(ctx, kind); ok {
		return Custom(columns)
	}
	return plain
}

// IsPlain reports whether the kind has no printer of its own. Without a row, the API server then
// writes null in the place of the rows.
func (t *Table) IsPlain() bool { return t == plain }

// Columns are the table's columns; they must not be changed.
func (t *Table) Columns() []metav1.TableColumnDefinition { return t.columns }

// AppendColumns appends the columns as JSON: the value of columnDefinitions.
func (t *Table) AppendColumns(dst []byte) []byte { return append(dst, t.json...) }

// AppendRow appends an object's row as JSON: {"cells":[…],"object":…}, with conditions where the API server has them.
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

// AppendMetadata appends an object's PartialObjectMetadata in a version of meta.k8s.io; "" means v1.
func AppendMetadata(dst []byte, o *cluster.Object, version string) []byte {
	if version == "" {
		version = "v1"
	}
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, version...)
	dst = append(dst, `","metadata":`...)
	return append(appendObjectMeta(dst, o.Path("metadata")), '}')
}

// objectMeta are the members of metav1.ObjectMeta, in their order.
var objectMeta = [...]string{
	"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
}

// appendObjectMeta appends metadata as metav1.ObjectMeta is written. Those of custom resources are
// ordered by their names where they are part of the object.
func appendObjectMeta(dst []byte, metadata gjson.Result) []byte {
	sorted := false
	var members [len(objectMeta)]string
	metadata.ForEach(func(key, value gjson.Result) bool {
		if !sorted && (key.Str == "name" || key.Str == "generateName") {
			return false
		}
		sorted = true
		if at := slices.Index(objectMeta[:], key.Str); at >= 0 {
			members[at] = value.Raw
		}
		return true
	})
	if !sorted {
		return append(dst, metadata.Raw...)
	}
	dst = append(dst, '{')
	first := true
	for i, value := range members {
		if value == "" {
			continue
		}
		if objectMeta[i] == "ownerReferences" {
			value = ownerReferences(value)
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(append(append(dst, '"'), objectMeta[i]...), `":`...), value...)
	}
	return append(dst, '}')
}

// ownerReferences are references as metav1.OwnerReference is written.
func ownerReferences(sorted string) string {
	var references []metav1.OwnerReference
	if json.Unmarshal([]byte(sorted), &references) != nil {
		return sorted
	}
	text, err := json.Marshal(references)
	if err != nil {
		return sorted
	}
	return string(text)
}

// parts are the members of an object that printers read, found in one pass.
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
