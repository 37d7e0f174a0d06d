package cache

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

func TestFieldSelectors(t *testing.T) {
	o, err := cluster.NewObject(`{"kind":"Pod","metadata":{"name":"a","resourceVersion":"1","annotations":{"a.b/c":"x","a":{"b/c":"y"},"0":"zero","*":"star","q\"\\":"odd","é":"accent"}},` +
		`"spec":{"containers":[{"image":"one"},{"image":"two"}],"n":7,"f":1.5,"e":1e3,"t":true,"z":null,"o":{"a":1},"empty":"","s":"a,b=c\\d","esc":"\u0041"},"status":{"phase":"Running"}}`)
	if err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]bool{
		"status.phase=Running":            true,
		"status.phase==Running":           true,
		"status.phase!=Running":           false,
		"status.phase=Pending":            false,
		"status.phase=Running,spec.n=7":   true,
		"status.phase=Running,spec.n!=7":  false,
		"metadata.name=a":                 true,
		"spec.f=1.5":                      true,
		"spec.e=1000":                     true,
		"spec.t=true":                     true,
		"spec.z=":                         true,
		"spec.missing=":                   true,
		"spec.missing!=":                  false,
		"spec.missing!=x":                 true,
		"missing.at.all=":                 true,
		"spec.empty=":                     true,
		"spec.n.deeper=":                  true,
		"spec.containers.0.image=one":     true,
		"spec.containers.1.image=two":     true,
		"spec.containers.2.image=":        true,
		"spec.containers.image=":          true, // an array has no names
		"spec.containers.#=":              true, // and no count, or the like
		"spec.containers.#.image=":        true,
		"spec.containers.-1.image=":       true,
		"spec.containers.@reverse=":       true,
		"@this=":                          true,
		"spec.@keys=":                     true,
		"spec.*=":                         true,
		"spec.containers.0|image=":        true,
		`metadata.annotations.a\.b/c=x`:   true,
		`metadata.annotations.a.b/c=y`:    true,
		`metadata.annotations.0=zero`:     true,
		`metadata.annotations.*=star`:     true,
		`metadata.annotations.q"\\=odd`:   true,
		`metadata.annotations.é=accent`:   true,
		`spec.s=a\,b\=c\\d`:               true,
		`spec.esc=A`:                      true,
		` status.phase =Running`:          true,
		"spec.o.a=1":                      true,
		"kind=Pod":                        true,
		"metadata.annotations.a.b/c!=y":   false,
		"metadata.resourceVersion=1":      true,
		"spec.containers.0.image!=two":    true,
		"spec.containers.00000.image=one": true,
	} {
		parsed, err := Paths{}.Selector("", selector)
		if err != nil {
			t.Errorf("%q: %v", selector, err)
		} else if got := parsed.Matches(o); got != want {
			t.Errorf("%q: %v", selector, got)
		}
	}
	for _, bad := range []string{"status.phase", "=x", ".=x", "a..b=x", "a.=x", ".a=x", "a=b=c", `a=b\`, `a=b\c`} {
		if _, err := (Paths{}).Selector("", bad); err == nil || !strings.HasPrefix(err.Error(), "unable to parse fieldSelector: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := (Paths{}).Selector("a in (", ""); err == nil || !strings.HasPrefix(err.Error(), "unable to parse labelSelector: ") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"", " "} {
		if s, err := (Paths{}).Selector(text, ""); err != nil || !s.Empty() || s.Match() != nil {
			t.Errorf("%q is not empty: %v", text, err)
		}
	}
}

// lookUp defines what a path means, by a plain walk over the decoded object.
func lookUp(value any, keys []string) (text string, sure bool) {
	for _, key := range keys {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if strings.Trim(key, "0123456789") != "" || err != nil || i >= len(v) {
				return "", err == nil || strings.Trim(key, "0123456789") != ""
			}
			value = v[i]
		default:
			return "", true
		}
	}
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), strings.Trim(v.String(), "0123456789") == ""
	}
	return "", false // objects and arrays
}

func FuzzSelectors(f *testing.F) {
	f.Add("app=web,tier!=db", "status.phase=Running", `{"metadata":{"name":"a","resourceVersion":"1","labels":{"app":"web"}},"status":{"phase":"Running"}}`)
	f.Add("", `a.#.b\|c=x`, `{"metadata":{"name":"a","resourceVersion":"1"},"a":[{"b|c":"x"}],"#":1}`)
	f.Add("!a", `a.@this.1.*=`, `{"metadata":{"name":"a","resourceVersion":"1"},"a":{"@this":["",{"*":"y"}]}}`)
	f.Add("a in (b)", `a.{x}.!"y".[0]=z`, `{"metadata":{"name":"a","resourceVersion":"1"},"a":{"{x}":{"!\"y\"":{"[0]":"z"}}}}`)
	f.Add("", `a.\u00e9.?=z`, `{"metadata":{"name":"a","resourceVersion":"1"},"a":{"\u00e9":{"?":"z"}}}`)
	f.Fuzz(func(t *testing.T, labelSelector, fieldSelector, text string) {
		selector, err := Paths{}.Selector(labelSelector, fieldSelector)
		if err != nil || jsontext.NewDecoder(strings.NewReader(text)).SkipValue() != nil {
			return
		}
		value := jsontext.Value(text)
		if value.Compact() != nil {
			return
		}
		o, err := cluster.NewObject(string(value))
		if err != nil {
			return
		}
		matches := selector.Matches(o)
		state, err := newState(nil)
		if err != nil {
			t.Fatal(err)
		}
		state.put(o)
		for listed := range (&Snapshot{state: state}).List(stream.AllNamespaces(), selector, "", "") {
			if listed != o || !matches {
				t.Fatal("what is listed does not match")
			}
			matches = false
		}
		if matches {
			t.Fatal("what matches is not listed")
		}
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var members map[string]any
		if err := dec.Decode(&members); err != nil {
			t.Fatal(err)
		}
		parsed, err := fields.ParseSelector(fieldSelector)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range parsed.Requirements() {
			keys, err := SplitPath(r.Field)
			if err != nil {
				t.Fatal(err)
			}
			if want, sure := lookUp(members, keys); sure && fieldValue(o, selector.fields[i].path) != want {
				t.Fatalf("%q of %s is %q, not %q", r.Field, text, fieldValue(o, selector.fields[i].path), want)
			}
		}
	})
}
