//go:build linux

package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// APIServer is the source behind the gateway. It has ConfigMaps, some for each of the good users, and large pods, by
// which the hostile user can make requests expensive.
type APIServer struct{ *apiserver.Server }

const (
	mapsOfUser = 10
	manyPods   = 1000
	mapSize    = 2 << 10
	podSize    = 20 << 10
	podChanges = 20 // per second
)

// The kinds, by their index.
const configMaps, pods = 0, 1

func newAPIServer() *APIServer {
	s := apiserver.New(
		apiserver.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Objects: users * mapsOfUser, Render: configMap},
		apiserver.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Objects: manyPods, Render: pod},
	)
	s.Source = source.New(func(m mark.Mark) {
		number := int(m.Seq % users)
		s.Modify(configMaps, number*mapsOfUser+int(m.Seq/users)%mapsOfUser, m)
	})
	return &APIServer{s}
}

// Start listens, and returns the address. From then on pods change.
func (a *APIServer) Start(none process.None, address *string) error {
	if err := a.Server.Start(none, address); err != nil {
		return err
	}
	go func() { // lasts as long as the process
		for number := range time.Tick(time.Second / podChanges) {
			a.Modify(pods, int(number.UnixMilli()/(1000/podChanges)%manyPods), mark.Mark{})
		}
	}()
	return nil
}

func namespaceOf(user int) string { return fmt.Sprintf("user-%03d", user) }

func configMap(number int, version uint64, m mark.Mark) []byte {
	b := metadata("ConfigMap", namespaceOf(number/mapsOfUser), "settings", number, version, m)
	return pad(append(b, `"data":{"payload":"`...), mapSize, `"}}`)
}

// pod is a pod of many fields.
func pod(number int, version uint64, m mark.Mark) []byte {
	b := metadata("Pod", namespaceOf(number%users), "worker", number, version, m)
	b = fmt.Appendf(b, `"spec":{"nodeName":"node-%d","priority":%d,"containers":[{"name":"main","env":[`, number%50, number*7919%1000)
	for i := range podSize / 100 {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":"PARAMETER_%03d","value":"s3://models/team/run-%05d/shard-%03d"}`, i, number, i)
	}
	b = append(b, `]}]},"status":{"phase":"Running","message":"`...)
	return pad(b, podSize, `"}}`)
}

func metadata(kind, namespace, name string, number int, version uint64, m mark.Mark) []byte {
	b := fmt.Appendf(nil, `{"kind":%q,"apiVersion":"v1","metadata":{"name":"%s-%05d","namespace":%q,"uid":"%s-0000-4000-8000-%012d",`+
		`"resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"bench"},"annotations":{"kubecast.io/bench":"`,
		kind, name, number, namespace, strings.ToLower(kind), number, version)
	return append(m.Append(b), `"}},`...)
}

func pad(b []byte, size int, end string) []byte {
	if missing := size - len(b) - len(end); missing > 0 {
		b = append(b, bytes.Repeat([]byte("k"), missing)...)
	}
	return append(b, end...)
}
