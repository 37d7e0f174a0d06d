package recorder

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
)

// dated is an API server whose clock is ahead of the gateway's.
type dated struct {
	api   *apitest.API
	ahead time.Duration
}

func (d dated) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.api.RoundTrip(request)
	if err == nil {
		response.Header.Set("Date", time.Now().Add(d.ahead).UTC().Format(http.TimeFormat))
	}
	return response, err
}

// The API server dates creations, the gateway what follows, and the controller claims when a job
// ended; each has a clock of its own. All spans are of the API server's, and the next gateway,
// which has another clock, goes on with it.
func TestSpansAreOfOneClockWhateverGatewaysAndControllersHave(t *testing.T) {
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		for _, claims := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				world, db := newWorld()
				time.Sleep(time.Hour)
				gateway := func(name string) *replica {
					connection, err := cluster.Connect(cluster.Options{Name: "test", Config: &rest.Config{Host: "http://api.test", Transport: dated{world.api, ahead}}})
					if err != nil {
						t.Fatal(err)
					}
					return startOn(t, connection, db, name, ring)
				}
				text := func(at time.Time) string { return at.Add(ahead).UTC().Format(time.RFC3339) }
				first := gateway("a")
				time.Sleep(time.Minute)
				created := "metadata.creationTimestamp=" + text(time.Now())
				put := func(state jobs.State, more ...string) {
					world.api.Put("jobs", "n/a", append(append([]string{created}, lives[state]...), more...)...)
					time.Sleep(time.Minute)
				}
				put(jobs.Submitted)
				put(jobs.Running)
				first.stop()
				second := gateway("b")
				time.Sleep(time.Minute)
				claim := text(time.Now().Add(claims))
				put(jobs.Succeeded, `status.conditions:=[{"type":"Complete","status":"True","lastTransitionTime":"`+claim+`"}]`, "status.completionTime="+claim)
				second.stop()
				told := db.told()
				if len(told) != 3 {
					t.Fatal(linesOf(told))
				}
				for i, want := range []time.Duration{time.Minute, 2 * time.Minute} {
					if took := told[i+1].At.Std().Sub(told[i].At.Std()); (took - want).Abs() > time.Second {
						t.Errorf("API server %v, controller %v: %s for %v, which was %v", ahead, claims, told[i].To, took, want)
					}
				}
			})
		}
	}
}

// What ended while no gateway was there is dated by what the controller claims, be its clock ahead
// or behind: never before it ran, and never to come.
func TestClaimsOfWhatWasMissedLieBetweenWhatIsKnown(t *testing.T) {
	for _, claims := range []time.Duration{10 * time.Minute, 0, -10 * time.Minute} {
		for _, forgotten := range []bool{false, true} { // then it is found late, else it is read again
			synctest.Test(t, func(t *testing.T) {
				world, db := newWorld()
				time.Sleep(time.Hour)
				first := start(t, world.api, db, "a", ring)
				time.Sleep(time.Minute)
				world.api.Put("jobs", "n/a", lives[jobs.Running]...)
				time.Sleep(time.Second)
				first.stop()
				time.Sleep(time.Minute)
				claim := time.Now().Add(claims).UTC().Format(time.RFC3339)
				world.api.Put("jobs", "n/a", `status.conditions:=[{"type":"Complete","status":"True","lastTransitionTime":"`+claim+`"}]`)
				ended := time.Now()
				time.Sleep(time.Minute)
				if forgotten {
					world.api.Put("jobs", "n/b")
					world.api.Compact()
				}
				second := start(t, world.api, db, "b", ring)
				time.Sleep(time.Minute)
				second.stop()
				var end *jobs.Transition
				for _, tr := range db.told() {
					if tr.To == jobs.Succeeded {
						end = &tr
					}
				}
				switch began := db.told()[0].At; {
				case end == nil || end.Late != forgotten:
					t.Errorf("claim %v: %+v", claims, end)
				case end.At < began || end.At > end.Observed:
					t.Errorf("claim %v: it ended at %v, began at %v, and was seen at %v", claims, end.At.Std(), began.Std(), end.Observed.Std())
				case claims == 0 && end.At.Std().Sub(ended).Abs() > time.Second:
					t.Errorf("it ended at %v, not at %v", end.At.Std(), ended)
				}
			})
		}
	}
}
