package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

// recorder records the notifications of an informer, and the health of its ListWatch.
type recorder struct {
	mu     sync.Mutex
	told   []string
	health []string
	errs   []error // given to Down
}

func (r *recorder) causes() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.errs)
}

func (r *recorder) tell(lines *[]string, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*lines = append(*lines, fmt.Sprintf(format, args...))
}

// take returns what was recorded since the last call.
func (r *recorder) take() (told, health []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told, health, r.told, r.health = r.told, r.health, nil, nil
	return told, health
}

func (r *recorder) Up(int64) { r.tell(&r.health, "up") }

func (r *recorder) Down(err error) {
	r.tell(&r.health, "down")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

func describe(object any) string {
	what := ""
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		what, object = "tombstone ", tombstone.Obj
	}
	o := object.(*cluster.Object)
	if o.IsMarker() {
		return fmt.Sprintf("%smarker@%d", what, o.Version())
	}
	return fmt.Sprintf("%s%s@%d", what, o.Key(), o.Version())
}

func (r *recorder) OnAdd(object any, _ bool) { r.tell(&r.told, "add %s", describe(object)) }
func (r *recorder) OnUpdate(_, object any)   { r.tell(&r.told, "update %s", describe(object)) }
func (r *recorder) OnDelete(object any)      { r.tell(&r.told, "delete %s", describe(object)) }

// inform runs the real informer over the API server.
func inform(t *testing.T, api *apitest.API, kind cluster.Kind) (r *recorder, stop func()) {
	r = &recorder{}
	return r, informFrom(t, api.Connect(t).ListWatch(kind, r), r)
}

// informFrom runs the real informer over a ListWatch.
func informFrom(t *testing.T, lw *cluster.ListWatch, r *recorder) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	informer := toolscache.NewSharedIndexInformerWithOptions(lw, &cluster.Object{}, toolscache.SharedIndexInformerOptions{})
	if err := informer.SetWatchErrorHandler(func(*toolscache.Reflector, error) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := informer.AddEventHandler(r); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func TestMarkersComeWhereTheyBelong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		api.Put("pods", "n/a")
		api.Put("pods", "n/b")
		r, stop := inform(t, api, apitest.Pods)
		defer stop()
		expect := func(when string, want, wantHealth []string) {
			t.Helper()
			synctest.Wait()
			told, health := r.take()
			if strings.HasSuffix(when, "list") {
				slices.Sort(told[:2]) // streamed objects and tombstones come in any order
			}
			if !slices.Equal(told, want) || !slices.Equal(health, wantHealth) {
				t.Errorf("%s: %q, health %q", when, told, health)
			}
		}
		expect("the first list", []string{"add n/a@1001", "add n/b@1002", "add marker@1002"}, []string{"up"})
		api.Put("pods", "n/b")
		api.Skip(10)
		api.Bookmark()
		expect("a bookmark", []string{"update n/b@1003", "update marker@1013"}, nil)
		api.Requests()
		api.CutWatches()
		expect("a cut", []string{"update marker@1013"}, []string{"down"})
		// The watch does not go on from the bookmark's version: nothing shows that history is the same between b's
		// version and that one.
		if requests := api.Requests(); len(requests) != 2 || !strings.HasSuffix(requests[0], "/n/pods/b") || !strings.Contains(requests[1], "resourceVersion=1003&") {
			t.Errorf("after a cut: %q", requests)
		}
		time.Sleep(2 * time.Second)
		expect("a moment", []string{"update marker@1013"}, []string{"up"})
		api.EndWatches()
		expect("an end as it should be", []string{"update marker@1013"}, nil)

		api.ExpireWatches()
		synctest.Wait()
		api.Delete("pods", "n/a")
		api.Put("pods", "n/b")
		api.Compact()
		time.Sleep(time.Minute)
		expect("a relist", []string{"delete tombstone marker@1013", "delete tombstone n/a@1001", "update n/b@1015", "add marker@1015"},
			[]string{"down", "up"})
	})
}

// An API server may accept a watch from a version that it no longer has, and say so only in the first event. A client
// that was told in between that the watch is back would take the relist's differences for changes that happen now.
func TestWatchThatIsAcceptedAndExpiredIsNeverToldAsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		api.Put("pods", "n/a")
		r, stop := inform(t, api, apitest.Pods)
		defer stop()
		synctest.Wait()
		api.Put("pods", "n/b") // proves that history is the same
		synctest.Wait()
		r.take()
		api.Requests()
		api.Skip(10)
		api.Compact()
		api.CutWatches()
		synctest.Wait()
		if _, health := r.take(); slices.Contains(health, "up") || len(health) == 0 {
			t.Errorf("before the relist, health is %q", health)
		}
		if requests := api.Requests(); len(requests) != 2 || !strings.Contains(requests[1], "resourceVersion=1002&") {
			t.Errorf("it was not tried to watch on: %q", requests)
		}
		time.Sleep(time.Minute)
		if told, health := r.take(); !slices.Equal(health, []string{"up"}) || !slices.Contains(told, "add marker@1012") {
			t.Errorf("after the relist, health is %q, told %q", health, told)
		}
	})
}

// A gateway that may list and watch a kind, but not get its objects, lists again after an interruption. It does not
// take the kind for refused.
func TestInterruptedWatchWithoutTheVerbGetListsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		r, stop := inform(t, api, apitest.Pods)
		defer stop()
		synctest.Wait()
		api.Put("pods", "n/a")
		synctest.Wait()
		api.Intercept(func(r *http.Request) *apitest.Fault {
			if strings.HasSuffix(r.URL.Path, "/pods/a") {
				return apitest.Refuse(http.StatusForbidden)
			}
			return nil
		})
		r.take()
		api.CutWatches()
		time.Sleep(time.Minute)
		told, health := r.take()
		if !slices.Contains(told, "add marker@1001") || len(health) == 0 || health[len(health)-1] != "up" {
			t.Errorf("told %q, health %q", told, health)
		}
		for _, err := range r.causes() {
			if apierrors.IsForbidden(err) {
				t.Errorf("the kind is taken for refused: %v", err)
			}
		}
	})
}

// A watch that was lost counts as back with its first event, however soon that comes, or when it has lasted for a
// while.
func TestWatchIsProvedByAnEventOrByTime(t *testing.T) {
	for _, test := range []struct {
		name  string
		prove func(*apitest.API)
	}{
		{"a change", func(api *apitest.API) { api.Put("pods", "n/b") }},
		{"a bookmark", func(api *apitest.API) { api.Skip(1); api.Bookmark() }},
		{"time", func(*apitest.API) { time.Sleep(2 * time.Second) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := apitest.New(apitest.Pods)
			r, stop := inform(t, api, apitest.Pods)
			defer stop()
			synctest.Wait()
			api.Put("pods", "n/a")
			synctest.Wait()
			r.take()
			api.CutWatches()
			time.Sleep(900 * time.Millisecond)
			if _, health := r.take(); !slices.Equal(health, []string{"down"}) {
				t.Errorf("%s: without proof, health is %q", test.name, health)
			}
			test.prove(api)
			synctest.Wait()
			if _, health := r.take(); !slices.Equal(health, []string{"up"}) {
				t.Errorf("%s: with proof, health is %q", test.name, health)
			}
		})
	}
}

// A client that comes when the first list has just been read is not to be told that the watch is lost, and a moment
// later that it is back.
func TestFirstWatchNeedsNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		r, stop := inform(t, api, apitest.Pods)
		defer stop()
		synctest.Wait()
		if _, health := r.take(); !slices.Equal(health, []string{"up"}) {
			t.Errorf("health %q", health)
		}
	})
}

// A watch that again and again cannot be opened leaves no marker between the lists.
func TestListsWithoutAWatchHaveNoMarkerBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		api.Put("pods", "n/a")
		refuse := func(r *http.Request) *apitest.Fault {
			if strings.Contains(r.URL.RawQuery, "watch=true") {
				return apitest.Refuse(http.StatusForbidden)
			}
			return nil
		}
		api.Intercept(refuse)
		r, stop := inform(t, api, apitest.Pods)
		defer stop()
		synctest.Wait()
		api.Put("pods", "n/b")
		api.Delete("pods", "n/a")
		time.Sleep(10 * time.Second) // more lists
		told, health := r.take()
		if want := []string{"add n/a@1001", "delete tombstone n/a@1001", "add n/b@1002"}; !slices.Equal(told[:3], want) || slices.Contains(health, "up") {
			t.Errorf("%q, health %q", told, health)
		}
		for _, line := range told {
			if strings.Contains(line, "marker") {
				t.Errorf("%q", told)
			}
		}
		api.Intercept(nil)
		time.Sleep(time.Minute)
		told, health = r.take()
		if last := len(told) - 1; told[last] != "add marker@1003" || health[len(health)-1] != "up" {
			t.Errorf("%q, health %q", told, health)
		}
	})
}

// An API server ends a request after a minute, so a list that takes longer is read in pages. The pages make one list.
func TestListThatTakesTooLongIsReadInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		api.Paged(true)
		for i := range 1234 {
			api.Put("pods", "n/"+fmt.Sprintf("p%04d", i))
		}
		broken := syscall.ECONNRESET
		api.Intercept(func(r *http.Request) *apitest.Fault {
			if query := r.URL.Query(); query.Get("watch") == "" && query.Get("limit") == "" && query.Get("continue") == "" {
				time.Sleep(time.Minute)
				return &apitest.Fault{Err: broken}
			}
			return nil
		})
		r, stop := inform(t, api, apitest.Pods)
		defer stop()
		time.Sleep(5 * time.Minute)
		told, health := r.take()
		if len(told) != 1235 || told[1234] != "add marker@2234" || told[1233] != "add n/p1233@2234" {
			t.Errorf("%d were told, last %q", len(told), told[max(0, len(told)-2):])
		}
		if health[0] != "down" || health[len(health)-1] != "up" {
			t.Errorf("health %q", health)
		}
	})
}

// A client that waits for the first list learns soon that the API server does not answer, not only when the request
// times out.
func TestListThatIsNotAnsweredIsToldSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		api.Intercept(func(r *http.Request) *apitest.Fault {
			<-r.Context().Done()
			return &apitest.Fault{Err: r.Context().Err()}
		})
		r, stop := inform(t, api, apitest.Pods)
		defer stop()
		time.Sleep(2 * time.Second)
		if _, health := r.take(); !slices.Equal(health, []string{"down"}) {
			t.Errorf("health %q", health)
		}
	})
}

// A list whose connection breaks does not count as one that takes too long.
func TestListThatBreaksOffSoonIsReadWholeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		api.Away(true)
		r, stop := inform(t, api, apitest.Pods)
		defer stop()
		time.Sleep(10 * time.Second)
		api.Away(false)
		time.Sleep(time.Minute)
		if _, health := r.take(); health[len(health)-1] != "up" {
			t.Errorf("health %q", health)
		}
		for _, request := range api.Requests() {
			if strings.Contains(request, "limit=") || strings.Contains(request, "resourceVersion=0") {
				t.Errorf("it asks for %s", request)
			}
		}
	})
}

func TestServerThatEndsWatchesAtOnceIsNotPestered(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer *apitest.Fault
	}{
		{"nothing", &apitest.Fault{}},
		{"an error", &apitest.Fault{Status: &metav1.Status{Status: metav1.StatusFailure, Code: 500}}},
		{"nonsense", &apitest.Fault{Body: "<html>"}},
		{"an event that is none", &apitest.Fault{Body: `{"type":"ADDED","object":{"metadata":{}}}`}},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := apitest.New(apitest.Pods)
			api.Intercept(func(r *http.Request) *apitest.Fault {
				if strings.Contains(r.URL.RawQuery, "watch=true") {
					return test.answer
				}
				return nil
			})
			r, stop := inform(t, api, apitest.Pods)
			defer stop()
			time.Sleep(10 * time.Minute)
			if n := len(api.Requests()); n > 150 {
				t.Errorf("%s: %d requests in ten minutes", test.name, n)
			}
			if _, health := r.take(); health[len(health)-1] != "down" {
				t.Errorf("%s: the watch is taken for live: %q", test.name, health)
			}
		})
	}
}

func TestRefusedKindIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		api.Intercept(func(*http.Request) *apitest.Fault { return apitest.Refuse(http.StatusForbidden) })
		r, stop := inform(t, api, apitest.Pods)
		synctest.Wait()
		if _, health := r.take(); len(health) == 0 || health[0] != "down" {
			t.Errorf("health %q", health)
		}
		stop()
		if _, health := r.take(); len(health) > 0 {
			t.Errorf("when it is stopped, health is %q", health)
		}
	})
}

// A watch that ended in good order counts as lost if the next one does not come.
func TestWatchThatIsLongInComingIsToldAsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		r, stop := inform(t, api, apitest.Pods)
		defer stop()
		synctest.Wait()
		api.Put("pods", "n/a")
		synctest.Wait()
		r.take()
		api.Intercept(func(*http.Request) *apitest.Fault {
			time.Sleep(30 * time.Second)
			return nil
		})
		api.EndWatches()
		time.Sleep(5 * time.Second)
		if _, health := r.take(); !slices.Equal(health, []string{"down"}) {
			t.Errorf("while it is away, health is %q", health)
		}
		api.Intercept(nil)
		time.Sleep(5 * time.Minute)
		if _, health := r.take(); len(health) == 0 || health[len(health)-1] != "up" || slices.Contains(health, "down") {
			t.Errorf("when it is back, health is %q", health)
		}
	})
}

// Over a real connection, stopping a watch must end a read that waits for the next event.
func TestStopEndsAReadThatWaits(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		api := apitest.New(apitest.Pods)
		server := httptest.NewUnstartedServer(api)
		server.EnableHTTP2 = http2
		server.StartTLS()
		c, err := cluster.Connect(cluster.Options{Name: "test", Config: &rest.Config{
			Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		}})
		if err != nil {
			t.Fatal(err)
		}
		r := &recorder{}
		w, err := c.ListWatch(apitest.Pods, r).Watch(metav1.ListOptions{ResourceVersion: "1000"})
		if err != nil {
			t.Fatal(err)
		}
		if e := <-w.ResultChan(); describe(e.Object) != "marker@1000" {
			t.Errorf("%v", e)
		}
		api.Put("pods", "n/a")
		if e := <-w.ResultChan(); describe(e.Object) != "n/a@1001" {
			t.Errorf("%v", e)
		}
		w.Stop()
		if _, open := <-w.ResultChan(); open {
			t.Error("events go on")
		}
		w.Stop() // as client-go does
		if _, health := r.take(); !slices.Equal(health, []string{"up"}) {
			t.Errorf("health %q", health)
		}
		server.CloseClientConnections()
		server.Close()
	}
}
