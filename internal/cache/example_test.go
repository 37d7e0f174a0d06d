package cache_test

import (
	"context"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// A snapshot is the state at a moment. The cursor that begins where it was taken is told all that
// changes afterwards, and nothing twice.
func ExampleStore() {
	api := apitest.New(apitest.Pods)
	defer api.Close()
	api.Put("pods", "team-a/trainer-0", "phase", "Pending")
	c, err := cluster.Connect(cluster.Options{Name: "example", Config: &rest.Config{Host: "http://api.example", Transport: api}})
	if err != nil {
		fmt.Println(err)
		return
	}
	kinds, err := cache.NewKinds(c, cache.Options{Topic: stream.Options{Events: 100, Bytes: 1 << 20}}, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- kinds.Run(ctx) }()
	defer func() {
		stop()
		<-ended
	}()

	// The first who uses a kind begins its list and watch.
	store, release, err := kinds.Use(apitest.Pods, "ann")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer release()
	if err := store.WaitSynced(ctx); err != nil {
		fmt.Println(err)
		return
	}
	snapshot := store.Snapshot()
	for pod := range snapshot.List(stream.AllNamespaces(), cache.Selector{}, "", "") {
		fmt.Println("there is", pod.Key())
	}

	reader, err := store.Topic().Resume(stream.UpTo(snapshot.Version()), stream.Namespaces("team-a"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reader.Disarm()
	api.Put("pods", "team-a/trainer-1", "phase", "Pending")
	woken := stream.NewWakeChannel()
	for told := 0; told == 0; {
		batch, _, err := reader.Next(make([]*cache.Event, 0, 16), woken)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range batch {
			fmt.Println(e.Type, e.Object.Key())
			told++
		}
		if told == 0 {
			<-woken.C
		}
	}
	// Output:
	// there is team-a/trainer-0
	// added team-a/trainer-1
}
