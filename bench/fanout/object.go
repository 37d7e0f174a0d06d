//go:build linux

package main

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/kubecast/kubecast/bench/internal/mark"
)

// objectSize is how large each object is, as JSON.
const objectSize = 2048

// firstVersion is the resourceVersion before the first event.
const firstVersion = 1000

// object renders the ConfigMap of a number as an event leaves it, in the form that the gateway sends. It is as large
// as every other.
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

// eventID is as long as one of the gateway's.
func eventID(version uint64) string { return "aaaabbbb." + strconv.FormatUint(version, 10) }
