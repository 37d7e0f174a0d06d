package cache

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Paths reads paths of a kind's objects as users write them, in selectors, orders and groupings.
// The zero value is that of a kind that is not built in, and has no $status.
type Paths struct {
	Resource schema.GroupResource
	// Status derives the value at $status from an object; nil: it is "".
	Status func(*cluster.Object) string
	// Requests returns what derives the value at $requests.NAME, of a name of a resource, from an
	// object: a quantity, or "" if it requests none; nil: it is "".
	Requests func(name string) func(*cluster.Object) string
	// Numbers derive the values at ReadyPath and RestartsPath from an object; what is not there: it is "".
	Numbers map[string]func(*cluster.Object) string
}

// StatusPath is the path of what is derived from an object: what it is doing, in a word.
const StatusPath = "$status"

// requestsPath begins the paths of how much an object requests of a resource: all of it, by the
// rule of Kubernetes' scheduler, wherever in the object that is written.
const requestsPath = "$requests."

// ReadyPath and RestartsPath are the paths of how many containers of an object are ready, and how often these were
// started again.
const (
	ReadyPath    = "$ready"
	RestartsPath = "$restarts"
)

func isNumber(path string) bool { return path == ReadyPath || path == RestartsPath }

// isDerived reports whether what is at a path is derived from all of an object.
func isDerived(path string) bool {
	return path == StatusPath || isNumber(path) || strings.HasPrefix(path, requestsPath)
}

// IsMember reports whether a path, whose first key it is, may be one of an object as it is told: of what is derived, only
// $status is.
func IsMember(key string) bool { return !isNumber(key) && key+"." != requestsPath }

// value is where a value of an object is: at a path of its JSON, or derived from all of it.
type value struct {
	path    string                       // for gjson
	derived func(*cluster.Object) string // in place of the path, unless it is nil
	amount  bool                         // what is derived is a quantity, or ""
}

func nothing(*cluster.Object) string { return "" }

// parse reads one path.
func (p Paths) parse(text string) (value, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == StatusPath && p.Status == nil:
		return value{derived: nothing}, nil
	case text == StatusPath:
		return value{derived: p.Status}, nil
	case isNumber(text) && p.Numbers[text] == nil:
		return value{derived: nothing, amount: true}, nil
	case isNumber(text):
		return value{derived: p.Numbers[text], amount: true}, nil
	case strings.HasPrefix(text, requestsPath):
		return p.requested(text)
	}
	path, err := fieldPath(text)
	return value{path: path}, err
}

// requested reads a path of what is requested of a resource.
func (p Paths) requested(text string) (value, error) {
	keys, err := SplitPath(text)
	switch {
	case err != nil:
		return value{}, err
	case len(keys) != 2:
		return value{}, fmt.Errorf("%q names no resource (a dot within a name is written \\.)", text)
	case p.Requests == nil:
		return value{derived: nothing, amount: true}, nil
	}
	return value{derived: p.Requests(keys[1]), amount: true}, nil
}

// text is an object's value as selectors and counts compare it; "" if it has none.
func (v *value) text(o *cluster.Object) string {
	if v.derived != nil {
		return v.derived(o)
	}
	return fieldValue(o, v.path)
}

func fieldValue(o *cluster.Object, path string) string { return o.Path(path).String() }

// fieldPath turns a field as users write it into a path for gjson, in which nothing is a wildcard or a modifier.
func fieldPath(field string) (string, error) {
	keys, err := SplitPath(field)
	if err != nil {
		return "", err
	}
	for i, key := range keys {
		keys[i] = gjson.Escape(key)
	}
	return strings.Join(keys, "."), nil
}

// SplitPath splits a path as users write it (status.phase, spec.containers.0.image, metadata.labels.a\.b/c) into its
// keys. An empty key is an error that names the path; so are more keys than maxPathKeys.
func SplitPath(path string) (keys []string, err error) {
	var key strings.Builder
	escaped := false
	for _, c := range []byte(strings.TrimSpace(path)) {
		switch {
		case escaped:
			key.WriteByte(c)
			escaped = false
		case c == '\\':
			escaped = true
		case c == '.':
			keys = append(keys, key.String())
			key.Reset()
		default:
			key.WriteByte(c)
		}
	}
	keys = append(keys, key.String())
	switch {
	case slices.Contains(keys, ""):
		return nil, fmt.Errorf("%q is not a path of an object", path)
	case len(keys) > maxPathKeys:
		return nil, fmt.Errorf("a path of %d keys is longer than the %d that one may have", len(keys), maxPathKeys)
	}
	return keys, nil
}
