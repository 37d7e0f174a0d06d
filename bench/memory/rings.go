package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"text/tabwriter"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/stream"
)

const (
	ringsCommand = "measure-rings"
	podsOfRing   = 1000 // that change in turn
	statusOfPod  = 3000 // bytes, so that rings are full by their bytes, not by their events
	turnsOfRing  = 2    // how often a ring is filled: what it has evicted is garbage by then
)

// ringFigures are the measurements of some full rings.
type ringFigures struct {
	Held    int64  `json:"held"` // bytes by the rings' own count
	Heap    uint64 `json:"heap"`
	RSS     uint64 `json:"rss"`
	PeakRSS uint64 `json:"peakRSS"`
}

// measureRings prints what none, one, two and four full rings cost, each in a process of its own.
func measureRings(ctx context.Context, self string, out io.Writer) error {
	fmt.Fprintf(out, "%d pods change in turn in each ring of %d MiB, which is filled %d times\n\n", podsOfRing, config.Default().Ring.Bytes>>20, turnsOfRing)
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "full rings\tof their own count\theap\tresident\tat most\t")
	for _, n := range []int{0, 1, 2, 4} {
		f, err := runChild[ringFigures](ctx, self, []string{ringsCommand, strconv.Itoa(n)})
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%d\t%d MiB\t%d MiB\t%d MiB\t%d MiB\t\n", n, f.Held>>20, f.Heap>>20, f.RSS>>20, f.PeakRSS>>20)
	}
	return table.Flush()
}

// rings fills so many rings, and prints their figures as JSON.
func rings(args []string, stdout io.Writer) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	before, ring := liveHeap(), config.Default().Ring
	var all []*cache.Topic
	for range n {
		topic := stream.NewTopic[*cluster.Object](stream.Options{Events: ring.Events, Bytes: int64(ring.Bytes), Age: ring.Age.Std()})
		if err := fillRing(topic); err != nil {
			return err
		}
		all = append(all, topic)
	}
	f := ringFigures{}
	if heap := liveHeap(); heap > before {
		f.Heap = heap - before
	}
	debug.FreeOSMemory()
	if f.RSS, f.PeakRSS, err = residentMemory(); err != nil {
		return err
	}
	for _, topic := range all {
		f.Held += topic.Stats().Bytes
	}
	runtime.KeepAlive(all)
	return json.NewEncoder(stdout).Encode(f)
}

// fillRing changes pods in turn until a ring has been filled turnsOfRing times.
func fillRing(topic *cache.Topic) error {
	topic.Begin(1)
	owner := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace(0), Name: "inference-service-0000-6b8f7d9c5d"}}
	now := make([]*cluster.Object, podsOfRing)
	full := 0
	for version := uint64(2); full == 0 || version < uint64(turnsOfRing*full); version++ {
		i := int(version) % podsOfRing
		p := pod(i, 10, owner)
		p.UID, p.ResourceVersion, p.Status.Phase = "0000", strconv.FormatUint(version, 10), corev1.PodRunning
		p.Annotations["status"] = strings.Repeat("x", statusOfPod)
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		o, err := cluster.NewObject(string(text))
		if err != nil {
			return err
		}
		change := stream.Change[*cluster.Object]{Type: stream.Modified, Object: o, Old: now[i]}
		if now[i] == nil {
			change.Type = stream.Added
		}
		topic.Append(version, change)
		if now[i] = o; full == 0 && topic.Stats().Evicted > 0 {
			full = int(version)
		}
	}
	return nil
}
