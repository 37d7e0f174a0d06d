//go:build linux

package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
)

const (
	objectSize = 2048 // of each object's JSON, in bytes
	namespaces = 1000 // one of each team
	// objects are ConfigMaps, the first of each namespace before the second of any. They are so many that none changes twice
	// while a kind is listed anew, since a list has only the newest version of each.
	objects = 20 * namespaces
)

const rbac = "rbac.authorization.k8s.io"

// kinds are what the API server has. Whoever is of the group platform may see all ConfigMaps, and whoever is of a team's
// group those of the team's namespace.
func kinds() []apiserver.Kind {
	role := func(number int, version uint64, _ mark.Mark) []byte {
		name, rules := "viewer", `[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]`
		if number == 1 {
			name, rules = "gateway", `[{"apiGroups":["*"],"resources":["*"],"verbs":["get","list","watch"]},{"nonResourceURLs":["*"],"verbs":["get"]}]`
		}
		return fmt.Appendf(nil, `{"kind":"ClusterRole","apiVersion":"%s/v1","metadata":{"name":%q,"uid":"role-%d","resourceVersion":"%d"},"rules":%s}`,
			rbac, name, number, version, rules)
	}
	binding := func(kind, metadata, role, subject string, number int, version uint64) []byte {
		return fmt.Appendf(nil, `{"kind":%q,"apiVersion":"%s/v1","metadata":{%s,"uid":"binding-%s-%d","resourceVersion":"%d"},`+
			`"roleRef":{"apiGroup":%q,"kind":"ClusterRole","name":%q},"subjects":[%s]}`,
			kind, rbac, metadata, kind, number, version, rbac, role, subject)
	}
	whole := func(number int, version uint64, _ mark.Mark) []byte {
		if number == 1 {
			return binding("ClusterRoleBinding", `"name":"gateways"`, "gateway", `{"apiGroup":"`+rbac+`","kind":"User","name":"`+edgeUser+`"}`, number, version)
		}
		return binding("ClusterRoleBinding", `"name":"platform"`, "viewer", `{"apiGroup":"`+rbac+`","kind":"Group","name":"platform"}`, number, version)
	}
	team := func(number int, version uint64, _ mark.Mark) []byte {
		return binding("RoleBinding", `"name":"members","namespace":"`+teamOf(number)+`"`, "viewer",
			`{"apiGroup":"`+rbac+`","kind":"Group","name":"`+teamOf(number)+`"}`, number, version)
	}
	namespace := func(number int, version uint64, _ mark.Mark) []byte {
		name := "kube-system"
		if number > 0 {
			name = teamOf(number - 1)
		}
		return fmt.Appendf(nil, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":%q,"uid":"namespace-%d","resourceVersion":"%d"}}`, name, number, version)
	}
	return []apiserver.Kind{
		{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Objects: objects, Render: object},
		{Version: "v1", Resource: "namespaces", Kind: "Namespace", Whole: true, Objects: 1 + namespaces, Render: namespace},
		{Group: rbac, Version: "v1", Resource: "clusterroles", Kind: "ClusterRole", Whole: true, Objects: 2, Render: role},
		{Group: rbac, Version: "v1", Resource: "clusterrolebindings", Kind: "ClusterRoleBinding", Whole: true, Objects: 2, Render: whole},
		{Group: rbac, Version: "v1", Resource: "roles", Kind: "Role"},
		{Group: rbac, Version: "v1", Resource: "rolebindings", Kind: "RoleBinding", Objects: namespaces, Render: team},
	}
}

func teamOf(number int) string { return fmt.Sprintf("team-%03d", number%namespaces) }

// object renders the ConfigMap of a number as it is after an event. All are equally large.
func object(number int, version uint64, m mark.Mark) []byte {
	b := make([]byte, 0, objectSize)
	b = fmt.Appendf(b, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings-%05d","namespace":%q,`+
		`"uid":"6f1a3c52-0000-4000-8000-%012d","resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z",`+
		`"annotations":{"kubecast.io/bench":"`, number, teamOf(number), number, version)
	b = m.Append(b)
	b = append(b, `"}},"data":{"payload":"`...)
	b = append(b, bytes.Repeat([]byte("kubecast"), objectSize/8)[:objectSize-len(b)-len(`"}}`)]...)
	return append(b, `"}}`...)
}

// apiServer counts its watches, and can go away for a while, with all that it holds kept, as that of an API server is in etcd.
type apiServer struct {
	*apiserver.Server
	address string
	server  *http.Server
	watches atomic.Int64
}

func newAPIServer() *apiServer {
	return &apiServer{Server: apiserver.New(kinds()...), address: "127.0.0.1:0"}
}

// Start listens, and returns the address.
func (s *apiServer) Start(_ process.None, address *string) error {
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	s.address = listener.Addr().String()
	*address = s.address
	s.server = &http.Server{Handler: s}
	go func() { _ = s.server.Serve(listener) }() // until Restart, or for as long as the process lasts
	return nil
}

// Restart ends all connections, and listens again after a time.
func (s *apiServer) Restart(away time.Duration, _ *process.None) error {
	if err := s.server.Close(); err != nil {
		return err
	}
	time.Sleep(away)
	return s.Start(false, new(string))
}

// Watches returns how many watches there are.
func (s *apiServer) Watches(_ process.None, count *int64) error {
	*count = s.watches.Load()
	return nil
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("watch") {
		s.watches.Add(1)
		defer s.watches.Add(-1)
	}
	s.Server.ServeHTTP(w, r)
}
