package rules

import (
	"maps"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
)

// The API server stores any quantity in an object of a kind whose quantities it does not read.
// There are such that it takes hours, and all memory, to read or to add up. Whoever makes such an
// object must not end the recording of that kind.
func TestAQuantityThatNobodyCanCountDoesNotHoldUpTheRecording(t *testing.T) {
	for _, text := range []string{`"1e-2000000000"`, `"1e2000000000"`, `1e2000000000`} {
		o, err := cluster.NewObject(`{"metadata":{"namespace":"n","name":"j","uid":"u","resourceVersion":"1"},"spec":{"group":{"replicas":2,"template":{"spec":{
			"volumes":[{"emptyDir":{"sizeLimit":` + text + `}}],"overhead":{"cpu":` + text + `},
			"containers":[{"name":"a","resources":{"requests":{"cpu":` + text + `}}},{"name":"b","resources":{"requests":{"cpu":"250m"},"limits":{"memory":"1Gi"}}}]}}}}}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := requestsOf(o); !maps.Equal(got, map[string]string{"cpu": "500m", "memory": "2Gi"}) {
			t.Errorf("%s: %v", text, got)
		}
	}
}
