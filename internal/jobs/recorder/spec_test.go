package recorder

import (
	"fmt"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// What a job was told to do is all of its object but what came of it, as it was written.
func TestASpecIsAllOfAnObjectButItsStatus(t *testing.T) {
	for object, want := range map[string]string{
		`{"kind":"Job","metadata":{"name":"a","resourceVersion":"7"},"spec":{"status":"kept","template":{"é\"":[1,null]}},"status":{"failed":1}}`: `{"kind":"Job","metadata":{"name":"a","resourceVersion":"7"},"spec":{"status":"kept","template":{"é\"":[1,null]}}}`,
		`{"status":{},"metadata":{"name":"a","resourceVersion":"7"}}`:                                                                             `{"metadata":{"name":"a","resourceVersion":"7"}}`,
		`{"metadata":{"name":"a","resourceVersion":"7"},"workload":1}`:                                                                            `{"metadata":{"name":"a","resourceVersion":"7"},"workload":1}`,
	} {
		o, err := cluster.NewObject(object)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(specOf(o)); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// A first start may find more jobs that had ended than specs are kept at once. One namespace that
// has very many, or very large ones, does not keep others' from being kept.
func TestSpecsThatAreFoundAtOnceAreNotOneNamespaces(t *testing.T) {
	b, large := &batch{}, make([]byte, 100<<10)
	dropped := 0
	keep := func(namespace, uid string, data []byte) {
		dropped += b.keep(store.Kept{UID: uid, Namespace: namespace, Kind: store.KeptSpec, Data: data})
	}
	keep("alice", "first", large)
	for i := range 2 * mostKept / len(large) {
		keep("mallory", fmt.Sprint("m", i), large)
	}
	for i := range 50 {
		keep("alice", fmt.Sprint("a", i%40), large) // some of them end again
	}
	of := map[string]int{}
	bytes := 0
	for _, k := range b.keeps() {
		of[k.Namespace]++
		bytes += len(k.Data)
	}
	if of["alice"] != 41 || bytes > mostKept || bytes != b.kept.bytes || bytes < mostKept-len(large) || of["mallory"]+dropped != 2*mostKept/len(large) {
		t.Errorf("%v of %d bytes are kept, and %d are dropped", of, bytes, dropped)
	}
}
