package recorder

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
)

// whose are the namespaces' uids of what was recorded, by the name of the job and its new state.
func whose(db *memory) map[string]string {
	found := map[string]string{}
	for _, tr := range db.told() {
		found[tr.Name+" "+string(tr.To)] = tr.NamespaceUID
	}
	return found
}

// A namespace is deleted and made anew, by somebody else, between two events or while no gateway is
// there. No job is ever taken for one of a namespace that it was not in, and none is its next
// owner's; of one that cannot be known any more it stays unknown.
func TestJobsAreOfTheNamespaceThatTheyWereIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		api := world.api
		api.Serve(cluster.Kind{Version: "v1", Resource: "namespaces", Kind: "Namespace", Watchable: true}, true) // as what may name an owner
		remake := func(owner string) (uid string) {
			if api.UID("namespaces", "n") != "" {
				api.Delete("namespaces", "n")
			}
			api.Put("namespaces", "n", apitest.Set("metadata.annotations", map[string]string{"kubecast.io/owner": owner}))
			return api.UID("namespaces", "n")
		}
		check := func(what string, want map[string]string) {
			t.Helper()
			got := whose(db)
			for key, uid := range want {
				if found, ok := got[key]; !ok || found != uid {
					t.Errorf("%s: %s is of %q, not of %q", what, key, found, uid)
				}
			}
		}
		former := remake("alice")
		first := start(t, api, db, "a", ring)
		time.Sleep(time.Second)
		api.Put("jobs", "n/one", lives[jobs.Running]...)
		time.Sleep(time.Second)
		api.Delete("jobs", "n/one")
		next := remake("mallory")
		api.Put("jobs", "n/two", lives[jobs.Running]...)
		time.Sleep(time.Second)
		check("while it is watched", map[string]string{"one Running": former, "one Deleted": former, "two Running": next})
		for _, tr := range db.told() {
			if want := map[string]string{"one": "alice", "two": "mallory"}[tr.Name]; tr.Owner != want {
				t.Errorf("%s is %s's, not %s's", line(tr), tr.Owner, want)
			}
		}

		first.stop()
		api.Put("jobs", "n/three", lives[jobs.Running]...) // which nobody sees before its namespace is gone
		api.Put("jobs", "n/four", append(lives[jobs.Running], "metadata.creationTimestamp=1999-01-01T00:00:00Z")...)
		api.Delete("jobs", "n/two", "n/three")
		last := remake("eve")
		api.Put("jobs", "n/five", lives[jobs.Running]...)
		second := start(t, api, db, "b", ring)
		settle()
		api.Delete("jobs", "n/five")
		time.Sleep(time.Second)
		second.stop()
		check("while nobody was there", map[string]string{
			"two Deleted": next, "three Running": "", "three Deleted": "", "four Running": "", "five Running": last, "five Deleted": last,
		})
		for _, tr := range db.told() {
			if tr.Owner == "eve" && tr.Name != "five" {
				t.Errorf("%s is the next tenant's", line(tr))
			}
		}
	})
}

// A gateway that may not ask for namespaces, or whose questions fail, records without delay, and
// does not know of which namespace jobs are, until they change once it may.
func TestWhoMayNotAskForNamespacesRecordsAllTheSame(t *testing.T) {
	for _, code := range []int{403, 500} {
		synctest.Test(t, func(t *testing.T) {
			world, db := newWorld()
			api := world.api
			api.Put("namespaces", "n")
			recorder := start(t, api, db, "a", ring)
			time.Sleep(time.Second)
			api.Intercept(func(r *http.Request) *apitest.Fault {
				if r.URL.Path == "/api/v1/namespaces/n" {
					return apitest.Refuse(code)
				}
				return nil
			})
			began := time.Now()
			for _, name := range []string{"one", "two"} {
				api.Put("jobs", "n/"+name, lives[jobs.Pending]...)
				synctest.Wait()
			}
			time.Sleep(100 * time.Millisecond)
			if told := db.told(); len(told) != 2 || told[0].NamespaceUID != "" {
				t.Errorf("%d: %d transitions were recorded within %v", code, len(told), time.Since(began))
			}
			api.Intercept(nil)
			time.Sleep(namespacesPause)
			api.Put("jobs", "n/one", lives[jobs.Running]...)
			time.Sleep(time.Second)
			if got := whose(db)["one Running"]; got != api.UID("namespaces", "n") {
				t.Errorf("%d: afterwards it is of %q", code, got)
			}
			recorder.stop()
		})
	}
}
