package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

func TestMain(m *testing.M) {
	klog.LogToStderr(false) // client-go warns of faults that the tests make on purpose
	klog.SetOutput(io.Discard)
	goleak.VerifyTestMain(m)
}

var (
	pods  = apitest.Pods
	roomy = stream.Options{Events: 10_000, Bytes: 1 << 30}
	quiet = slog.New(slog.DiscardHandler)
)

// filled is a store of pods that the real informer fills from an API server.
type filled struct {
	*Store
	restarts atomic.Int32 // how often versions went back
	restart  func()       // called then, unless it is nil
}

func fill(t testing.TB, api *apitest.API, opts stream.Options, indexes ...string) (f *filled, stop func()) {
	t.Helper()
	return fillFrom(t, api.Connect(t), opts, indexes...)
}

func fillFrom(t testing.TB, c *cluster.Cluster, opts stream.Options, indexes ...string) (f *filled, stop func()) {
	t.Helper()
	f = &filled{}
	var err error
	if f.Store, err = newStore(pods, opts, indexes, f.restarted, quiet); err != nil {
		t.Fatal(err)
	}
	f.catchUps = newCatchUps(CatchUpBound{}, &keptCatchUps{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	lw := c.ListWatch(pods, f.Store)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := f.run(ctx, lw); err != nil {
			t.Error(err)
		}
	}()
	return f, func() {
		cancel()
		<-ended
	}
}

func (f *filled) restarted() {
	f.restarts.Add(1)
	if f.restart != nil {
		f.restart()
	}
}

// content is what a snapshot holds, by key, in the form in which the fake API server writes it.
func content(t testing.TB, s *Snapshot) map[string]string {
	t.Helper()
	found := map[string]string{}
	for o := range s.List(stream.AllNamespaces(), Selector{}, "", "") {
		var members map[string]any
		if err := json.Unmarshal([]byte(o.JSON()), &members); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		found[o.Key()] = string(text)
	}
	return found
}

// expectContent compares a snapshot with what there is at the API server.
func expectContent(t testing.TB, when string, s *Snapshot, api *apitest.API) {
	t.Helper()
	if got, want := content(t, s), api.Objects("pods"); !maps.Equal(got, want) || s.Len() != len(want) {
		t.Errorf("%s the content is\n%v, not\n%v", when, got, want)
	}
}

// told reads a cursor to its end, and describes the events: type, key, version, and the position that is claimed
// after each.
func told(t testing.TB, c *Cursor) (lines []string) {
	t.Helper()
	for {
		batch, _, err := c.Next(make([]*Event, 0, 5), nil)
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		for _, e := range batch {
			old := ""
			if e.Old != nil {
				old = fmt.Sprintf(" was %d", e.Old.Version())
			}
			lines = append(lines, fmt.Sprintf("%s %s@%d%s, claims %d", e.Type, e.Object.Key(), e.Object.Version(), old, e.ID))
		}
		if len(batch) < 5 {
			return lines
		}
	}
}

func expect(t testing.TB, when string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%q, not\n%q", when, got, want)
	}
}
