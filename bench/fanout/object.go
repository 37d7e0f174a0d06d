//go:build linux

package main

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/mark"
)

// objectSize is the size of each object's JSON, in bytes.
const objectSize = 2048

// apiObjects is how many ConfigMaps there are.
const apiObjects = 2000

var configMaps = apiserver.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Objects: apiObjects, Render: object}

// object renders the ConfigMap of a number as it is after an event, in the form that the gateway sends. All are
// equally large.
func object(number int, version uint64, m mark.Mark) []byte {
	b := make([]byte, 0, objectSize)
	b = fmt.Appendf(b, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings-%05d","namespace":"%s",`+
		`"uid":"6f1a3c52-0000-4000-8000-%012d","resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z",`+
		`"labels":{"app":"bench"},"annotations":{"kubecast.io/bench":"`, number, namespaceOf(number), number, version)
	b = m.Append(b)
	b = append(b, `"}},"data":{"payload":"`...)
	b = append(b, bytes.Repeat([]byte("kubecast"), objectSize/8)[:objectSize-len(b)-len(`"}}`)]...)
	return append(b, `"}}`...)
}

func namespaceOf(number int) string { return "team-" + strconv.Itoa(number%10) }

// eventID is an event id as long as those of the gateway.
func eventID(version uint64) string { return "aaaabbbb." + strconv.FormatUint(version, 10) }
