package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An operator revokes a user with kubectl, as docs/operations.md says. Both replicas refuse the session and the
// token, and end the streams that run with them. On the ConfigMap, they have only the permissions of
// the chart.
func TestRevokedIsRefusedByEveryReplica(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "revocations")
	s.kubectl(t, "", "create", "serviceaccount", "gateway-kubecast", "-n", "revocations")
	kubeconfig := s.serviceAccountKubeconfig(t, "revocations", "gateway-kubecast")
	key := filepath.Join(t.TempDir(), "cookie.key")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600); err != nil {
		t.Fatal(err)
	}
	options := gatewayOptions{
		kubeconfig: kubeconfig,
		auth:       fmt.Sprintf("  cookieKeyFile: %q\n  revocations: {configMap: revocations/revoked}\n", key),
		config:     "authorizer: {mode: policy, policies: ['true']}\ncache: {preload: []}\n",
	}
	one, two := s.startGateway(t, options), s.startGateway(t, options)
	token, err := s.token("jane", "revocations")
	if err != nil {
		t.Fatal(err)
	}
	// Until they may read what was revoked, the gateways refuse all requests.
	for _, g := range []*gateway{one, two} {
		if a := g.get(t, token, "/auth/me"); a.code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", a.code, a.body)
		}
		if code, body := g.readyz(); code != http.StatusServiceUnavailable || !strings.Contains(body, "revoked") {
			t.Errorf("%d %s", code, body)
		}
	}
	s.applyRendered(t, "login", "revocations", func(o *unstructured.Unstructured) bool {
		return o.GetName() == "revoked" || o.GetName() == "gateway-kubecast-revocations"
	})
	s.kubectl(t, "", "create", "clusterrolebinding", "revocations-view", "--clusterrole=view", "--serviceaccount=revocations:gateway-kubecast")
	t.Cleanup(func() { s.kubectl(t, "", "delete", "clusterrolebinding", "revocations-view", "--wait=false") })
	for _, g := range []*gateway{one, two} {
		g.waitReady(t)
	}
	a, err := fetch(http.MethodPost, one.url+"/auth/session", bearer(token))
	if err != nil || a.code != http.StatusOK {
		t.Fatalf("%v: %d %s", err, a.code, a.body)
	}
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	session := http.Header{"Cookie": {cookie}}
	var ending []func() time.Time
	for _, g := range []*gateway{one, two} {
		for _, header := range []http.Header{bearer(token), session} {
			stream := openAs(t, g, "", "/stream?pods=/api/v1/namespaces/revocations/pods", header)
			stream.find(t, "pods.synced")
			ending = append(ending, func() time.Time {
				if reason := stream.find(t, "goodbye").reason(t); reason != "revoked" {
					t.Errorf("goodbye %s", reason)
				}
				return time.Now()
			})
		}
	}
	revoked := time.Now()
	s.kubectl(t, "", "-n", "revocations", "patch", "configmap", "revoked", "--type", "merge",
		"-p", fmt.Sprintf(`{"data":{"jane-1":"{\"username\":\"jane\",\"before\":%s}"}}`, `\"`+revoked.UTC().Add(time.Second).Format(time.RFC3339)+`\"`))
	written := time.Now()
	for _, end := range ending {
		if late := end().Sub(written); late > 15*time.Second { // on an idle machine it takes a second
			t.Errorf("a stream ends %v after the entry was written", late)
		}
	}
	for name, g := range map[string]*gateway{"one": one, "two": two} {
		for what, header := range map[string]http.Header{"token": bearer(token), "session": session} {
			if a, err := fetch(http.MethodGet, g.url+"/auth/me", header); err != nil || a.code != http.StatusUnauthorized {
				t.Errorf("%s takes the %s: %v %d %s", name, what, err, a.code, a.body)
			}
		}
	}
	// A revoked user may sign in again. The gateway still knows the revocation after a restart.
	one.kill()
	one.restart(t)
	one.waitReady(t)
	if a := one.get(t, token, "/auth/me"); a.code != http.StatusUnauthorized {
		t.Errorf("after a restart: %d", a.code)
	}
	s.kubectl(t, "", "-n", "revocations", "patch", "configmap", "revoked", "--type", "merge", "-p", `{"data":{"jane-1":null}}`)
	for _, g := range []*gateway{one, two} {
		eventually(t, "the entry is taken out", func() error {
			if a := g.get(t, token, "/auth/me"); a.code != http.StatusOK {
				return errors.New(a.body)
			}
			return nil
		})
	}
	for _, forbidden := range []string{"patch configmap/other", "delete configmap/revoked", "create configmaps", "update configmap/revoked"} {
		verb, what, _ := strings.Cut(forbidden, " ")
		out, err := s.tryKubectl("auth", "can-i", verb, what, "-n", "revocations", "--as", "system:serviceaccount:revocations:gateway-kubecast")
		if failure(out, err) == "" || strings.HasPrefix(out, "yes") {
			t.Errorf("the gateway may %s: %s %v", forbidden, out, err)
		}
	}
}
