package mirror

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth/authtest"
	"github.com/kubecast/kubecast/internal/cluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var things = cluster.Kind{Group: "example.org", Version: "v1", Resource: "things", Kind: "Thing", Namespaced: true, Watchable: true}

// recorder records what a mirror tells.
type recorder struct {
	mu   sync.Mutex
	told []string
}

func (r *recorder) tell(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, fmt.Sprintf(format, args...))
}

// take returns what was told since the last call, in the order of the text.
func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told
	r.told = nil
	slices.Sort(told)
	return strings.Join(told, "; ")
}

func TestFeedKeepsWhatItWasAskedToAndTellsWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(things)
		put := func(name string) {
			api.Put("things", "a/"+name, "metadata.labels.l=v", "spec.n:=1", "status.big="+strings.Repeat("x", 1000))
			synctest.Wait()
		}
		put("one")
		var r recorder
		f := New(api.Connect(t), Options{
			Kind: things, Keep: []string{"spec", "absent"},
			Put: func(o *cluster.Object) {
				r.tell("put %s", o.Key())
				if o.Path("spec.n").Int() != 1 || o.Path("status").Exists() || o.Path("metadata.labels").Exists() || o.UID() == "" || o.Version() == 0 {
					t.Errorf("kept: %s", o.JSON())
				}
			},
			Remove: func(namespace, name string) { r.tell("remove %s/%s", namespace, name) },
			Synced: func() { r.tell("synced") },
			Log:    slog.New(slog.DiscardHandler),
		})
		if s := f.State(); s.Synced || s.Err != nil {
			t.Errorf("before it runs: %+v", s)
		}
		authtest.Run(t, f.Run)
		expect := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := r.take(); got != want {
				t.Errorf("told %q; want %q", got, want)
			}
		}
		expect("put a/one; synced")
		select {
		case <-f.Attempted():
		default:
			t.Error("not attempted")
		}
		put("two")
		expect("put a/two")
		api.Delete("things", "a/one")
		expect("remove a/one")

		// An object that is gone when the watch is back is told as removed. In between the mirror says that the watch
		// is lost.
		put("three")
		expect("put a/three")
		api.Away(true)
		api.Delete("things", "a/three")
		api.Compact()
		time.Sleep(time.Minute)
		if s := f.State(); s.Err == nil || s.Refused() || !s.Synced || time.Since(s.Since) < 30*time.Second {
			t.Errorf("away: %+v", s)
		}
		api.Away(false)
		time.Sleep(2 * time.Minute)
		if s := f.State(); s.Err != nil || !s.Synced {
			t.Errorf("back: %+v", s)
		}
		synctest.Wait()
		if got := r.take(); !strings.Contains(got, "remove a/three") || strings.Contains(got, "remove a/two") {
			t.Errorf("told %q", got)
		}
	})
}

func TestNamespacesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := cluster.Kind{Version: "v1", Resource: "namespaces", Kind: "Namespace", Watchable: true}
		api := apitest.New(kind)
		api.Delete("namespaces", "kube-system")
		put := func(name string) {
			api.Put("namespaces", name)
			synctest.Wait()
		}
		put("b")
		put("a")
		n := NewNamespaces(slog.New(slog.DiscardHandler))
		changed := make(chan struct{}, 1)
		stop := n.Changes(func() {
			select {
			case changed <- struct{}{}:
			default: // called once for several
			}
		})
		expect := func(what string, told bool, want ...string) {
			t.Helper()
			synctest.Wait()
			names, ok := n.Names("test")
			if ok != (want != nil) || !slices.Equal(names, want) {
				t.Errorf("%s: %q, %t", what, names, ok)
			}
			select {
			case <-changed:
				if !told {
					t.Errorf("%s: was told", what)
				}
			default:
				if told {
					t.Errorf("%s: was not told", what)
				}
			}
		}
		expect("without clusters", false)
		follow := n.Add(api.Connect(t))
		expect("before it is read", false)
		authtest.Run(t, follow)
		expect("read", true, "a", "b")
		put("c")
		expect("a new one", true, "a", "b", "c")
		put("c")
		expect("a changed one", false, "a", "b", "c")
		api.Delete("namespaces", "b")
		expect("one that is gone", true, "a", "c")
		stop()
		stop()
		put("d")
		expect("after the end", false, "a", "c", "d")
		if _, ok := n.Names("elsewhere"); ok {
			t.Error("an unknown cluster is known")
		}
	})
}
