package faults

import (
	"context"
	"net/http"
	"testing"

	"github.com/kubecast/kubecast/e2e/faultproxy"
)

// cluster lets the API server fail for two gateways, of which one asks it for each permission.
func cluster(t *testing.T, s *stage) *server {
	proxy := faultproxy.Start(t, s.cluster)
	kubeconfig := proxy.Kubeconfig(t, s.cluster)
	g := s.gateway(t, options{kubeconfig: kubeconfig}).start()
	asks := s.gateway(t, options{kubeconfig: kubeconfig, config: "authorizer: {mode: sar, cacheAllow: 1s, cacheDeny: 1s}\n"}).start()
	g.ready()
	asks.ready()
	p := scrapeGateways(t, g, asks)
	p.sees("sum(kubecast_ready) == 2")
	user := s.viewer(t, "asks")
	asks.mustGet(user, "/api/v1/pods", http.StatusOK)
	p.isSilent("KubecastCacheStale", "KubecastPermissionsUnconfirmed", "KubecastPermissionsMirrorOld", "KubecastNotReady",
		"KubecastPermissionsUndecided", "KubecastUpstreamRefuses")

	_, allowBindings := proxy.Fail(t, "", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", http.StatusInternalServerError)
	_, allowReviews := proxy.Fail(t, "", "/apis/authorization.k8s.io", http.StatusServiceUnavailable)
	_, allowPods := proxy.Fail(t, "", "/api/v1/pods", http.StatusForbidden)
	stop := often(t, 4, func(context.Context) { _, _, _ = asks.get("http://"+asks.listen, user, "/api/v1/pods") })
	p.fires("KubecastCacheStale", "pods is stale")
	p.showsPanel("cluster", "Stale kinds")
	p.fires("KubecastPermissionsUndecided", "cannot be decided")
	p.fires("KubecastUpstreamRefuses", "503")
	allowPods()
	p.ends("KubecastCacheStale")
	allowReviews()
	stop()
	p.ends("KubecastPermissionsUndecided")
	p.fires("KubecastPermissionsUnconfirmed", "could not be confirmed")
	p.fires("KubecastPermissionsMirrorOld", "clusterrolebindings is lost")
	p.fires("KubecastNotReady", g.ops)
	allowBindings()
	for _, alert := range []string{"KubecastPermissionsUnconfirmed", "KubecastPermissionsMirrorOld", "KubecastNotReady", "KubecastUpstreamRefuses"} {
		p.ends(alert)
	}
	return p
}
