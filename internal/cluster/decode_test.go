package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tidwall/gjson"
)

// items are objects as API servers send them, and other JSON that might come.
var items = []struct {
	name string
	kind Kind
	sent string
}{
	{"item of a typed list", pods, `{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web"}},"spec":{},"status":{}}`},
	{"item of a CRD's list", crds, `{"apiVersion":"example.com/v1alpha1","kind":"Widget","metadata":{"name":"a","namespace":"n","resourceVersion":"7"},"spec":{"kind":"inner","apiVersion":"inner"}}`},
	{"apiVersion and kind last", crds, `{"metadata":{"name":"a","resourceVersion":"7"},"kind":"Widget","apiVersion":"example.com/v1alpha1"}`},
	{"nothing but metadata", pods, `{"metadata":{"resourceVersion":"7","name":"a"}}`},
	{"numbers and escapes", crds, `{"metadata":{"name":"a","resourceVersion":"7"},"n":[1e400,-0,1.10,12345678901234567890,0.1e-7],"s":"\u00e9\u2028\/\"\\\b é 😀 \ud83d\ude00","\u006be\u0079":{"":null}}`},
	{"managedFields and last-applied", pods, `{"metadata":{"name":"a","resourceVersion":"7","managedFields":[{"manager":"m","fieldsV1":{"f:metadata":{}}}],"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"a\": 1}\n","b":"c"}},"managedFields":"mine"}`},
	{"only last-applied", pods, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"},"name":"a","resourceVersion":"7"}}`},
	{"empty annotations", pods, `{"metadata":{"annotations":{},"name":"a","resourceVersion":"7","labels":{}}}`},
	{"nulls", pods, `{"metadata":{"annotations":null,"managedFields":null,"labels":null,"creationTimestamp":null,"name":"a","resourceVersion":"7"},"spec":null}`},
	{"members named like those of metadata", crds, `{"metadata":{"name":"a","resourceVersion":"7","metadata":{"managedFields":1}},"spec":{"metadata":{"managedFields":[],"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"kept"}}}}`},
	{"indented", pods, "{\n  \"metadata\" : {\r\n\t\"name\": \"a\", \"labels\": { \"app\": \"web\" },\n \"resourceVersion\": \"7\"\n},\n \"list\": [ 1, 2 ]}\n"},
	{"as Python writes it", pods, `{"metadata": {"name": "a", "labels": {"app": "web", "tier": "db"}, "resourceVersion": "7"}, "list": [1, 2]}`},
	{"text like formatting", pods, `{"metadata":{"name":"a","annotations":{"json":"{\"a\": 1, \"b\": \"c\"}"},"resourceVersion":"7"},"s":"a\": b"}`},
	{"secret", secrets, `{"metadata":{"name":"a","resourceVersion":"7","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"stringData\":{\"k\":\"S3CRET\"}}"}},"data":{"k":"S3CRET","\"odd\".key":"S3CRET"},"stringData":{"k":"S3CRET"},"type":"Opaque","immutable":true}`},
	{"secret with annotations", secrets, `{"metadata":{"name":"a","resourceVersion":"7","annotations":{"openshift.io/token-secret.value":"S3CRET","kapp.k14s.io/original":"{\"data\":{\"k\":\"S3CRET\"}}","kubernetes.io/service-account.\u006eame":"builder","meta.helm.sh/release-name":"web","odd":{"k":"S3CRET"}}},"S3CRET":"S3CRET","spec":"S3CRET"}`},
	{"secret without data", secrets, `{"metadata":{"name":"a","resourceVersion":"7"},"data":null,"type":"Opaque"}`},
	{"secret whose data is none", secrets, `{"metadata":{"name":"a","resourceVersion":"7"},"data":["S3CRET"],"stringData":"S3CRET"}`},
	{"huge", crds, `{"metadata":{"name":"a","resourceVersion":"7"},"blob":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`},
}

func TestObjectIsWhatWasSentLessWhatNobodyReads(t *testing.T) {
	for _, item := range items {
		compact := compactor{kind: item.kind}
		o, err := compact.object([]byte(item.sent))
		if err != nil {
			t.Errorf("%s: %v", item.name, err)
			continue
		}
		want := expected(item.kind, parse(t, item.sent))
		if got := parse(t, o.JSON()); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%v, not\n%v", item.name, got, want)
		}
		if o.GetName() != "a" || o.Version() != 7 {
			t.Errorf("%s: it is %s at %d", item.name, o.Key(), o.Version())
		}
		if !isStrict([]byte(o.JSON())) {
			t.Errorf("%s: not valid, or with a name twice: %.300s", item.name, o.JSON())
		}
		if strings.ContainsAny(o.JSON(), "\r\n") || strings.Contains(o.JSON(), "S3CRET") {
			t.Errorf("%s: %.300s", item.name, o.JSON())
		}
		labels, _ := want["metadata"].(map[string]any)["labels"].(map[string]any)
		if len(labels) > 0 && o.Get("app") != labels["app"] {
			t.Errorf("%s: the labels are %v, and app is %q", item.name, labels, o.Get("app"))
		}
	}
}

// TestKindStandsWhereTheAPIServerWroteIt: clients compare what they are answered with what the API server does.
func TestKindStandsWhereTheAPIServerWroteIt(t *testing.T) {
	const rest = `"metadata":{"name":"a","resourceVersion":"7"}`
	for _, test := range []struct {
		kind       Kind
		sent, want string
	}{
		{pods, `{` + rest + `}`, `{"kind":"Pod","apiVersion":"v1",` + rest + `}`}, // an item of a list
		{pods, `{"kind":"Pod","apiVersion":"v1",` + rest + `,"spec":{}}`, `{"kind":"Pod","apiVersion":"v1",` + rest + `,"spec":{}}`},
		{crds, `{"age":1,"apiVersion":"example.com/v1alpha1","data":"x","kind":"Widget",` + rest + `}`, `{"age":1,"apiVersion":"example.com/v1alpha1","data":"x","kind":"Widget",` + rest + `}`},
		{crds, `{` + rest + `,"kind":"Widget","apiVersion":"example.com/v1alpha1"}`, `{` + rest + `,"kind":"Widget","apiVersion":"example.com/v1alpha1"}`},
		// Another kind's names are none, nor are some without the others, or those that come twice.
		{pods, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` + rest + `}`, `{"kind":"Pod","apiVersion":"v1",` + rest + `}`},
		{crds, `{"apiVersion":"example.com/v1",` + rest + `,"kind":"Widget"}`, `{"kind":"Widget","apiVersion":"example.com/v1alpha1",` + rest + `}`},
		{crds, `{"apiVersion":"example.com/v1alpha1",` + rest + `}`, `{"kind":"Widget","apiVersion":"example.com/v1alpha1",` + rest + `}`},
		{pods, `{"kind":"Pod","kind":"Pod","apiVersion":"v1",` + rest + `}`, `{"kind":"Pod","apiVersion":"v1",` + rest + `}`},
	} {
		compact := compactor{kind: test.kind}
		for range 2 { // the buffer is used again
			o, err := compact.object([]byte(test.sent))
			if err != nil || o.JSON() != test.want {
				t.Errorf("%s:\n%v %s, not\n%s", test.sent, err, o.JSON(), test.want)
			}
		}
	}
}

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	for _, sent := range []string{
		``, `null`, `5`, `"a"`, `[]`, `{}`,
		`{"metadata":null}`,
		`{"metadata":[]}`,
		`{"metadata":{"name":"a"}}`,
		`{"metadata":{"resourceVersion":"7"}}`,
		`{"metadata":{"name":"","resourceVersion":"7"}}`,
		`{"metadata":{"name":5,"resourceVersion":"7"}}`,
		`{"metadata":{"name":"a","resourceVersion":""}}`,
		`{"metadata":{"name":"a","resourceVersion":7}}`,
		`{"metadata":{"name":"a","resourceVersion":"x7"}}`,
	} {
		compact := compactor{kind: pods}
		if o, err := compact.object([]byte(sent)); err == nil {
			t.Errorf("%s became %s", sent, o.JSON())
		}
	}
}

func TestLists(t *testing.T) {
	for _, test := range []struct {
		name, body string
		keys       []string
		version    string // empty: an error
		more       string
	}{
		{"of pods", `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42"},"items":[` +
			`{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"}},{"metadata":{"name":"b","namespace":"n","resourceVersion":"9"}}]}` + "\n",
			[]string{"n/a", "n/b"}, "42", ""},
		{"a page", `{"metadata":{"resourceVersion":"42","continue":"token","remainingItemCount":5},"items":[{"metadata":{"name":"a","resourceVersion":"7"}}]}`,
			[]string{"a"}, "42", "token"},
		{"items before metadata, unknown members", `{"items":[{"metadata":{"name":"a","resourceVersion":"7"}}],"x":{"items":[1]},"metadata":{"resourceVersion":"42"}}`,
			[]string{"a"}, "42", ""},
		{"white space", " {\n \"metadata\" : { \"resourceVersion\" : \"42\" } , \"items\" : [ { \"metadata\": {\"name\" : \"a\",\n\"resourceVersion\":\"7\"} } ,\n {\"metadata\": {\"name\" : \"b\", \"resourceVersion\":\"7\"} } ] } \n",
			[]string{"a", "b"}, "42", ""},
		{"items null", `{"metadata":{"resourceVersion":"42"},"items":null}`, nil, "42", ""},
		{"no items", `{"metadata":{"resourceVersion":"42"}}`, nil, "42", ""},
		{"empty", `{"metadata":{"resourceVersion":"42"},"items":[]}`, nil, "42", ""},
		{"no metadata", `{"items":[]}`, nil, "", ""},
		{"metadata null", `{"metadata":null,"items":[]}`, nil, "", ""},
		{"version that is none", `{"metadata":{"resourceVersion":"abc"},"items":[]}`, nil, "", ""},
		{"a status", `{"kind":"Status","status":"Failure","metadata":{},"code":500}`, nil, "", ""},
		{"items that are none", `{"metadata":{"resourceVersion":"42"},"items":{"0":{}}}`, nil, "", ""},
		{"an item that is none", `{"metadata":{"resourceVersion":"42"},"items":[null]}`, nil, "", ""},
		{"an array", `[]`, nil, "", ""},
		{"nothing", ``, nil, "", ""},
		{"a page of HTML", `<html>`, nil, "", ""},
	} {
		list, err := decodeList(pods, strings.NewReader(test.body))
		if (err != nil) != (test.version == "") {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil {
			continue
		}
		var keys []string
		for _, o := range list.Items {
			keys = append(keys, o.Key())
		}
		if !slices.Equal(keys, test.keys) || list.ResourceVersion != test.version || list.Continue != test.more {
			t.Errorf("%s: %v at %s, continue %q", test.name, keys, list.ResourceVersion, list.Continue)
		}
	}
}

// allItems returns the body of a list of all objects above but the Secrets, each with a name of its own, and what
// must be read of it.
func allItems() (body string, want []string) {
	for i, item := range items {
		if item.kind != secrets && item.name != "huge" {
			want = append(want, strings.Replace(item.sent, `"a"`, fmt.Sprintf(`"a%d"`, i), 1))
		}
	}
	return `{"kind":"WidgetList","apiVersion":"example.com/v1alpha1","metadata":{"resourceVersion":"42"},"items":[` + strings.Join(want, ",") + `]}`, want
}

func TestObjectsOfAListKeepTheirOwnBytes(t *testing.T) {
	body, want := allItems()
	list, err := decodeList(crds, iotest.OneByteReader(strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range list.Items {
		if got, want := parse(t, o.JSON()), expected(crds, parse(t, want[i])); !reflect.DeepEqual(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
	}
}

func TestListCutAnywhereIsAnError(t *testing.T) {
	body, _ := allItems()
	for n := range len(body) {
		if list, err := decodeList(crds, strings.NewReader(body[:n])); err == nil {
			t.Fatalf("cut after %d bytes it has %d objects", n, len(list.Items))
		}
	}
}

// A reader that lists anew has nearly all objects already. They become no others, and cost no memory; what differs in a
// byte, also at the same version, does.
func TestWhatAReaderHasAlreadyIsNotMadeAnew(t *testing.T) {
	const count = 1000
	text := func(n int, phase string) string {
		return fmt.Sprintf(`{"metadata":{"labels":{"app":"x"},"name":"p%d","namespace":"n%d","uid":"u%d","resourceVersion":"7","managedFields":[{"manager":"%s"}]},"spec":{"text":"%s"},"status":{"phase":"%s"}}`,
			n, n%3, n, strings.Repeat("m", 1000), strings.Repeat("s", 2000), phase)
	}
	body := func(changed int) string {
		all := make([]string, count)
		for n := range all {
			if all[n] = text(n, "Running"); n == changed {
				all[n] = text(n, "Failed")
			}
		}
		return `{"metadata":{"resourceVersion":"8"},"items":[` + strings.Join(all, ",") + `]}`
	}
	before, err := decodeList(pods, strings.NewReader(body(-1)))
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]*Object{}
	for _, o := range before.Items[1:] {
		held[o.Key()] = o
	}
	again := compactor{kind: pods, held: func(namespace, name string) *Object { return held[namespace+"/"+name] }}
	now, err := again.list(strings.NewReader(body(500)))
	if err != nil || len(now.Items) != count {
		t.Fatal(len(now.Items), err)
	}
	for n, o := range now.Items {
		if same := o == before.Items[n]; same != (n != 0 && n != 500) {
			t.Errorf("object %d is the same: %v", n, same)
		}
	}
	if phase := gjson.Get(now.Items[500].JSON(), "status.phase").Str; phase != "Failed" {
		t.Error(phase)
	}
	bytesOf := func(c compactor) uint64 {
		sent := body(500)
		var one, two runtime.MemStats
		runtime.ReadMemStats(&one)
		if _, err := c.list(strings.NewReader(sent)); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&two)
		return two.TotalAlloc - one.TotalAlloc
	}
	if some, all := bytesOf(again), bytesOf(compactor{kind: pods}); some > all/4 {
		t.Errorf("%d bytes are allocated, of %d for a first list", some, all)
	}
}

func FuzzDecodeList(f *testing.F) {
	body, _ := allItems()
	f.Add([]byte(body), false)
	for _, item := range items {
		if item.name != "huge" {
			f.Add([]byte(`{"metadata":{"resourceVersion":"42"},"items":[`+item.sent+`]}`), item.kind == secrets)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, secret bool) {
		kind := crds
		if secret {
			kind = secrets
		}
		list, err := decodeList(kind, strings.NewReader(string(body)))
		if err != nil || !isStrict(body) {
			return
		}
		var sent struct{ Items []json.RawMessage }
		if err := json.Unmarshal(foldless(t, body), &sent); err != nil {
			t.Fatalf("encoding/json cannot read it: %v", err)
		}
		if len(sent.Items) != len(list.Items) {
			t.Fatalf("%d objects of %d", len(list.Items), len(sent.Items))
		}
		for i, o := range list.Items {
			checkObject(t, kind, string(sent.Items[i]), o)
		}
	})
}

// foldless leaves only the member "items" of an object: encoding/json would take "ITEMS" for it, too.
func foldless(t *testing.T, body []byte) []byte {
	var members map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&members); err != nil { // what follows the list is ignored
		t.Fatalf("encoding/json cannot read it: %v", err)
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return name != "items" })
	left, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func checkObject(t *testing.T, kind Kind, sent string, o *Object) {
	t.Helper()
	want := expected(kind, parse(t, sent))
	if got := parse(t, o.JSON()); !reflect.DeepEqual(got, want) {
		t.Fatalf("%v, not %v", got, want)
	}
	if strings.ContainsAny(o.JSON(), "\r\n") {
		t.Fatalf("it has several lines: %s", o.JSON())
	}
	metadata := want["metadata"].(map[string]any)
	if o.GetName() != metadata["name"] || o.GetResourceVersion() != metadata["resourceVersion"] {
		t.Fatalf("it is taken for %s at %d", o.Key(), o.Version())
	}
	moved := o.WithVersion(o.Version() + 1)
	metadata["resourceVersion"] = moved.GetResourceVersion()
	if got := parse(t, moved.JSON()); !reflect.DeepEqual(got, want) {
		t.Fatalf("with another version it is %v, not %v", got, want)
	}
}
