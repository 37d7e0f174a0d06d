package livequery

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// BenchmarkChange is what a change costs each of the queries about many pods, with the snapshot that is made after so many
// changes. Of a change all queries see both states, and a third of them select it.
func BenchmarkChange(b *testing.B) {
	b.Run("20000 pods", func(b *testing.B) { change(b, 20_000, 50, 2500, 1, 8192) })
	b.Run("a million pods, all kept, ten a snapshot", func(b *testing.B) { change(b, 1_000_000, 5, 300, 10, 1_000_000) })
	b.Run("a million pods, ten a snapshot", func(b *testing.B) { change(b, 1_000_000, 5, 300, 10, 8192) })
}

func change(b *testing.B, pods, queries, size, each, keep int) {
	random := rand.New(rand.NewPCG(1, 1))
	pod := func(i, version int) *cluster.Object {
		o, err := cluster.NewObject(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-%x-%d","namespace":"team-%d","uid":"%x","resourceVersion":"%d",`+
			`"creationTimestamp":"%s","labels":{"app":"app-%d"}},"spec":{"nodeName":"node-%d","pad":"%s"},"status":{"phase":"%s","startTime":"%s"}}`,
			i*2654435761, i, i%40, i, version, time.Unix(1.7e9+int64(i*37), 0).UTC().Format(time.RFC3339), i%3, random.IntN(500), strings.Repeat("x", size),
			[]string{"Running", "Pending", "Failed", "Succeeded"}[random.IntN(4)], time.Unix(1.7e9+int64(random.IntN(1e6)), 0).UTC().Format(time.RFC3339)))
		if err != nil {
			b.Fatal(err)
		}
		return o
	}
	all := make([]*cluster.Object, pods)
	for i := range all {
		all[i] = pod(i, i+1)
	}
	registry := New(Options{Queries: queries, Bytes: 1 << 30, Linger: time.Second, Processors: budget.NewQueue(2, 0, 0), Registerer: prometheus.NewRegistry()})
	var asked []*query
	orders := []string{"-metadata.creationTimestamp", "status.phase,metadata.name", "-status.startTime", "spec.nodeName", ""}
	for i := range queries {
		order, err := cache.Paths{}.Order(orders[i%len(orders)])
		if err != nil {
			b.Fatal(err)
		}
		selector, err := cache.Paths{}.Selector(fmt.Sprintf("app=app-%d", i/5%3), "")
		if err != nil {
			b.Fatal(err)
		}
		q := newQuery(Query{Target: visibility.VisibleTarget{Target: visibility.Target{Resource: "pods"}}, Selector: selector, Order: order}, nil, keep, nil)
		q.ownership.Store(&ownership{charge: registry.memory.Enter("ann", time.Hour, func() {})})
		q.ranking = order.Ranking(func(yield func(*cluster.Object) bool) {
			for _, o := range all {
				if selector.Matches(o) && !yield(o) {
					return
				}
			}
		}, keep, nil)
		asked = append(asked, q)
	}
	version := pods
	b.ReportAllocs()
	for b.Loop() {
		version++
		i := random.IntN(pods)
		old, now := all[i], pod(i, version)
		all[i] = now
		event := stream.EventAt(uint64(version), stream.Change[*cluster.Object]{Type: stream.Modified, Object: now, Old: old})
		for _, q := range asked {
			q.apply(event)
			if version%each == 0 {
				q.show()
			}
		}
	}
	held := int64(0)
	for _, q := range asked {
		held += q.bytes.Load()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(queries), "ns/change·query")
	b.ReportMetric(float64(held)/float64(queries)/float64(pods/3), "B/object")
}
