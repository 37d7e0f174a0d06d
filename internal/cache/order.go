package cache

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Order is the order of a list by the values at some paths, compiled. The zero value is the order of Kubernetes'
// lists, by namespace and name; that also decides between objects of equal values.
//
// Values of different sorts stand in this order: booleans; numbers, and quantities such as 500m and 2Gi by their
// amount; times; other strings; objects and arrays. A value that is missing or null comes last in either direction.
type Order struct {
	text  string
	terms []orderTerm
}

type orderTerm struct {
	value
	descending bool
}

const maxOrderTerms = 8

// Order reads comma-separated paths, written as in field selectors. A - before a path means that the greatest value
// comes first.
func (p Paths) Order(text string) (Order, error) {
	if text == "" {
		return Order{}, nil
	}
	o := Order{text: text}
	for part := range strings.SplitSeq(text, ",") {
		field, descending := strings.CutPrefix(strings.TrimSpace(part), "-")
		at, err := p.parse(field)
		if err != nil {
			return Order{}, err
		}
		o.terms = append(o.terms, orderTerm{at, descending})
	}
	if len(o.terms) > maxOrderTerms {
		return Order{}, fmt.Errorf("%d paths are more than %d", len(o.terms), maxOrderTerms)
	}
	return o, nil
}

// String is the order as it was asked for; "" for the order of Kubernetes' lists.
func (o Order) String() string { return o.text }

// SortKey says where an object stands in an order. It means the same in every snapshot.
type SortKey struct {
	Values          []SortValue // one for each path
	Namespace, Name string
}

// SortValue is a value in the form in which it is compared.
type SortValue struct {
	Class  SortClass `json:"c"`
	Number float64   `json:"n,omitempty"` // of booleans (0 or 1), numbers, and times (in seconds)
	Text   string    `json:"t,omitempty"` // of all other classes
}

// SortClass is a sort of values. A lower class comes first.
type SortClass int

// The sorts of values.
const (
	SortBool SortClass = iota + 1
	SortNumber
	SortTime
	SortText
	SortOther
	SortMissing
)

// sortedText is how many bytes of a text are compared: sort keys are part of continue tokens, and these of addresses.
const sortedText = 256

// Fits reports whether a key that a client sent may be one of this order.
func (o Order) Fits(key SortKey) bool {
	return len(key.Values) == len(o.terms) && !slices.ContainsFunc(key.Values, func(v SortValue) bool {
		return v.Class < SortBool || v.Class > SortMissing || len(v.Text) > sortedText
	})
}

func (v *value) sortValue(o *cluster.Object) SortValue {
	if v.derived == nil {
		return sortValue(o.Path(v.path))
	}
	switch text := v.derived(o); {
	case text == "":
		return SortValue{Class: SortMissing}
	case v.amount:
		q, _ := resource.ParseQuantity(text) // also one with an exponent, as 1e9 is stored
		return SortValue{Class: SortNumber, Number: finite(q.AsApproximateFloat64())}
	default:
		return SortValue{Class: SortText, Text: prefix(text)}
	}
}

func sortValue(r gjson.Result) SortValue {
	switch r.Type {
	case gjson.False:
		return SortValue{Class: SortBool}
	case gjson.True:
		return SortValue{Class: SortBool, Number: 1}
	case gjson.Number:
		return SortValue{Class: SortNumber, Number: finite(r.Num)}
	case gjson.String:
		return sortText(r.Str)
	case gjson.JSON:
		return SortValue{Class: SortOther, Text: prefix(r.Raw)}
	}
	return SortValue{Class: SortMissing} // or null
}

func sortText(text string) SortValue {
	if len(text) >= len("2006-01-02T15:04:05Z") && text[4] == '-' && text[10] == 'T' {
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			return SortValue{Class: SortTime, Number: float64(t.Unix()) + float64(t.Nanosecond())/1e9}
		}
	}
	if amount, ok := quantity(text); ok {
		return SortValue{Class: SortNumber, Number: amount}
	}
	return SortValue{Class: SortText, Text: prefix(text)}
}

func prefix(text string) string { return strings.ToValidUTF8(text[:min(len(text), sortedText)], "") }

// quantity reads a number, with or without one of Kubernetes' suffixes. Exponents are not read: a text such as 1e5 is
// more likely a name.
func quantity(text string) (float64, bool) {
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 || digits == "" || digits[0] < '0' || digits[0] > '9' || len(text) > 32 {
		return 0, false
	}
	suffix := strings.TrimLeft(digits, "0123456789.")
	switch suffix {
	case "":
		number, err := strconv.ParseFloat(text, 64)
		return finite(number), err == nil
	case "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei":
		q, err := resource.ParseQuantity(text)
		return finite(q.AsApproximateFloat64()), err == nil
	}
	return 0, false
}

// finite keeps infinities out of sort keys, since JSON cannot express them.
func finite(number float64) float64 { return min(max(number, -math.MaxFloat64), math.MaxFloat64) }

func (o Order) compareValues(a, b []SortValue) int {
	for i, term := range o.terms {
		c := cmp.Compare(a[i].Class, b[i].Class)
		if missing := a[i].Class == SortMissing || b[i].Class == SortMissing; c != 0 && missing {
			return c
		}
		if c == 0 {
			c = cmp.Or(cmp.Compare(a[i].Number, b[i].Number), strings.Compare(a[i].Text, b[i].Text))
		}
		if c != 0 && term.descending {
			return -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// Sorted is a list of objects in an order. It never changes.
type Sorted struct {
	order   Order
	entries []sortEntry
	ranking *Ranking // in place of entries, if it is the copy of one
}

type sortEntry struct {
	values []SortValue
	object *cluster.Object
}

func (o Order) compare(a sortEntry, values []SortValue, namespace, name string) int {
	if c := o.compareValues(a.values, values); c != 0 {
		return c
	}
	return cluster.Compare(a.object.GetNamespace(), a.object.GetName(), namespace, name)
}

func (o Order) values(object *cluster.Object) []SortValue {
	if len(o.terms) == 0 {
		return nil
	}
	values := make([]SortValue, len(o.terms))
	o.read(values, object)
	return values
}

// read reads an object's values, one for each path.
func (o Order) read(into []SortValue, object *cluster.Object) {
	for i := range o.terms {
		into[i] = o.terms[i].sortValue(object)
	}
}

func (o Order) compareEntries(a, b sortEntry) int {
	return o.compare(a, b.values, b.object.GetNamespace(), b.object.GetName())
}

// Sort puts objects in order. Before each read and each comparison it calls step, unless that is nil, with about how
// many bytes it is going to look at. Once step returns false, Sort gives up: its result is then of no use.
func (o Order) Sort(objects iter.Seq[*cluster.Object], step func(bytes int) bool) *Sorted {
	s := &Sorted{order: o}
	for object := range objects {
		if step != nil && !step(object.Size()) {
			return s
		}
		s.entries = append(s.entries, sortEntry{o.values(object), object})
	}
	o.sort(s.entries, step)
	return s
}

func (o Order) sort(entries []sortEntry, step func(bytes int) bool) {
	more := true
	slices.SortFunc(entries, func(a, b sortEntry) int {
		if more = more && (step == nil || step(comparedBytes)); !more {
			return 0
		}
		return o.compareEntries(a, b)
	})
}

// comparedBytes is what one comparison costs, as the number of bytes that could be looked at in that time.
const comparedBytes = 128

// Size is about how many bytes the list occupies beside its objects. A ranking's copy shares them
// with the ranking at first.
func (s *Sorted) Size() int {
	if s.ranking != nil {
		return int(s.ranking.Size())
	}
	return cap(s.entries) * int(unsafe.Sizeof(sortEntry{})+uintptr(len(s.order.terms))*unsafe.Sizeof(SortValue{}))
}

// Len is the number of objects.
func (s *Sorted) Len() int {
	if s.ranking != nil {
		return s.ranking.Len()
	}
	return len(s.entries)
}

func (s *Sorted) entry(i int) sortEntry {
	if s.ranking != nil {
		e, _ := s.ranking.ranked.GetAt(i)
		return *e
	}
	return s.entries[i]
}

// At is the object at a place.
func (s *Sorted) At(i int) *cluster.Object { return s.entry(i).object }

// Key is the sort key of the object at a place.
func (s *Sorted) Key(i int) SortKey {
	e := s.entry(i)
	return SortKey{Values: e.values, Namespace: e.object.GetNamespace(), Name: e.object.GetName()}
}

// After is the first place behind a key, which must fit the order. The object of the key need not be in the list any
// more.
func (s *Sorted) After(key SortKey) int {
	return sort.Search(s.Len(), func(i int) bool {
		return s.order.compare(s.entry(i), key.Values, key.Namespace, key.Name) > 0
	})
}
