package e2e

import (
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A list not older than a version is answered if the cluster has that version, whatever kind's change it is, and whether or not the API server
// keeps a watch cache of the kind, as of Events it does not.
func TestListsOfQuietKindsAreNotOlderThanOtherKindsChanges(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "quiet-kinds")
	g := s.startGateway(t, gatewayOptions{})
	g.waitReady(t)
	token := s.admin(t)
	const as = "application/json;g=meta.k8s.io;v=v1;as="
	for i, path := range []string{"/api/v1/namespaces/quiet-kinds/events", "/apis/events.k8s.io/v1/namespaces/quiet-kinds/events", "/api/v1/podtemplates"} {
		g.list(t, token, path) // it is cached from here on
		for j, accept := range []string{asJSON, as + "Table", as + "PartialObjectMetadataList"} {
			made, err := s.kube.CoreV1().ConfigMaps("quiet-kinds").Create(t.Context(), configMap("quiet-kinds", fmt.Sprintf("c-%d-%d", i, j), nil), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if a := g.asker(token)(t, path+"?resourceVersion="+made.ResourceVersion, accept); a.code != http.StatusOK {
				t.Errorf("%s as %s: %d %s", path, accept, a.code, a.body)
			}
		}
	}
}
