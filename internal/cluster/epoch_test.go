package cluster_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

var gauges = cluster.Kind{Group: "metering.example.org", Version: "v1", Resource: "gauges", Kind: "Gauge", Namespaced: true, Watchable: true}

// aggregating is an API server with a custom resource, and with a server for gauges behind it.
func aggregating() *apitest.API {
	api := apitest.New(apitest.Pods, apitest.Jobs, apitest.Widgets)
	api.Aggregated = map[string]*apitest.API{gauges.Group: apitest.New(gauges)}
	return api
}

// epochs are those of kinds, each resolved before.
func epochs(t *testing.T, c *cluster.Cluster, kinds ...cluster.Kind) []string {
	t.Helper()
	found := make([]string, len(kinds))
	for i, kind := range kinds {
		resolved, err := c.Resolve(t.Context(), kind.Group, kind.Version, kind.Resource)
		if err != nil {
			t.Fatal(err)
		}
		if found[i], err = c.EpochOf(t.Context(), resolved, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func TestAggregatedStorageThatGoesBackConcernsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := aggregating().Connect(t)
		all := []cluster.Kind{apitest.Pods, apitest.Jobs, apitest.Widgets, gauges}
		before := epochs(t, c, all...)
		if before[0] != before[1] || before[0] != before[2] || before[0] == before[3] || len(before[3]) != 8 {
			t.Fatalf("the epochs are %q", before)
		}
		c.WentBack(gauges, time.Now().Add(-2*time.Hour), time.Now())
		after := epochs(t, c, all...)
		if after[0] != before[0] || after[2] != before[2] || after[3] == before[3] {
			t.Errorf("after gauges went back they are %q, were %q", after, before)
		}
		c.WentBack(apitest.Widgets, time.Now(), time.Now())
		last := epochs(t, c, all...)
		if last[0] == before[0] || last[0] != last[1] || last[0] != last[2] || last[3] == after[3] {
			t.Errorf("after a restore they are %q, were %q", last, after)
		}
		if identity, err := c.Identity(t.Context()); err != nil || identity != before[0] {
			t.Errorf("the identity is %q, %v", identity, err)
		}
	})
}

// Replicas that move clients between them must not reset them for good, and must never take a name for another history.
func TestReplicasComeToAgreeOnAnAggregatedEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := aggregating()
		one, other, late := api.Connect(t), api.Connect(t), api.Connect(t)
		epoch := func(c *cluster.Cluster) string { return epochs(t, c, gauges)[0] }
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(90 * time.Minute)))
		long := time.Now().Add(-time.Hour)
		first := epoch(one)
		if epoch(other) != first || epoch(late) != first {
			t.Fatal("they begin with different epochs")
		}
		one.WentBack(gauges, long, time.Now())
		second := epoch(one)
		if second == first {
			t.Fatal("the epoch is still the same")
		}
		other.WentBack(gauges, long, time.Now())
		if epoch(other) != second {
			t.Error("two that noticed the same do not agree")
		}
		one.WentBack(gauges, long, time.Now())
		third := epoch(one)
		other.WentBack(gauges, time.Now(), time.Now()) // its store began within the hour: it cannot know which time this was
		late.WentBack(gauges, time.Now(), time.Now())
		for _, name := range []string{epoch(other), epoch(late), first, second} {
			if name == third {
				t.Error("two histories have one name")
			}
		}
		if epoch(late) == second || epoch(late) == epoch(other) {
			t.Error("who does not know what was before takes a name that others have")
		}
		time.Sleep(time.Hour)
		if now := epoch(one); now == third || now == first || now == second || epoch(other) != now || epoch(late) != now {
			t.Errorf("an hour later they are %s, %s and %s", now, epoch(other), epoch(late))
		}
	})
}

// A gateway that may not list APIServices cannot tell storages apart, so any that goes back is taken for the main one.
func TestStoragesAreOneIfTheyCannotBeToldApart(t *testing.T) {
	api := aggregating()
	api.Intercept(func(r *http.Request) *apitest.Fault {
		if strings.HasSuffix(r.URL.Path, "/apiservices") {
			return apitest.Refuse(http.StatusForbidden)
		}
		return nil
	})
	c := api.Connect(t)
	before := epochs(t, c, apitest.Pods, gauges)
	c.WentBack(gauges, time.Now(), time.Now())
	if after := epochs(t, c, apitest.Pods, gauges); before[0] != before[1] || after[0] == before[0] || after[0] != after[1] {
		t.Errorf("%q, before %q", after, before)
	}
}

// Who serves a kind may not be answered just when it is asked, as while the API server begins. The
// kind's versions are not taken for the main storage's then: if they go back, that would reset all
// others, and at this replica alone.
func TestStorageThatIsNotKnownIsNotTakenForTheMainOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := aggregating()
		other := epochs(t, api.Connect(t), apitest.Pods, gauges)
		api.Fail("services", http.StatusInternalServerError)
		c := api.Connect(t)
		if before := epochs(t, c, apitest.Pods, apitest.Jobs); before[0] != other[0] || before[1] != other[0] {
			t.Errorf("built-in kinds: %q, elsewhere %q", before, other)
		}
		kind, err := c.Resolve(t.Context(), gauges.Group, gauges.Version, gauges.Resource)
		if err != nil {
			t.Fatal(err)
		}
		if name, err := c.EpochOf(t.Context(), kind, time.Now()); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("%q, %v", name, err)
		}
		c.WentBack(kind, time.Now().Add(-2*time.Hour), time.Now())
		api.Fail("services", 0)
		if after := epochs(t, c, apitest.Pods, gauges); after[0] != other[0] || after[1] == other[0] || after[1] == other[1] {
			t.Errorf("once it is known: %q, elsewhere %q", after, other)
		}
	})
}
