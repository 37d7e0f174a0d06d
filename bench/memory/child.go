package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/stream"
)

// The program runs itself again for each cache, so that neither has the other's garbage on its heap.
const (
	childCommand    = "measure-cache"
	dynamicInformer = "dynamicinformer"
	kubecastCache   = "kubecast"
)

func runChild[T any](ctx context.Context, self string, args []string) (f T, err error) {
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(bytes.TrimSpace(out), &f)
}

// child measures one cache and prints its figures as JSON.
func child(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet(childCommand, flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "")
	name := flags.String("cache", "", "")
	profile := flags.String("profile", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	begin := map[string]func(context.Context, string) (running, error){dynamicInformer: beginInformer, kubecastCache: beginKubecast}[*name]
	if begin == nil {
		return fmt.Errorf("no cache is called %q", *name)
	}
	before := liveHeap()
	began := time.Now()
	cached, err := begin(ctx, *kubeconfig)
	if err != nil {
		return err
	}
	f := figures{Synced: time.Since(began)}
	f.Objects, f.JSON = cached.count()
	f.Heap = liveHeap() - before
	if *profile != "" {
		if err := writeProfile(*profile); err != nil {
			return err
		}
	}
	debug.FreeOSMemory()
	if f.RSS, f.PeakRSS, err = residentMemory(); err != nil {
		return err
	}
	runtime.KeepAlive(cached)
	return json.NewEncoder(stdout).Encode(f)
}

// running is a cache that has read the whole list.
type running struct {
	count func() (objects int, json uint64)
}

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func beginInformer(ctx context.Context, kubeconfig string) (running, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return running{}, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return running{}, err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(pods).Informer()
	factory.Start(ctx.Done())
	for _, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return running{}, errors.New("the informer was not synced")
		}
	}
	return running{func() (int, uint64) { return len(informer.GetStore().ListKeys()), 0 }}, nil
}

func beginKubecast(ctx context.Context, kubeconfig string) (running, error) {
	connection, err := cluster.Connect(cluster.Options{Name: "default", Kubeconfig: kubeconfig})
	if err != nil {
		return running{}, err
	}
	defaults := config.Default()
	indexes := map[string][]string{}
	for kind, paths := range defaults.Cache.Indexes {
		indexes[kind.String()] = paths
	}
	kinds, err := cache.NewKinds(connection, cache.Options{
		Indexes: indexes,
		Topic:   stream.Options{Events: defaults.Ring.Events, Bytes: int64(defaults.Ring.Bytes), Age: defaults.Ring.Age.Std()},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return running{}, err
	}
	go func() { _ = kinds.Run(ctx) }() // as long as the process
	kind, err := connection.Resolve(ctx, pods.Group, pods.Version, pods.Resource)
	if err != nil {
		return running{}, err
	}
	store, _, err := kinds.Use(kind, "")
	if err != nil {
		return running{}, err
	}
	if err := store.WaitSynced(ctx); err != nil {
		return running{}, err
	}
	return running{func() (int, uint64) {
		snapshot, size := store.Snapshot(), uint64(0)
		for o := range snapshot.List(stream.AllNamespaces(), cache.Selector{}, "", "") {
			size += uint64(len(o.JSON()))
		}
		return snapshot.Len(), size
	}}, nil
}

// liveHeap is what the program holds on the heap.
func liveHeap() uint64 {
	var stats runtime.MemStats
	for range 3 { // pools and finalizers release what they hold only in the second and third
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

var memoryLines = regexp.MustCompile(`(?m)^(VmHWM|VmRSS):\s+(\d+) kB$`)

// residentMemory is what the kernel says that the process occupies, in bytes (proc_pid_status(5)).
func residentMemory() (now, most uint64, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, err
	}
	for _, match := range memoryLines.FindAllSubmatch(status, -1) {
		kib, err := strconv.ParseUint(string(match[2]), 10, 64)
		if err != nil {
			return 0, 0, err
		}
		if string(match[1]) == "VmRSS" {
			now = kib << 10
		} else {
			most = kib << 10
		}
	}
	return now, most, nil
}

func writeProfile(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(pprof.WriteHeapProfile(file), file.Close())
}
