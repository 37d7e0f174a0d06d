package cluster_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

// confirming runs the real informer over the API server, which has an object n/a.
func confirming(t *testing.T, test func(t *testing.T, api *apitest.API, lw *cluster.ListWatch, r *recorder)) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		api.Put("pods", "n/a")
		r := &recorder{}
		lw := api.Connect(t).ListWatch(apitest.Pods, r)
		defer informFrom(t, lw, r)()
		time.Sleep(5 * time.Second)
		test(t, api, lw, r)
	})
}

// held is a store with so many objects, up to a version.
func held(objects int, version uint64) func() (int, uint64) {
	return func() (int, uint64) { return objects, version }
}

// Of a kind of which the API server sends no bookmarks, as of Events, a list shows that nothing has
// happened, however many pages it has. It shows nothing to a store that is behind its watch, nor
// where something was changed, made or deleted.
func TestQuietKindWithoutBookmarksIsConfirmedByAList(t *testing.T) {
	confirming(t, func(t *testing.T, api *apitest.API, lw *cluster.ListWatch, r *recorder) {
		for n := range 600 {
			api.Put("pods", fmt.Sprintf("n/p-%03d", n))
		}
		api.Put("pods", "n/gone")
		api.Delete("pods", "n/gone") // this revision is asked for once more
		synctest.Wait()
		passed := api.Version()
		api.Mute()
		api.Skip(5)
		r.take()
		if err := lw.Confirm(t.Context(), api.Version(), held(601, passed)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		told, _ := r.take()
		if len(told) != 1 || !strings.HasSuffix(told[0], fmt.Sprint("marker@", api.Version())) {
			t.Errorf("confirmed: %q", told)
		}
		passed = api.Version()
		api.Skip(5)
		for what, store := range map[string]func() (int, uint64){"that is behind": held(601, passed-1), "that has more": held(602, passed), "that has less": held(600, passed)} {
			if err := lw.Confirm(t.Context(), api.Version(), store); err == nil {
				t.Errorf("a store %s is confirmed", what)
			}
		}
		if err := lw.Confirm(t.Context(), api.Version()+1, held(601, passed)); err == nil {
			t.Error("a version is confirmed that the API server has not reached")
		}
		for what, change := range map[string]func(){
			"changed": func() { api.Put("pods", "n/a", "spec.n:=1") }, "made": func() { api.Put("pods", "n/new") }, "deleted": func() { api.Delete("pods", "n/p-007") },
		} {
			before, objects := api.Version(), len(api.Keys("pods"))
			if err := lw.Confirm(t.Context(), before, held(objects, passed)); err != nil {
				t.Fatal(err)
			}
			api.Slowly(20 * time.Second)
			api.Put("pods", "n/first") // comes at once
			synctest.Wait()
			objects, passed = len(api.Keys("pods")), api.Version()
			change()
			api.Skip(5)
			if err := lw.Confirm(t.Context(), api.Version(), held(objects, passed)); err == nil {
				t.Errorf("an object was %s, and it is confirmed that nothing has happened", what)
			}
			api.Slowly(0)
			time.Sleep(time.Minute)
			passed = api.Version() - 5
		}
	})
}

func TestQuietKindIsConfirmedUpToAVersionOfAnotherKind(t *testing.T) {
	confirming(t, func(t *testing.T, api *apitest.API, lw *cluster.ListWatch, r *recorder) {
		r.take()
		api.Skip(5)
		version := api.Version()
		if err := lw.Confirm(t.Context(), version, held(0, 0)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		told, _ := r.take()
		if len(told) != 1 || !strings.HasSuffix(told[0], "marker@1006") {
			t.Errorf("%d is confirmed: %q", version, told)
		}
		// client-go goes on from there, also when its watch is lost: no version goes back.
		api.EndWatches()
		time.Sleep(time.Minute)
		if told, _ := r.take(); !slices.ContainsFunc(told, func(line string) bool { return strings.HasSuffix(line, "marker@1006") }) ||
			slices.ContainsFunc(told, func(line string) bool { return strings.HasSuffix(line, "marker@1001") }) {
			t.Errorf("afterwards %q", told)
		}
	})
}

// What a watch has not delivered yet comes before any version that is behind it.
func TestWhatIsStillToComeIsNotConfirmed(t *testing.T) {
	confirming(t, func(t *testing.T, api *apitest.API, lw *cluster.ListWatch, r *recorder) {
		r.take()
		api.Slowly(20 * time.Second)
		api.Put("pods", "n/b")
		api.Put("pods", "n/c")
		api.Put("pods", "n/d")
		time.Sleep(time.Second) // only b has come
		api.Skip(5)
		if err := lw.Confirm(t.Context(), api.Version(), held(0, 0)); err == nil {
			t.Error("a version is confirmed behind what is still to come")
		}
		time.Sleep(time.Minute)
		told, _ := r.take()
		if want := []string{"add n/b@1002", "add n/c@1003", "add n/d@1004"}; !slices.Equal(told, want) {
			t.Errorf("%q", told)
		}
	})
}

// A revision that deletes several objects comes in parts: a bookmark behind it says that all of them have come.
func TestRestOfADeletionsRevisionIsDeliveredBeforeItIsConfirmed(t *testing.T) {
	confirming(t, func(t *testing.T, api *apitest.API, lw *cluster.ListWatch, r *recorder) {
		api.Put("pods", "n/b")
		api.Put("pods", "n/c")
		synctest.Wait()
		r.take()
		api.Slowly(20 * time.Second)
		api.Delete("pods", "n/a", "n/b", "n/c")
		time.Sleep(time.Second) // only the first has come
		api.Slowly(0)
		if told, _ := r.take(); len(told) != 1 {
			t.Fatalf("%q", told)
		}
		api.Skip(5)
		version := api.Version()
		if err := lw.Confirm(t.Context(), version, held(0, 0)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		told, _ := r.take()
		for _, name := range []string{"n/b", "n/c"} {
			if gone := slices.IndexFunc(told, func(line string) bool { return strings.HasPrefix(line, "delete "+name) }); gone < 0 {
				t.Errorf("%s is not told as gone: %q", name, told)
			}
		}
		if !strings.HasSuffix(told[len(told)-1], "marker@1009") {
			t.Errorf("%q, at %d", told, version)
		}
	})
}

func TestNothingIsConfirmedWithoutAWatchOrByAServerThatLagsBehind(t *testing.T) {
	confirming(t, func(t *testing.T, api *apitest.API, lw *cluster.ListWatch, r *recorder) {
		if err := lw.Confirm(t.Context(), api.Version()+1, held(0, 0)); err == nil {
			t.Error("a version is confirmed that the API server has not reached")
		}
		api.Mute()
		api.Skip(5)
		if err := lw.Confirm(t.Context(), api.Version(), held(0, 0)); err == nil {
			t.Error("a version is confirmed by an API server that sends no bookmarks")
		}
		api.Away(true)
		time.Sleep(time.Second)
		r.take()
		if err := lw.Confirm(t.Context(), api.Version(), held(0, 0)); err == nil {
			t.Error("a version is confirmed while the API server is away")
		}
		if told, _ := r.take(); len(told) != 0 {
			t.Errorf("%q", told)
		}
	})
}

// What the watch has delivered while the API server was asked is newer than what it was asked for:
// no version goes back.
func TestVersionThatTheWatchHasPassedIsNotDeliveredBehindIt(t *testing.T) {
	confirming(t, func(t *testing.T, api *apitest.API, lw *cluster.ListWatch, r *recorder) {
		api.Skip(5)
		version := api.Version()
		api.Answer("pods", func(request *http.Request) *apitest.Fault {
			if request.URL.Query().Get("timeoutSeconds") != "3" {
				return nil
			}
			time.Sleep(time.Second) // this answer comes late
			return &apitest.Fault{Body: fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}}`, version)}
		})
		r.take()
		asked := make(chan error)
		go func() { asked <- lw.Confirm(t.Context(), version, held(0, 0)) }()
		time.Sleep(time.Second / 2)
		api.Skip(5)
		api.Bookmark()
		if err := <-asked; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if told, _ := r.take(); len(told) == 0 || slices.ContainsFunc(told, func(line string) bool { return !strings.HasSuffix(line, "marker@1011") }) {
			t.Errorf("at version %d, of which %d was asked for, it is told %q", api.Version(), version, told)
		}
	})
}

// TestConfirmedWhileTheWatchEnds: whatever is under way when a watch ends or breaks off, nothing is
// delivered on it any more.
func TestConfirmedWhileTheWatchEnds(t *testing.T) {
	confirming(t, func(t *testing.T, api *apitest.API, lw *cluster.ListWatch, r *recorder) {
		for i := range 20 {
			api.Skip(1)
			version, asked := api.Version(), make(chan error)
			go func() { asked <- lw.Confirm(t.Context(), version, held(0, 0)) }()
			time.Sleep(time.Duration(i) * 100 * time.Millisecond)
			if i%2 == 0 {
				api.CutWatches()
			} else {
				api.EndWatches()
			}
			<-asked
			api.Put("pods", "n/a")
			time.Sleep(30 * time.Second)
		}
		told, _ := r.take()
		last := ""
		for _, line := range told {
			if strings.Contains(line, "n/a@") {
				last = line
			}
		}
		if !strings.HasSuffix(last, "n/a@1041") {
			t.Errorf("the last change is told as %q, at version %d", last, api.Version())
		}
	})
}
