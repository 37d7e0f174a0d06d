package apitest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discover answers in the aggregated form, if the client knows it and the API server does, or else
// in the form before that.
func (a *API) discover(w http.ResponseWriter, r *http.Request) {
	list := a.aggregated(strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == "/api")
	if strings.HasPrefix(r.URL.Path, "/apis") {
		for _, name := range slices.Sorted(maps.Keys(a.Aggregated)) {
			list.Items = append(list.Items, a.Aggregated[name].aggregated(false).Items...)
		}
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	isRoot := len(path) == 1
	switch {
	case isRoot && !a.Old && strings.Contains(r.Header.Get("Accept"), aggregated):
		w.Header().Set("Content-Type", aggregated)
		reply(w, 200, encode(list))
	case isRoot && path[0] == "api":
		reply(w, 200, encode(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}))
	case isRoot:
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, g := range list.Items {
			group := metav1.APIGroup{Name: g.Name}
			for _, v := range g.Versions {
				group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: g.Name + "/" + v.Version, Version: v.Version})
			}
			group.PreferredVersion = group.Versions[0]
			groups.Groups = append(groups.Groups, group)
		}
		reply(w, 200, encode(groups))
	default:
		resources := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: strings.Join(path[1:], "/")}
		for _, g := range list.Items {
			for _, v := range g.Versions {
				if strings.TrimPrefix(g.Name+"/"+v.Version, "/") != resources.GroupVersion {
					continue
				}
				for _, r := range v.Resources {
					one := metav1.APIResource{Name: r.Resource, Kind: r.ResponseKind.Kind, Namespaced: r.Scope == apidiscovery.ScopeNamespace, Verbs: r.Verbs}
					status := one
					status.Name, status.Verbs = r.Resource+"/status", r.Subresources[0].Verbs
					resources.APIResources = append(resources.APIResources, one, status)
				}
			}
		}
		reply(w, 200, encode(resources))
	}
}

// aggregated is what there is of the core group, or of all others. The versions of a group come in the order in which
// its kinds were given. The cluster prefers the first.
func (a *API) aggregated(core bool) apidiscovery.APIGroupDiscoveryList {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
	}
	for _, k := range a.kinds {
		if !k.served || (k.Group == "") != core {
			continue
		}
		g := slices.IndexFunc(list.Items, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == k.Group })
		if g < 0 {
			g = len(list.Items)
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: k.Group}})
		}
		group := &list.Items[g]
		v := slices.IndexFunc(group.Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == k.Version })
		if v < 0 {
			v = len(group.Versions)
			group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{Version: k.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
		}
		version := &group.Versions[v]
		if a.stale[k.Group] {
			version.Freshness = apidiscovery.DiscoveryFreshnessStale
			continue
		}
		verbs, scope := []string{"get"}, apidiscovery.ScopeCluster
		if k.Watchable || k.Measured {
			verbs = append(verbs, "list")
		}
		if k.Watchable {
			verbs = append(verbs, "watch")
		}
		if k.Namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		version.Resources = append(version.Resources, apidiscovery.APIResourceDiscovery{
			Resource:     k.Resource,
			ResponseKind: &metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind.Kind},
			Scope:        scope,
			Verbs:        verbs,
			Subresources: []apidiscovery.APISubresourceDiscovery{{Subresource: "status", Verbs: []string{"get"}}},
		})
	}
	return list
}

// services lists the APIServices: who serves which version of which group.
func (a *API) services(w http.ResponseWriter, _ *http.Request) {
	var items []string
	add := func(of *API, service string) {
		for _, g := range of.aggregated(false).Items {
			for _, v := range g.Versions {
				name := v.Version + "." + g.Name
				items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"uid":"uid of %s"},"spec":{"group":%q,"version":%q%s}}`, name, name, g.Name, v.Version, service))
			}
		}
	}
	add(a, "")
	for _, name := range slices.Sorted(maps.Keys(a.Aggregated)) {
		add(a.Aggregated[name], `,"service":{"namespace":"default","name":"aggregated"}`)
	}
	reply(w, 200, fmt.Sprintf(`{"kind":"APIServiceList","metadata":{"resourceVersion":"1"},"items":[%s]}`, strings.Join(items, ",")))
}
