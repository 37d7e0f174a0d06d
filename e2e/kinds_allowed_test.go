package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Kinds that may not be served do not exist for kubectl or any other client, whatever its user may read.
func TestKindsThatMayNotBeServedDoNotExist(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.startGateway(t, gatewayOptions{config: "kinds: {allow: [pods, configmaps, '*.batch', '*.apps'], deny: [cronjobs.batch], atMost: 3}\n"})
	g.waitReady(t)
	token := s.admin(t)
	for path, want := range map[string]int{
		"/api/v1/configmaps?limit=1": http.StatusOK, "/apis/batch/v1/jobs?limit=1": http.StatusOK, "/apis/batch/v1/cronjobs": http.StatusNotFound,
		"/api/v1/secrets": http.StatusNotFound, "/api/v1/nodes": http.StatusNotFound, "/api/v1/namespaces/default": http.StatusNotFound,
		"/stream?s=/api/v1/secrets": http.StatusNotFound, "/apis/rbac.authorization.k8s.io/v1/clusterroles": http.StatusNotFound,
	} {
		header := bearer(token)
		if strings.HasPrefix(path, "/stream") {
			header.Set("Accept", "text/event-stream")
		}
		if a, err := fetchBy(g.client, http.MethodGet, g.url+path, header); err != nil || a.code != want {
			t.Errorf("%s: %v %d %s", path, err, a.code, a.body)
		}
	}
	for path, kinds := range map[string][2]string{
		"/api/v1": {`"pods"`, `"secrets"`}, "/apis/batch/v1": {`"jobs"`, `"cronjobs"`}, "/apis/rbac.authorization.k8s.io/v1": {`"APIResourceList"`, `"roles"`},
	} {
		if a := g.get(t, token, path); a.code != http.StatusOK || !strings.Contains(a.body, kinds[0]) || strings.Contains(a.body, kinds[1]) {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	// Pods and jobs are preloaded, so there is room for one more kind at a time. An idle one makes room for the next.
	watched := openAs(t, g, token, "/api/v1/configmaps", nil)
	watched.find(t, "synced")
	eventually(t, "there is no room", func() error {
		if a := g.get(t, token, "/apis/apps/v1/deployments?limit=1"); a.code != http.StatusTooManyRequests {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	})
	watched.close()
	eventually(t, "what is idle makes room", func() error {
		if a := g.get(t, token, "/apis/apps/v1/deployments?limit=1"); a.code != http.StatusOK {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	})
}
