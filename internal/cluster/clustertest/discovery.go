package clustertest

import (
	"encoding/json"
	"net/http"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// discover answers with the aggregated discovery document of the core group, or of all others. The versions of a
// group come in the order in which its kinds were given. The cluster prefers the first.
func (a *API) discover(w http.ResponseWriter, core bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
	}
	for _, kind := range a.kinds {
		if (kind.Group == "") != core {
			continue
		}
		g := slices.IndexFunc(list.Items, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == kind.Group })
		if g < 0 {
			g = len(list.Items)
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: kind.Group}})
		}
		group := &list.Items[g]
		v := slices.IndexFunc(group.Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == kind.Version })
		if v < 0 {
			v = len(group.Versions)
			group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{Version: kind.Version})
		}
		version := &group.Versions[v]
		version.Freshness = apidiscovery.DiscoveryFreshnessCurrent
		if a.stale[kind.Group] {
			version.Freshness = apidiscovery.DiscoveryFreshnessStale
			continue
		}
		verbs, scope := []string{"get"}, apidiscovery.ScopeCluster
		if kind.Watchable {
			verbs = append(verbs, "list", "watch")
		}
		if kind.Namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		version.Resources = append(version.Resources, apidiscovery.APIResourceDiscovery{
			Resource:     kind.Resource,
			ResponseKind: &metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind},
			Scope:        scope,
			Verbs:        verbs,
			Subresources: []apidiscovery.APISubresourceDiscovery{{Subresource: "status", Verbs: []string{"get"}}},
		})
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_ = json.NewEncoder(w).Encode(list)
}
