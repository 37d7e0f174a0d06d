package cluster_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
)

// After a restore, versions soon reach again those that were seen, and a watch from there is told nothing.
func TestRestoredHistoryIsNotWatchedOnFromItsOldEnd(t *testing.T) {
	for _, test := range []struct {
		name string
		lost func(*apitest.API) // what happens after a@1001 and b@1002, and is not restored
		anew func(*apitest.API) // what happens instead
	}{
		{"a bookmark", func(api *apitest.API) { api.Skip(5); api.Bookmark() }, func(api *apitest.API) { api.Put("pods", "n/c") }},
		{"a change", func(api *apitest.API) { api.Put("pods", "n/a") }, func(*apitest.API) {}},
		{"a deletion", func(api *apitest.API) { api.Delete("pods", "n/a") }, func(*apitest.API) {}},
		{"another change", func(api *apitest.API) { api.Put("pods", "n/a") }, func(api *apitest.API) { api.Put("pods", "n/a") }},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := apitest.New(apitest.Pods)
			api.Put("pods", "n/a")
			r, stop := inform(t, api, apitest.Pods)
			defer stop()
			synctest.Wait()
			api.Put("pods", "n/b")
			test.lost(api)
			synctest.Wait()
			api.Away(true)
			api.Restore(1002)
			test.anew(api)
			api.Skip(100)
			api.Away(false)
			time.Sleep(time.Minute)
			told, _ := r.take()
			has := map[string]string{}
			for _, line := range told {
				words := strings.Fields(strings.ReplaceAll(line, "tombstone ", ""))
				if key, version, _ := strings.Cut(words[1], "@"); words[0] == "delete" {
					delete(has, key)
				} else if key != "marker" {
					has[key] = version
				}
			}
			for key, object := range api.Objects("pods") {
				if version := has[key]; version == "" || !strings.Contains(object, `"resourceVersion":"`+version+`"`) {
					t.Errorf("after %s was lost, the cache has %v, and lacks %s", test.name, has, object)
				}
				delete(has, key)
			}
			if len(has) > 0 {
				t.Errorf("after %s was lost, the cache still has %v", test.name, has)
			}
		})
	}
}
