package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A page is asked of another replica. That replica has the same version, or answers 410 with a token that goes on.
func TestPagesAcrossReplicas(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.kubectlObjects(t, "page-replicas")
	one, other := s.sharedGateway(t), s.startGateway(t, gatewayOptions{})
	other.waitReady(t)
	token := s.admin(t)
	pods := func(g *gateway, query string) (list, answer) {
		a := g.get(t, token, "/api/v1/namespaces/page-replicas/pods?"+query)
		var l list
		if err := json.Unmarshal([]byte(a.body), &l); err != nil {
			t.Fatal(err)
		}
		return l, a
	}
	label := func(value int) {
		s.kubectl(t, "", "label", "pod", "db", "-n", "page-replicas", "--overwrite", fmt.Sprint("n=", value))
	}
	random := seed(t)
	var first list
	eventually(t, "both have all", func() error {
		label(rand.New(rand.NewPCG(random.Uint64(), 1)).IntN(1 << 20))
		a, _ := pods(one, "limit=1")
		b, whole := pods(other, "")
		if len(b.Items) != 3 {
			return fmt.Errorf("%s", whole.body)
		}
		first = a
		// The other replica has this version once its own watch has reached it.
		if l, a := pods(other, "continue="+first.Metadata.Continue); a.code != http.StatusOK || len(l.Items) != 2 ||
			l.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	})
	before, _ := pods(other, "")
	label(0)
	eventually(t, "the other has the change", func() error {
		if now, _ := pods(other, ""); slices.EqualFunc(now.Items, before.Items, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			return fmt.Errorf("it has not")
		}
		return nil
	})
	_, gone := pods(other, "continue="+first.Metadata.Continue)
	gone.mustStatus(t, http.StatusGone, metav1.StatusReasonExpired, "continue parameter is too old")
	var status metav1.Status
	if err := json.Unmarshal([]byte(gone.body), &status); err != nil {
		t.Fatal(err)
	}
	if rest, a := pods(other, "continue="+status.Continue); a.code != http.StatusOK || len(rest.Items) != 2 {
		t.Errorf("the fresh token: %d %s", a.code, a.body)
	}
	// The replica that gave the token still has its version.
	if rest, a := pods(one, "continue="+first.Metadata.Continue); a.code != http.StatusOK || rest.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
		t.Errorf("%d %s", a.code, a.body)
	}
}
