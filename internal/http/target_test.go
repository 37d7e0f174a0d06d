package http

import (
	"strings"
	"testing"
)

func TestPathsNameResources(t *testing.T) {
	for path, want := range map[string]target{
		"/api/v1/pods":                                                {version: "v1", resource: "pods"},
		"/api/v1/pods/":                                               {version: "v1", resource: "pods"},
		"/api/v1/namespaces":                                          {version: "v1", resource: "namespaces"},
		"/api/v1/namespaces/team-a":                                   {version: "v1", resource: "namespaces", name: "team-a"},
		"/api/v1/namespaces/team-a/pods":                              {version: "v1", resource: "pods", namespace: "team-a"},
		"/api/v1/namespaces/team-a/pods/web":                          {version: "v1", resource: "pods", namespace: "team-a", name: "web"},
		"/api/v1/namespaces/namespaces/pods":                          {version: "v1", resource: "pods", namespace: "namespaces"},
		"/api/v1/nodes/node-1":                                        {version: "v1", resource: "nodes", name: "node-1"},
		"/apis/batch/v1/jobs":                                         {group: "batch", version: "v1", resource: "jobs"},
		"/apis/batch/v1/namespaces/a/jobs/b":                          {group: "batch", version: "v1", resource: "jobs", namespace: "a", name: "b"},
		"/apis/example.org/v1beta1/widgets":                           {group: "example.org", version: "v1beta1", resource: "widgets"},
		"/clusters/east/api/v1/pods":                                  {cluster: "east", version: "v1", resource: "pods"},
		"/clusters/clusters/apis/batch/v1/jobs/x":                     {cluster: "clusters", group: "batch", version: "v1", resource: "jobs", name: "x"},
		"/clusters/east/apis/batch/v1/namespaces/clusters/jobs/api":   {cluster: "east", group: "batch", version: "v1", resource: "jobs", namespace: "clusters", name: "api"},
		"/clusters/api/api/api/api":                                   {cluster: "api", version: "api", resource: "api"},
		"/api/v1/namespaces/../pods":                                  {version: "v1", resource: "pods", namespace: ".."},
		"/api/v1/namespaces/a b/pods":                                 {version: "v1", resource: "pods", namespace: "a b"},
		"/api/v1/namespaces/team-a/status":                            {version: "v1", resource: "status", namespace: "team-a"}, // which no cluster serves
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node": {group: "rbac.authorization.k8s.io", version: "v1", resource: "clusterroles", name: "system:node"},
	} {
		if got, ok := parseTarget(path); !ok || got != want {
			t.Errorf("%s: %+v, %v", path, got, ok)
		}
	}
	for _, path := range []string{
		"", "/", "//", "/api", "/api/", "/api/v1", "/apis", "/apis/batch", "/apis/batch/v1", "/version", "/stream",
		"/clusters", "/clusters/east", "/clusters/east/api/v1", "/clusters//api/v1/pods", "/clusters/east/stream",
		"/api/v1/namespaces/team-a/pods/web/log", "/api/v1/namespaces/team-a/pods/web/exec", "/api/v1/nodes/n/proxy/metrics",
		"/api/v1//pods", "//api/v1/pods", "/api//pods", "/api/v1/namespaces//pods", "/api/v1/namespaces/team-a/pods//",
		"/openapi/v3", "/API/v1/pods", "/clusters/a/clusters/b/api/v1/pods",
	} {
		if got, ok := parseTarget(path); ok {
			t.Errorf("%s is taken for %+v", path, got)
		}
	}
}

// FuzzParseTarget: what is authorized and what is served are made of the same target, so each part of the path must be
// in exactly one of its fields.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{
		"/api/v1/pods", "/clusters/east/apis/batch/v1/namespaces/a/jobs/b", "/api/v1/namespaces/team-a", "/api//v1", "\x00", "/api/v1/namespaces/..%2f/pods",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, ok := parseTarget(path)
		if !ok {
			return
		}
		var b strings.Builder
		if got.cluster != "" {
			b.WriteString("/clusters/" + got.cluster)
		}
		if got.group != "" {
			b.WriteString("/apis/" + got.group)
		} else {
			b.WriteString("/api")
		}
		b.WriteString("/" + got.version)
		if got.namespace != "" {
			b.WriteString("/namespaces/" + got.namespace)
		}
		b.WriteString("/" + got.resource)
		if got.name != "" {
			b.WriteString("/" + got.name)
		}
		if want := "/" + strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"); b.String() != want {
			t.Errorf("%q is read as %+v, which is %q", path, got, b.String())
		}
	})
}
