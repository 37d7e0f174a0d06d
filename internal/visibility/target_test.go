package visibility

import (
	"strings"
	"testing"
)

func TestPathsNameResources(t *testing.T) {
	for path, want := range map[string]Target{
		"/api/v1/pods":                                                {Version: "v1", Resource: "pods"},
		"/api/v1/pods/":                                               {Version: "v1", Resource: "pods"},
		"/api/v1/namespaces":                                          {Version: "v1", Resource: "namespaces"},
		"/api/v1/namespaces/team-a":                                   {Version: "v1", Resource: "namespaces", Name: "team-a"},
		"/api/v1/namespaces/team-a/pods":                              {Version: "v1", Resource: "pods", Namespace: "team-a"},
		"/api/v1/namespaces/team-a/pods/web":                          {Version: "v1", Resource: "pods", Namespace: "team-a", Name: "web"},
		"/api/v1/namespaces/namespaces/pods":                          {Version: "v1", Resource: "pods", Namespace: "namespaces"},
		"/api/v1/nodes/node-1":                                        {Version: "v1", Resource: "nodes", Name: "node-1"},
		"/apis/batch/v1/jobs":                                         {Group: "batch", Version: "v1", Resource: "jobs"},
		"/apis/batch/v1/namespaces/a/jobs/b":                          {Group: "batch", Version: "v1", Resource: "jobs", Namespace: "a", Name: "b"},
		"/apis/example.org/v1beta1/widgets":                           {Group: "example.org", Version: "v1beta1", Resource: "widgets"},
		"/clusters/east/api/v1/pods":                                  {Cluster: "east", Version: "v1", Resource: "pods"},
		"/clusters/clusters/apis/batch/v1/jobs/x":                     {Cluster: "clusters", Group: "batch", Version: "v1", Resource: "jobs", Name: "x"},
		"/clusters/east/apis/batch/v1/namespaces/clusters/jobs/api":   {Cluster: "east", Group: "batch", Version: "v1", Resource: "jobs", Namespace: "clusters", Name: "api"},
		"/clusters/api/api/api/api":                                   {Cluster: "api", Version: "api", Resource: "api"},
		"/api/v1/namespaces/../pods":                                  {Version: "v1", Resource: "pods", Namespace: ".."},
		"/api/v1/namespaces/a b/pods":                                 {Version: "v1", Resource: "pods", Namespace: "a b"},
		"/api/v1/namespaces/team-a/status":                            {Version: "v1", Resource: "status", Namespace: "team-a"}, // no cluster serves it
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node": {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Name: "system:node"},
	} {
		if got, ok := Parse(path); !ok || got != want {
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
		if got, ok := Parse(path); ok {
			t.Errorf("%s is taken for %+v", path, got)
		}
	}
}

func TestPathsNameLogs(t *testing.T) {
	log := Target{Version: "v1", Resource: "pods", Namespace: "a", Name: "b", Subresource: "log"}
	east := log
	east.Cluster = "east"
	for path, want := range map[string]Target{
		"/api/v1/namespaces/a/pods/b/log":                  log,
		"/api/v1/namespaces/a/pods/b/log/":                 log,
		"/clusters/east/api/v1/namespaces/a/pods/b/log":    east,
		"/api/v1/namespaces/a/pods/b":                      {},
		"/api/v1/namespaces/a/pods/log":                    {},
		"/api/v1/pods/b/log":                               {},
		"/api/v1/namespaces/a/services/b/log":              {},
		"/api/v2/namespaces/a/pods/b/log":                  {},
		"/apis/batch/v1/namespaces/a/pods/b/log":           {},
		"/api/v1/namespaces/a/pods/b/exec":                 {},
		"/api/v1/namespaces/../pods/b/log":                 {},
		"/api/v1/namespaces/a/pods/../log":                 {},
		"/api/v1/namespaces/a/pods/b%2f..%2fc/log":         {},
		"/api/v1/namespaces/a%2fpods%2fx%2flog/pods/b/log": {},
	} {
		if got, ok := ParseLog(path); ok != (want != Target{}) || got != want {
			t.Errorf("%s: %+v, %t", path, got, ok)
		}
	}
}

// The question to the authorizer and the answer are made from the same target. So each part of the path must be in
// exactly one of its fields.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{
		"/api/v1/pods", "/clusters/east/apis/batch/v1/namespaces/a/jobs/b", "/api/v1/namespaces/team-a", "/api//v1", "\x00", "/api/v1/namespaces/..%2f/pods",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, ok := Parse(path)
		if !ok {
			return
		}
		var b strings.Builder
		if got.Cluster != "" {
			b.WriteString("/clusters/" + got.Cluster)
		}
		if got.Group != "" {
			b.WriteString("/apis/" + got.Group)
		} else {
			b.WriteString("/api")
		}
		b.WriteString("/" + got.Version)
		if got.Namespace != "" {
			b.WriteString("/namespaces/" + got.Namespace)
		}
		b.WriteString("/" + got.Resource)
		if got.Name != "" {
			b.WriteString("/" + got.Name)
		}
		if want := "/" + strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"); b.String() != want {
			t.Errorf("%q is read as %+v, which is %q", path, got, b.String())
		}
	})
}
