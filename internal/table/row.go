package table

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubecast/kubecast/internal/cluster"
)

// row is a row while it is written; cells are appended in the columns' order.
type row struct {
	buf        []byte
	now        time.Time
	conditions string // the row's conditions, as JSON; "": none
	begun      bool
}

func (r *row) next() {
	if r.begun {
		r.buf = append(r.buf, ',')
	}
	r.begun = true
}

func (r *row) text(s string) {
	r.next()
	if strings.ContainsAny(s, "<>&\u2028\u2029") { // which the API server's encoder escapes
		if text, err := json.Marshal(s); err == nil {
			r.buf = append(r.buf, text...)
			return
		}
	}
	// An error means invalid UTF-8, which the API server never sends. As much as can be written is written even then.
	r.buf, _ = jsontext.AppendQuote(r.buf, s)
}

func (r *row) number(n int64) {
	r.next()
	r.buf = strconv.AppendInt(r.buf, n, 10)
}

// raw appends a cell that is already JSON.
func (r *row) raw(json string) {
	r.next()
	r.buf = append(r.buf, json...)
}

func (r *row) null() { r.raw("null") }

// name appends the object's name.
func (r *row) name(o *cluster.Object) { r.text(o.GetName()) }

// age appends how long ago an object was created.
func (r *row) age(o *cluster.Object) {
	if o.Created() == 0 {
		r.text(unknown)
		return
	}
	r.text(r.since(time.Unix(o.Created(), 0)))
}

// The API server's printers write these where there is no value.
const (
	unknown = "<unknown>"
	none    = "<none>"
	unset   = "<unset>"
	invalid = "<invalid>"
)

// since is how long ago a moment was, in kubectl's form; unknown for the zero time.
func (r *row) since(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return duration.HumanDuration(r.now.Sub(t))
}

// moment reads a timestamp. It returns the zero time if there is none, or none that can be read.
func moment(value gjson.Result) time.Time {
	t, err := time.Parse(time.RFC3339, value.Str)
	if err != nil {
		return time.Time{}
	}
	return t
}

// or returns a text, or otherwise if it is empty.
func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// isSet reports whether a member exists and is not null.
func isSet(value gjson.Result) bool { return value.Type != gjson.Null }

// count returns the number of an object's members.
func count(object gjson.Result) (n int64) {
	if object.IsObject() {
		object.ForEach(func(_, _ gjson.Result) bool {
			n++
			return true
		})
	}
	return n
}

// each calls f with the elements of an array, until f returns false.
func each(array gjson.Result, f func(element gjson.Result) bool) {
	if array.IsArray() {
		array.ForEach(func(_, element gjson.Result) bool { return f(element) })
	}
}

// conditionStatus is the status of the first condition of a type; "" if there is none.
func conditionStatus(conditions gjson.Result, kind string) (status string) {
	each(conditions, func(c gjson.Result) bool {
		if c.Get("type").Str != kind {
			return true
		}
		status = c.Get("status").Str
		return false
	})
	return status
}
