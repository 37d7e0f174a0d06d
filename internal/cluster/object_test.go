package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func object(t testing.TB, text string) *Object {
	t.Helper()
	o, err := NewObject(text)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}

func TestCompareIsTheOrderOfKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	name := func() string {
		text := make([]byte, rng.IntN(4))
		for i := range text {
			text[i] = "-.019az:"[rng.IntN(8)] // on both sides of '/'
		}
		return string(text)
	}
	for range 200_000 {
		nsA, a, nsB, b := name(), name(), name(), name()
		want := cmp.Compare(nsA+"/"+a, nsB+"/"+b)
		if got := Compare(nsA, a, nsB, b); got != want {
			t.Fatalf("%q/%q and %q/%q: %d, not %d", nsA, a, nsB, b, got, want)
		}
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "1": 1, "42": 42, "18446744073709551615": 1<<64 - 1} {
		if v, err := ParseVersion(text); err != nil || v != want {
			t.Errorf("%q is %d, %v", text, v, err)
		}
	}
	for _, text := range []string{"", "042", "00", "+1", "-1", "1.0", "1e3", "0x1", "1_000", " 1", "1 ", "18446744073709551616", "a"} {
		if v, err := ParseVersion(text); err == nil {
			t.Errorf("%q is %d", text, v)
		} else if !strings.Contains(err.Error(), strconv.Quote(text)) {
			t.Errorf("the error does not name %q: %v", text, err)
		}
	}
}

func TestWithVersionChangesNothingElse(t *testing.T) {
	o := object(t, `{"kind":"Pod","resourceVersion":"99","metadata":{"resourceVersion":"99","name":"a","namespace":"n","uid":"u","labels":{"resourceVersion":"99"}},"spec":{"resourceVersion":"99"}}`)
	moved := o.WithVersion(100)
	if want := strings.Replace(o.JSON(), `"metadata":{"resourceVersion":"99"`, `"metadata":{"resourceVersion":"100"`, 1); moved.JSON() != want {
		t.Errorf("%s, not %s", moved.JSON(), want)
	}
	if moved.Version() != 100 || moved.Key() != "n/a" || moved.UID() != "u" || moved.Get("resourceVersion") != "99" || o.Version() != 99 {
		t.Errorf("it is %+v", moved)
	}
	if o.WithVersion(99) != o {
		t.Error("the same version makes another object")
	}
}

func TestLabelsAreThoseOfTheMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	parts := []string{"", "a", "app", "app.kubernetes.io/name", "x/y", "A_b-c.d", strings.Repeat("l", 63), "é"}
	for range 2000 {
		want := labels.Set{}
		for range rng.IntN(6) {
			want[parts[rng.IntN(len(parts))]] = parts[rng.IntN(len(parts))]
		}
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "a", "resourceVersion": "1", "labels": want}})
		if err != nil {
			t.Fatal(err)
		}
		o := object(t, string(text))
		for _, key := range parts {
			value, ok := o.Lookup(key)
			if wantValue, wantOK := want.Lookup(key); value != wantValue || ok != wantOK || o.Has(key) != wantOK || o.Get(key) != wantValue {
				t.Fatalf("%q of %v is %q, %v", key, want, value, ok)
			}
			for _, value := range parts {
				has, wantOK := o.HasLabel(LabelPair(key, value)), want.Has(key) && want[key] == value
				if has != wantOK {
					t.Fatalf("%q=%q of %v: %v", key, value, want, has)
				}
			}
		}
		var pairs, wantPairs []string
		o.EachLabel(func(pair string) { pairs = append(pairs, pair) })
		for key, value := range want {
			wantPairs = append(wantPairs, LabelPair(key, value))
		}
		slices.Sort(pairs)
		slices.Sort(wantPairs)
		if !slices.Equal(pairs, wantPairs) {
			t.Fatalf("%q, not %q", pairs, wantPairs)
		}
		if got := o.GetLabels(); len(want) > 0 && !reflect.DeepEqual(got, map[string]string(want)) {
			t.Fatalf("%v, not %v", got, want)
		}
	}
}

func TestLabelsThatAreNoneAreLeftOut(t *testing.T) {
	for _, text := range []string{`null`, `[]`, `"a"`, `5`, `{}`, `{"a":1}`, `{"a":"b","c":{"d":"e"}}`, `{"a":null}`, `{"a":"b\"c"}`, `{"a\u0062":"c"}`, `{"a":"b c"}`} {
		o := object(t, `{"metadata":{"name":"a","resourceVersion":"1","labels":`+text+`}}`)
		o.EachLabel(func(pair string) { t.Errorf("%s has %s", text, pair) })
		if o.Has("a") || o.Has("") || o.HasLabel(`"a":"b"`) {
			t.Errorf("%s has a label", text)
		}
	}
}

func TestMetadata(t *testing.T) {
	meta := metav1.ObjectMeta{
		Name: "a", Namespace: "n", UID: "u", ResourceVersion: "7", GenerateName: "a-", Generation: 3,
		CreationTimestamp:          metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		DeletionTimestamp:          &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)},
		DeletionGracePeriodSeconds: new(int64),
		Labels:                     map[string]string{"l": "1"},
		Annotations:                map[string]string{"an": "notation"},
		Finalizers:                 []string{"f"},
		OwnerReferences:            []metav1.OwnerReference{{Kind: "Job", Name: "j", UID: "ju"}},
	}
	text, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		t.Fatal(err)
	}
	o := object(t, string(text))
	for got, want := range map[any]any{
		o.GetName(): meta.Name, o.GetNamespace(): meta.Namespace, o.GetUID(): meta.UID, o.GetResourceVersion(): meta.ResourceVersion,
		o.GetGenerateName(): meta.GenerateName, o.GetGeneration(): meta.Generation,
	} {
		if got != want {
			t.Errorf("%v, not %v", got, want)
		}
	}
	if created := o.GetCreationTimestamp(); !created.Equal(&meta.CreationTimestamp) || o.Created() != meta.CreationTimestamp.Unix() {
		t.Errorf("created at %v", created)
	}
	if deleted := o.GetDeletionTimestamp(); !deleted.Equal(meta.DeletionTimestamp) || *o.GetDeletionGracePeriodSeconds() != 0 {
		t.Errorf("deleted at %v", deleted)
	}
	if !reflect.DeepEqual(o.GetLabels(), meta.Labels) || !reflect.DeepEqual(o.GetAnnotations(), meta.Annotations) ||
		!reflect.DeepEqual(o.GetFinalizers(), meta.Finalizers) || !reflect.DeepEqual(o.GetOwnerReferences(), meta.OwnerReferences) || o.GetManagedFields() != nil {
		t.Errorf("%v %v %v %v", o.GetLabels(), o.GetAnnotations(), o.GetFinalizers(), o.GetOwnerReferences())
	}
	bare := object(t, `{"metadata":{"name":"a","resourceVersion":"1","creationTimestamp":"when?","finalizers":"odd"}}`)
	if created := bare.GetCreationTimestamp(); bare.GetDeletionTimestamp() != nil || !created.IsZero() || bare.Created() != 0 || bare.GetFinalizers() != nil || bare.Key() != "a" {
		t.Error("what is not there has a value")
	}
}

func TestObjectsAreNotModified(t *testing.T) {
	o := object(t, `{"metadata":{"name":"a","resourceVersion":"1"}}`)
	for i, set := range []func(){
		func() { o.SetNamespace("") }, func() { o.SetName("") }, func() { o.SetGenerateName("") }, func() { o.SetUID("") },
		func() { o.SetResourceVersion("") }, func() { o.SetGeneration(1) }, func() { o.SetSelfLink("") }, func() { o.SetLabels(nil) },
		func() { o.SetCreationTimestamp(metav1.Time{}) }, func() { o.SetDeletionTimestamp(nil) }, func() { o.SetDeletionGracePeriodSeconds(nil) },
		func() { o.SetAnnotations(nil) }, func() { o.SetFinalizers(nil) }, func() { o.SetOwnerReferences(nil) }, func() { o.SetManagedFields(nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("setter %d modified the object", i)
				}
			}()
			set()
		}()
	}
	if o.DeepCopyObject() != o {
		t.Error("a copy of an object is another one")
	}
}

func TestKinds(t *testing.T) {
	for _, test := range []struct {
		kind             Kind
		api, text, place string
	}{
		{pods, "v1", "pods", "/api/v1/pods"},
		{crds, "example.com/v1alpha1", "widgets.example.com", "/apis/example.com/v1alpha1/widgets"},
	} {
		if got := fmt.Sprint(test.kind.APIVersion(), test.kind, test.kind.Path()); got != fmt.Sprint(test.api, test.text, test.place) {
			t.Error(got)
		}
	}
}
