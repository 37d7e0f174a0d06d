package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A list not older than a version is answered if the cluster has that version, whatever kind's
// change it is, and whether or not the API server keeps a watch cache of the kind, as of Events it
// does not.
func TestListsOfQuietKindsAreNotOlderThanOtherKindsChanges(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "quiet-kinds")
	g := s.startGateway(t, gatewayOptions{})
	g.waitReady(t)
	token := s.admin(t)
	const as = "application/json;g=meta.k8s.io;v=v1;as="
	for i, path := range []string{"/api/v1/namespaces/quiet-kinds/events", "/apis/events.k8s.io/v1/namespaces/quiet-kinds/events", "/api/v1/podtemplates"} {
		g.list(t, token, path)                // it is cached from here on
		s.eventComesAndGoes(t, "quiet-kinds") // a revision that deletes is asked for once more
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

// eventComesAndGoes makes an Event, and deletes it.
func (s *stage) eventComesAndGoes(t *testing.T, namespace string) {
	t.Helper()
	ctx, events := context.Background(), s.kube.CoreV1().Events(namespace)
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "passes"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "none"}}
	if _, err := events.Create(ctx, event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := events.Delete(ctx, event.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
