package cache

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
)

func parseOrder(t testing.TB, text string) Order {
	t.Helper()
	o, err := Paths{}.Order(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Each value stands before the next one, and behind it in the other direction. Only what is missing is last in both.
func TestValuesAreOrderedByWhatTheyMean(t *testing.T) {
	ascending := []string{
		"false", "true",
		"-1e400", `"-2Gi"`, "-5", `"-5m"`, "0", `"100m"`, "0.5", "2", `"3"`, "10", `"20"`, `"1k"`, `"1Ki"`, "1500", `"1.5Gi"`, `"2Gi"`, "1e300", "1e400",
		`"2024-01-01T00:00:00Z"`, `"2024-01-01T00:00:00.000001Z"`, `"2024-01-01T01:00:00+00:30"`, `"2025-06-01T00:00:00.5Z"`, `"2025-06-01T00:00:01Z"`,
		`""`, `"1.2.3"`, `"10.0.0.1"`, `"1e5"`, `"2024-01-01"`, `"Zebra"`, `"apple"`, `"banana"`, `"banana split"`,
		`["a"]`, `{"a":1}`,
	}
	object := func(i int, value string) *cluster.Object {
		text := fmt.Sprintf(`{"metadata":{"name":"o-%02d","resourceVersion":"1"},"value":%s}`, i, value)
		o, err := cluster.NewObject(text)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	var objects []*cluster.Object
	for i, value := range ascending {
		objects = append(objects, object(i, value))
	}
	missing := object(99, "null")
	shuffled := append([]*cluster.Object{missing}, objects...)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	read := func(order string) (values []string) {
		sorted := parseOrder(t, order).Sort(slices.Values(shuffled), nil)
		for i := range sorted.Len() {
			values = append(values, sorted.At(i).Path("value").Raw)
		}
		return values
	}
	if got := read("value"); !slices.Equal(got, append(slices.Clone(ascending), "null")) {
		t.Errorf("ascending: %s", got)
	}
	slices.Reverse(ascending)
	if got := read("-value"); !slices.Equal(got, append(ascending, "null")) {
		t.Errorf("descending: %s", got)
	}
}

// The rest of a list follows the key of any object, also after a client has sent that key back, and also in a list
// that no longer has the object.
func TestSortedListIsWalkedFromAnyPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		byKey := map[string]*cluster.Object{}
		for _, o := range someObjects(t, rng, 60) {
			byKey[o.Key()] = o
		}
		var objects []*cluster.Object
		for _, o := range byKey {
			objects = append(objects, o)
		}
		text := []string{"spec.node", "-spec.node", "metadata.labels.app,-metadata.name", "-metadata.namespace,spec.node", "spec"}[rng.IntN(5)]
		order := parseOrder(t, text)
		all := order.Sort(slices.Values(objects), nil)
		for i := range all.Len() {
			text, err := json.Marshal(all.Key(i))
			var key SortKey
			if err == nil {
				err = json.Unmarshal(text, &key)
			}
			if err != nil || !order.Fits(key) {
				t.Fatalf("%s: %v", text, err)
			}
			if at := all.After(key); at != i+1 {
				t.Fatalf("sort=%s: after %s comes %d, not %d", order, text, at, i+1)
			}
			less := order.Sort(func(yield func(*cluster.Object) bool) {
				for _, o := range objects {
					if o != all.At(i) && !yield(o) {
						return
					}
				}
			}, nil)
			if at := less.After(key); at != i {
				t.Fatalf("sort=%s: without %s, %d comes after it, not %d", order, text, at, i)
			}
		}
	}
}

func TestBadOrdersAreRefused(t *testing.T) {
	for _, text := range []string{"-", ",", "a,", "a..b", "--", strings.Repeat("a,", maxOrderTerms) + "a"} {
		if o, err := (Paths{}).Order(text); err == nil && text != "--" {
			t.Errorf("%q is %v", text, o)
		}
	}
	if !parseOrder(t, "").Fits(SortKey{Name: "x"}) || parseOrder(t, "a").Fits(SortKey{Name: "x"}) {
		t.Error("a key must have a value for each path")
	}
}

func TestCountsAreByValue(t *testing.T) {
	objects := []*cluster.Object{
		newObject(t, "a/1", "metadata.labels.app=web"),
		newObject(t, "a/2", "metadata.labels.app=db"),
		newObject(t, "a/3"),
		newObject(t, "a/4", "metadata.labels.app=web"),
	}
	for by, want := range map[string]string{
		"metadata.labels.app":                `[{"value":"web","count":2},{"value":"","count":1},{"value":"db","count":1}]`,
		"metadata.labels.app, metadata.none": `[{"values":["web",""],"count":2},{"values":["",""],"count":1},{"values":["db",""],"count":1}]`,
	} {
		grouping, err := Paths{}.Grouping(by)
		if err != nil {
			t.Fatal(err)
		}
		counts := CountBy(slices.Values(objects), grouping, func(int) bool { return true })
		if text := string(counts.AppendJSON(nil, 0)); text != want {
			t.Errorf("by %s: %s", by, text)
		}
	}
	for _, by := range []string{"", "a,", "a,b,c", "a..b"} {
		if _, err := (Paths{}).Grouping(by); err == nil {
			t.Errorf("%q is taken", by)
		}
	}
}

// A tally of what came, changed and went is the count of what is there. Values that are the same
// text one after the other are not the same group, and a copy stays as it was.
func TestTallyIsTheCountOfWhatIsThere(t *testing.T) {
	grouping, err := Paths{}.Grouping("metadata.labels.a,metadata.labels.b")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 1))
	value := func() string { return []string{"", "x", "xy", "y", "xx"}[rng.IntN(5)] }
	tally, there := grouping.Tally(), map[int]*cluster.Object{}
	for i := range 2000 {
		name := rng.IntN(40)
		o := newObject(t, fmt.Sprintf("a/%d", name), "metadata.labels.a="+value(), "metadata.labels.b="+value())
		switch was := there[name]; {
		case was == nil:
			tally.Add(o)
			there[name] = o
		case rng.IntN(3) == 0:
			tally.Remove(was)
			delete(there, name)
		default:
			if changed := tally.Replace(was, o); changed != (grouping.of(was) != grouping.of(o)) {
				t.Fatalf("step %d: changed is %v", i, changed)
			}
			there[name] = o
		}
		want := string(CountBy(maps.Values(there), grouping, func(int) bool { return true }).AppendJSON(nil, 0))
		copied := tally.Copy()
		if got := string(tally.AppendJSON(nil, 0)); got != want {
			t.Fatalf("step %d: %s, not %s", i, got, want)
		}
		if len(there) > 0 {
			for name, o := range there {
				tally.Remove(o)
				delete(there, name)
				break
			}
			if got := string(copied.AppendJSON(nil, 0)); got != want {
				t.Fatalf("step %d: the copy became %s", i, got)
			}
		}
	}
	for _, o := range there {
		tally.Remove(o)
	}
	if tally.Size() != 0 {
		t.Errorf("an empty tally occupies %d bytes", tally.Size())
	}
}

// Any order sorts any objects into one sequence, which does not depend on where they stood before.
func FuzzOrder(f *testing.F) {
	f.Add("spec.node", uint64(1))
	f.Add("-a,b.0,-metadata.name", uint64(2))
	f.Add(`a\.b,\`, uint64(3))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		order, err := Paths{}.Order(text)
		if err != nil {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		byKey := map[string]*cluster.Object{}
		for _, o := range someObjects(t, rng, 20) {
			byKey[o.Key()] = o
		}
		var objects []*cluster.Object
		for _, o := range byKey {
			objects = append(objects, o)
		}
		one := order.Sort(slices.Values(objects), nil)
		rng.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		other := order.Sort(slices.Values(objects), nil)
		for i := range one.Len() {
			if one.At(i) != other.At(i) || one.After(one.Key(i)) != i+1 {
				t.Fatalf("%q: place %d", text, i)
			}
		}
	})
}
