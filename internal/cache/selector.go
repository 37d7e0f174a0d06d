package cache

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Selector is a label and a field selector, compiled. The zero value selects everything.
type Selector struct {
	text   string          // as the client wrote it
	labels labels.Selector // nil: all
	pairs  []string        // label pairs that each selected object has
	fields []fieldTerm     // all must hold
	search string          // part of the name, in lower case

	derived []derivedTerms // by what is derived, once for all terms on it

	onePair bool // labels asks for exactly one pair

	tree *terms // all fields, looked up in one reading of an object; nil for fewer than two
	step func(bytes int) bool
}

// derivedTerms are terms on one value that is derived; all must hold.
type derivedTerms struct {
	field string
	value value
	terms []fieldTerm
}

type fieldTerm struct {
	field string // its path, with keys as users write them
	path  string // for gjson
	or    string // another path, where the value is if the first has none; "" if there is none
	unset string // the value of an object that has none
	want  string
	not   bool
}

// plain reports whether the term compares the value at its path, and nothing else. An index by that
// path then has what it asks for.
func (f *fieldTerm) plain() bool { return f.or == "" && f.unset == "" }

// holds reports whether the term holds for an object.
func (f *fieldTerm) holds(o *cluster.Object) bool {
	text := fieldValue(o, f.path)
	if text == "" && f.or != "" {
		text = fieldValue(o, f.or)
	}
	return f.holdsFor(text)
}

func (f *fieldTerm) holdsFor(value string) bool {
	if value == "" {
		value = f.unset
	}
	return (value == f.want) != f.not
}

// What a selector may ask for is bounded, since each object and each change is matched against it.
const (
	maxRequirements   = 64   // on labels, and as many on fields
	maxValues         = 1000 // of all requirements on labels
	maxPathKeys       = 64
	maxDerived        = 4 // values, each of which takes a look at all of an object
	tooManyConditions = "%d requirements are more than the %d that one may have"
)

// Selector reads both selectors in Kubernetes' syntax; either may be empty. A field by which the API
// server selects objects of that kind has the value that it has there. Any other is a path of the
// object, or $status, $ready, $restarts or $requests.NAME; a dot within a key is written \. in it. A path that an object lacks has the
// value "".
func (p Paths) Selector(labelSelector, fieldSelector string) (Selector, error) {
	s := Selector{text: strconv.Quote(labelSelector) + strconv.Quote(fieldSelector)}
	if labelSelector != "" {
		parsed, err := labels.Parse(labelSelector)
		if err != nil {
			return Selector{}, fmt.Errorf("unable to parse labelSelector: %w", err)
		}
		requirements, selectable := parsed.Requirements()
		if len(requirements) > maxRequirements {
			return Selector{}, fmt.Errorf("labelSelector: "+tooManyConditions, len(requirements), maxRequirements)
		}
		if !selectable || len(requirements) > 0 {
			s.labels = parsed
		}
		values := 0
		for _, r := range requirements {
			if values += r.Values().Len(); values > maxValues {
				return Selector{}, fmt.Errorf("labelSelector: it has more than the %d values that one may have", maxValues)
			}
			if op := r.Operator(); (op == selection.Equals || op == selection.DoubleEquals || op == selection.In) && r.Values().Len() == 1 {
				s.pairs = append(s.pairs, cluster.LabelPair(r.Key(), r.Values().UnsortedList()[0]))
			}
		}
		s.onePair = len(requirements) == 1 && len(s.pairs) == 1
	}
	parsed, err := fields.ParseSelector(fieldSelector)
	if err != nil {
		return Selector{}, fmt.Errorf("unable to parse fieldSelector: %w", err)
	}
	if terms := len(parsed.Requirements()); terms > maxRequirements {
		return Selector{}, fmt.Errorf("fieldSelector: "+tooManyConditions, terms, maxRequirements)
	}
	for _, r := range parsed.Requirements() {
		term, err := p.labelled(r.Field)
		if err != nil {
			return Selector{}, fmt.Errorf("unable to parse fieldSelector: %w", err)
		}
		term.want, term.not = r.Value, r.Operator == selection.NotEquals
		if !isDerived(term.field) {
			s.fields = append(s.fields, term)
			continue
		}
		if s.derived, err = p.withDerived(s.derived, term); err != nil {
			return Selector{}, fmt.Errorf("unable to parse fieldSelector: %w", err)
		}
	}
	s.tree = newTerms(s.fields)
	return s, nil
}

// withDerived adds a term on what is derived.
func (p Paths) withDerived(all []derivedTerms, term fieldTerm) ([]derivedTerms, error) {
	for i := range all {
		if all[i].field == term.field {
			all[i].terms = append(all[i].terms, term)
			return all, nil
		}
	}
	if len(all) == maxDerived {
		return nil, fmt.Errorf("more than %d values that are derived", maxDerived)
	}
	at, err := p.parse(term.field)
	return append(all, derivedTerms{term.field, at, []fieldTerm{term}}), err
}

// Stepping returns the selector for lists that take turns: before each object, List calls step with the number of
// bytes that it is about to look at. It ends when step returns false.
func (s Selector) Stepping(step func(bytes int) bool) Selector {
	s.step = step
	return s
}

// Cost is about how many bytes have to be looked at to match an object.
func (s Selector) Cost(o *cluster.Object) int {
	const known = 128 // bytes of the name and labels, which need no look at the JSON
	looks := len(s.derived)
	if len(s.fields) > 0 {
		looks++
	}
	if looks == 0 {
		return known
	}
	return known + looks*o.Size()
}

// Search narrows the selection to objects whose name contains a text; upper and lower case are the same. "" narrows
// nothing.
func (s Selector) Search(text string) Selector {
	s.search = strings.ToLower(text)
	return s
}

// Empty reports whether everything is selected.
func (s Selector) Empty() bool {
	return s.labels == nil && len(s.fields) == 0 && len(s.derived) == 0 && s.search == ""
}

// Key identifies what is selected. Selectors that are written differently may select the same, and have different keys.
func (s Selector) Key() string { return s.text + s.search }

// Matches reports whether an object is selected.
func (s Selector) Matches(o *cluster.Object) bool {
	if s.search != "" && !strings.Contains(strings.ToLower(o.GetName()), s.search) {
		return false
	}
	if s.labels != nil && !s.labels.Matches(o) {
		return false
	}
	if s.tree != nil {
		return s.tree.match(o) && s.hasDerived(o)
	}
	for i := range s.fields {
		if !s.fields[i].holds(o) {
			return false
		}
	}
	return s.hasDerived(o)
}

// hasDerived reports whether the terms on what is derived hold.
func (s Selector) hasDerived(o *cluster.Object) bool {
	for i := range s.derived {
		text := s.derived[i].value.text(o)
		for j := range s.derived[i].terms {
			if !s.derived[i].terms[j].holdsFor(text) {
				return false
			}
		}
	}
	return true
}

// Match is Matches as stream.Event.For wants it: nil if everything is selected.
func (s Selector) Match() func(*cluster.Object) bool {
	if s.Empty() {
		return nil
	}
	return s.Matches
}
