package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
)

// mergePatch is the patch alone.
func mergePatch(t testing.TB, fields *Fields, before, after source) string {
	t.Helper()
	const head, tail = `{"uid":"u","resourceVersion":"2","patch":`, `}`
	data := patched(fields, "u", "2", before, after)
	if data == "" {
		return ""
	}
	if !strings.HasPrefix(data, head) || !strings.HasSuffix(data, tail) {
		t.Fatalf("%s", data)
	}
	return data[len(head) : len(data)-len(tail)]
}

// merged is what a client has that applies a patch as RFC 7386 says, in section 2.
func merged(target, patch any) any {
	changes, is := patch.(map[string]any)
	if !is {
		return patch
	}
	result := map[string]any{}
	if had, is := target.(map[string]any); is {
		maps.Copy(result, had)
	}
	for name, value := range changes {
		if value == nil {
			delete(result, name)
		} else {
			result[name] = merged(result[name], value)
		}
	}
	return result
}

// byLibrary is what a client has that applies a patch by the library that Kubernetes uses. It drops
// nulls within arrays.
func byLibrary(t testing.TB, before, patch string) any {
	t.Helper()
	got, err := jsonpatch.MergePatch([]byte(before), []byte(patch))
	if err != nil {
		t.Fatalf("%s applied to %s: %v", patch, before, err)
	}
	return value(t, string(got))
}

// withoutNulls is a value without the members that are null of objects within arrays.
func withoutNulls(v any, inArray bool) any {
	switch v := v.(type) {
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = withoutNulls(v[i], true)
		}
		return all
	case map[string]any:
		some := map[string]any{}
		for name, value := range v {
			if value != nil || !inArray {
				some[name] = withoutNulls(value, inArray)
			}
		}
		return some
	}
	return v
}

func value(t testing.TB, text string) (v any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestPatchIsExactOrNone(t *testing.T) {
	const long = `,"pad":"........................................................................"}`
	for _, test := range []struct{ fields, before, after, want string }{
		{"", `{"a":1,"b":2` + long, `{"a":1,"b":3` + long, `{"b":3}`},
		{"", `{"a":{"x":1,"y":2}` + long, `{"a":{"x":1}` + long, `{"a":{"y":null}}`},
		{"", `{"a":{"x":1}` + long, `{"a":{}` + long, `{"a":{"x":null}}`},
		{"", `{"a":[1,2]` + long, `{"a":[1,2,3]` + long, `{"a":[1,2,3]}`},
		{"", `{"b":1,"a":2` + long, `{"a":2,"b":1` + long, `{}`},
		{"", `{"a":1` + long, `{"a":null` + long, ``},                                             // would say that there is none
		{"", `{"a":1` + long, `{"a":{"x":null}` + long, ``},                                       // likewise
		{"", `{"a":1` + long, `{"a":[null]` + long, ``},                                           // libraries drop it
		{"", `{"a":[{"x":1}]` + long, `{"a":[{"x":null}, "n"]` + long, `{"a":[{"x":null}, "n"]}`}, // an array is taken as it is
		{"", `{"a":1` + long, `{"a":{"x":[{"z":[],"y":null}],"z":null}` + long, ``},               // and what is beside it is not
		{"", `{"a":[1]` + long, `{"a":[{"x":[1,null]}]` + long, ``},                               // libraries drop it
		{"", `{"a":1` + long, `{"a":"\"null"` + long, `{"a":"\"null"}`},                           // no null
		{"", `{"a":1}`, `{"a":2}`, ``},                                                            // not shorter
		{"", `[1]`, `{"a":2}`, ``},                                                                // no object
		{"", `{"\u0061":1` + long, `{"a":2` + long, `{"a":2}`},                                    // the same key
		{"s.x", `{"s":{"x":1,"y":1}` + long, `{"s":{"x":1,"y":2}` + long, `{}`},                   // not wanted
		{"s.x", `{"s":[{"x":1,"y":1}]` + long, `{"s":[{"x":1,"y":2}]` + long, `{}`},               // likewise, in an array
		{"s.x", `{"s":[{"x":1}]` + long, `{"s":[{"x":2,"y":2}]` + long, `{"s":[{"x":2}]}`},        // no more than is wanted
		{"s.x", `{"s":{"x":{"z":1}},"t":1` + long, `{"t":2` + long, `{"s":null}`},                 // and t is not
		{"s.x", `{"s":{"y":null},"t":1` + long, `{"s":{"y":null,"x":2}` + long, `{"s":{"x":2}}`},  // what is not told need not be expressed
	} {
		var fields *Fields
		if test.fields != "" {
			fields, _ = ParseFields(cache.Paths{}, test.fields)
		}
		if got := mergePatch(t, fields, source{json: test.before}, source{json: test.after}); got != test.want {
			t.Errorf("%s from %s to %s: %s, want %s", test.fields, test.before, test.after, got, test.want)
		}
	}
}

// Whatever objects become, a patch gives exactly the next state of what is wanted to who has the
// one before, and no more than that.
func TestRandomPatchesAreExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	derives := cache.Paths{Status: func(*cluster.Object) string { return "" }}
	fields, _ := ParseFields(derives, "k1,k2.k3,$status,k4.k0.k1,long")
	statuses := []string{"", "Running", `"null`}
	var told, none int
	for range 2_000 {
		before := randomObject(random, 0)
		after := altered(random, before)
		one, next := source{status: statuses[random.IntN(3)]}, source{status: statuses[random.IntN(3)]}
		one.json, next.json = written(before), written(after)
		for _, fields := range []*Fields{fields, nil} {
			if fields == nil {
				one.status, next.status = "", ""
			}
			patch := mergePatch(t, fields, one, next)
			if patch == "" {
				none++
				continue
			}
			told++
			had, want := part(fields, one), value(t, part(fields, next))
			if got := merged(value(t, had), value(t, patch)); !reflect.DeepEqual(got, want) {
				t.Fatalf("%v\nto %v\npatch %s\ngives %v", one, next, patch, got)
			}
			if got, want := withoutNulls(byLibrary(t, had, patch), false), withoutNulls(want, false); !reflect.DeepEqual(got, want) {
				t.Fatalf("%v\nto %v\npatch %s\ngives %v by the library", one, next, patch, got)
			}
		}
	}
	if told < none/4 {
		t.Errorf("%d patches, and %d times none", told, none)
	}
}

// part is what is told of an object.
func part(fields *Fields, of source) string {
	if fields == nil {
		return of.json
	}
	return string(fields.append(nil, of))
}

func written(object any) string {
	text, _ := json.Marshal(object)
	return string(text)
}

func randomValue(random *rand.Rand, depth int) any {
	switch n := random.IntN(12); {
	case n < 5 && depth < 4:
		return randomObject(random, depth+1)
	case n < 7 && depth < 4:
		array := make([]any, random.IntN(3))
		for i := range array {
			array[i] = randomValue(random, depth+1)
		}
		return array
	case n == 7 && random.IntN(8) == 0:
		return nil
	case n == 8:
		return "null, \" and \\"
	}
	return random.IntN(3)
}

func randomObject(random *rand.Rand, depth int) map[string]any {
	object := map[string]any{}
	keys := 6
	if random.IntN(20) == 0 {
		keys = 3 * longObject
	}
	for range random.IntN(keys) {
		object[fmt.Sprintf("k%d", random.IntN(keys))] = randomValue(random, depth)
	}
	if depth == 0 {
		object["long"] = strings.Repeat("x", 200)
	}
	return object
}

func altered(random *rand.Rand, object map[string]any) map[string]any {
	next := map[string]any{}
	for key, value := range object {
		inner, isObject := value.(map[string]any)
		switch n := random.IntN(8); {
		case n == 0:
		case n == 1 && key != "long":
			next[key] = randomValue(random, 1)
		case isObject:
			next[key] = altered(random, inner)
		default:
			next[key] = value
		}
	}
	if random.IntN(3) == 0 {
		next[fmt.Sprintf("k%d", random.IntN(5))] = randomValue(random, 1)
	}
	return next
}

// An object can be nested as deeply as its API server takes it.
func TestDeepObjectsAreNotReadAtEachLevel(t *testing.T) {
	nested := func(n int) string {
		return strings.Repeat(`{"a":`, 9000) + fmt.Sprint(n) + strings.Repeat("}", 9000)
	}
	if patch := mergePatch(t, nil, source{json: nested(1)}, source{json: nested(2)}); patch != "" {
		t.Errorf("patch of %d bytes", len(patch))
	}
}

func BenchmarkPatched(b *testing.B) {
	var env strings.Builder
	for i := range 200 {
		fmt.Fprintf(&env, `,{"name":"PARAMETER_%03d","value":"s3://models/team/run/shard-%03d"}`, i, i)
	}
	pod := func(version int) string {
		return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u","resourceVersion":"%d"},`+
			`"spec":{"containers":[{"name":"main","env":[{}%s]}]},"status":{"phase":"Running"}}`, version, env.String())
	}
	before, after := pod(1), pod(2)
	fields, _ := ParseFields(cache.Paths{}, "metadata,spec,x")
	for name, fields := range map[string]*Fields{"whole": nil, "fields": fields} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				patched(fields, "u", "2", source{json: before}, source{json: after})
			}
		})
	}
}
