package cluster

import (
	"net/http/httptest"
	"testing"
)

func TestVerbsAreThoseByWhichRequestsAreAuthorized(t *testing.T) {
	for address, want := range map[string]string{
		"GET /api/v1/pods":                         "list",
		"GET /api/v1/pods?watch=true":              "watch",
		"GET /api/v1/namespaces":                   "list",
		"GET /api/v1/namespaces/kube-system":       "get",
		"GET /api/v1/namespaces/n/pods":            "list",
		"GET /api/v1/namespaces/n/pods/p":          "get",
		"GET /api/v1/namespaces/n/pods/p/log":      "get",
		"GET /apis/batch/v1/jobs?limit=500":        "list",
		"GET /apis/batch/v1/namespaces/n/jobs/j":   "get",
		"GET /k8s/clusters/c-1/apis/batch/v1/jobs": "list",
		"GET /apis":          "get",
		"GET /apis/batch/v1": "get",
		"GET /api/v1":        "get",
		"GET /livez":         "get",
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews":  "create",
		"PATCH /api/v1/namespaces/kubecast/configmaps/revocations": "patch",
	} {
		var method, path string
		for i := range address {
			if address[i] == ' ' {
				method, path = address[:i], address[i+1:]
			}
		}
		if got := verbOf(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s is a %s", address, got)
		}
	}
}
