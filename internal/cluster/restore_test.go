package cluster_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/cluster/clustertest"
)

// After a restore, versions soon reach again those that were seen, and a watch from there is told nothing.
func TestRestoredHistoryIsNotWatchedOnFromItsOldEnd(t *testing.T) {
	for _, test := range []struct {
		name string
		lost func(*clustertest.API) // what happens after a@1001 and b@1002, and is not restored
		anew func(*clustertest.API) // what happens instead
	}{
		{"a bookmark", func(api *clustertest.API) { api.Skip(5); api.Bookmark() }, func(api *clustertest.API) { api.Put(clustertest.Pods, pod("c")) }},
		{"a change", func(api *clustertest.API) { api.Put(clustertest.Pods, pod("a")) }, func(*clustertest.API) {}},
		{"a deletion", func(api *clustertest.API) { api.Delete(clustertest.Pods, "n/a") }, func(*clustertest.API) {}},
		{"another change", func(api *clustertest.API) { api.Put(clustertest.Pods, pod("a")) }, func(api *clustertest.API) { api.Put(clustertest.Pods, pod("a")) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := clustertest.New(clustertest.Pods)
			api.Put(clustertest.Pods, pod("a"))
			r, stop := inform(t, api, clustertest.Pods)
			defer stop()
			synctest.Wait()
			api.Put(clustertest.Pods, pod("b"))
			test.lost(api)
			synctest.Wait()
			api.Away(true)
			api.Rewind(1002)
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
			for key, object := range api.Objects(clustertest.Pods) {
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
