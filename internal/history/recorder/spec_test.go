package recorder

import (
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
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
