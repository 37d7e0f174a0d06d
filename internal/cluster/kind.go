package cluster

import "strings"

// Kind is one resource in one version, as the cluster serves it.
type Kind struct {
	Group      string // "" for the core group
	Version    string // v1
	Resource   string // pods: the plural, as in paths
	Kind       string // Pod
	Namespaced bool
	Watchable  bool // can be listed and watched, and so cached
	Measured   bool // is of metrics.k8s.io: can be listed, but not watched; see Measurements
}

// APIVersion is group/version, or the version alone for the core group.
func (k Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// isOf reports whether an apiVersion is the kind's.
func (k Kind) isOf(apiVersion string) bool {
	if k.Group == "" {
		return apiVersion == k.Version
	}
	group, version, _ := strings.Cut(apiVersion, "/")
	return group == k.Group && version == k.Version
}

// Head is the beginning of an object of this kind as API servers write it, custom resources
// excepted, whose members come by their names: {"kind":"Pod","apiVersion":"v1",
func (k Kind) Head() string { return `{"kind":"` + k.Kind + `","apiVersion":"` + k.APIVersion() + `",` }

// String is the resource with its group, as in the configuration: pods, jobs.batch.
func (k Kind) String() string {
	if k.Group == "" {
		return k.Resource
	}
	return k.Resource + "." + k.Group
}

// Path is the resource's path at the API server, over all namespaces.
func (k Kind) Path() string {
	if k.Group == "" {
		return "/api/" + k.Version + "/" + k.Resource
	}
	return "/apis/" + k.Group + "/" + k.Version + "/" + k.Resource
}

// pathIn is the resource's path in one namespace.
func (k Kind) pathIn(namespace string) string {
	path := k.Path()
	return path[:len(path)-len(k.Resource)] + "namespaces/" + namespace + "/" + k.Resource
}

func (k Kind) isSecret() bool { return k.Group == "" && k.Resource == "secrets" }
