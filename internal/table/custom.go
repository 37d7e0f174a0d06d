package table

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Custom returns the table of a custom resource whose definition has these columns: its name and the columns, or its
// name and age if there are none.
func Custom(columns []cluster.PrinterColumn) *Table {
	if len(columns) == 0 {
		columns = []cluster.PrinterColumn{{
			Name: "Age", Type: "date", Description: metaDoc["creationTimestamp"], JSONPath: ".metadata.creationTimestamp",
		}}
	}
	heads := []metav1.TableColumnDefinition{nameColumn()}
	var printed []*customColumn
	for _, c := range columns {
		if _, err := parseJSONPath(c); err != nil {
			break // as the API server does, which would not even accept such a definition
		}
		description := c.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		heads = append(heads, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority,
		})
		printed = append(printed, newCustomColumn(c))
	}
	return newTable(heads, func(r *row, o *cluster.Object) {
		r.name(o)
		content := content{object: o}
		for _, c := range printed {
			c.print(r, &content)
		}
	})
}

// content is an object, with its unmarshalled form once a column has needed that.
type content struct {
	object *cluster.Object
	parsed map[string]any
}

func (c *content) value() map[string]any {
	if c.parsed == nil {
		c.parsed = map[string]any{}
		_ = json.Unmarshal([]byte(c.object.JSON()), &c.parsed) // an Object's JSON is always valid
	}
	return c.parsed
}

// customColumn is one column of a custom resource.
type customColumn struct {
	kind string
	// path is the JSONPath in gjson's form if it has nothing but names, else "". Most do, and need no unmarshalled
	// object.
	path string
	// parsed pools *jsonpath.JSONPath, since one can serve only one caller at a time.
	parsed sync.Pool
}

func newCustomColumn(c cluster.PrinterColumn) *customColumn {
	return &customColumn{
		kind: c.Type,
		path: plainPath(c.JSONPath),
		parsed: sync.Pool{New: func() any {
			path, _ := parseJSONPath(c) // the same text was parsed without an error before
			return path
		}},
	}
}

func parseJSONPath(c cluster.PrinterColumn) (*jsonpath.JSONPath, error) {
	path := jsonpath.New(c.Name).AllowMissingKeys(true)
	return path, path.Parse(fmt.Sprintf("{%s}", c.JSONPath))
}

// plainPath turns .a.b into gjson's a.b. It returns "" for a path that has more than names.
func plainPath(path string) string {
	rest, ok := strings.CutPrefix(path, ".")
	if !ok || rest == "" {
		return ""
	}
	for name := range strings.SplitSeq(rest, ".") {
		if name == "" || strings.IndexFunc(name, func(c rune) bool {
			return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-')
		}) >= 0 {
			return ""
		}
	}
	return rest
}

func (c *customColumn) print(r *row, o *content) {
	if c.path != "" && c.printPlain(r, o.object) {
		return
	}
	path := c.parsed.Get().(*jsonpath.JSONPath)
	found, err := path.FindResults(o.value())
	if err != nil {
		r.null()
		return // parsed is not put back, since it may have stopped in the middle
	}
	defer c.parsed.Put(path)
	if len(found) == 0 || len(found[0]) == 0 {
		r.null()
		return
	}
	value := found[0][0].Interface()
	if c.kind != "string" {
		r.value(c.kind, value)
		return
	}
	var text bytes.Buffer
	if path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}) != nil {
		r.null()
		return
	}
	r.text(text.String())
}

// printPlain prints the value at a path of names. It reports false, and prints nothing, if it leaves that to the
// JSONPath.
func (c *customColumn) printPlain(r *row, o *cluster.Object) bool {
	names := strings.Split(c.path, ".")
	value := gjson.Parse(o.JSON())
	for _, name := range names {
		if !value.IsObject() {
			return false // for other values, JSONPath has rules of its own
		}
		if value = value.Get(name); !value.Exists() {
			r.null()
			return true
		}
	}
	switch {
	case value.Type == gjson.String && c.kind == "string":
		r.text(value.Str)
	case value.Type == gjson.String:
		r.value(c.kind, value.Str)
	case value.Type == gjson.Number && c.kind == "integer" && isInteger(value.Raw):
		r.raw(value.Raw)
	case (value.Type == gjson.True || value.Type == gjson.False) && c.kind == "boolean":
		r.raw(value.Raw)
	default:
		return false
	}
	return true
}

func isInteger(number string) bool {
	_, err := strconv.ParseInt(number, 10, 64)
	return err == nil
}

// value appends a value as a cell of a type, or null if the value is not of that type.
func (r *row) value(kind string, value any) {
	switch kind {
	case "integer":
		switch n := value.(type) {
		case int64:
			r.number(n)
			return
		case float64:
			r.number(int64(n))
			return
		}
	case "number":
		switch n := value.(type) {
		case int64:
			r.float(float64(n))
			return
		case float64:
			r.float(n)
			return
		}
	case "boolean":
		if b, ok := value.(bool); ok {
			r.raw(strconv.FormatBool(b))
			return
		}
	case "date":
		if s, ok := value.(string); ok {
			r.date(s)
			return
		}
	}
	r.null()
}

// date appends how long ago a timestamp was.
func (r *row) date(text string) {
	if text == "" || text == "null" { // the API server reads it as a query parameter, which may be written so
		r.text(unknown)
		return
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.text(invalid)
		return
	}
	r.text(r.since(t))
}

func (r *row) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		r.null() // does not come from JSON
		return
	}
	r.raw(strconv.FormatFloat(f, 'g', -1, 64))
}
