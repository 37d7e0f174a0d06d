package http

import (
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

// gauges are served by a server behind the API server.
var gauges = cluster.Kind{Group: "metering.example.org", Version: "v1", Resource: "gauges", Kind: "Gauge", Namespaced: true, Watchable: true}

// TestReplicaThatIsCutOffWhenTheHourChangesNamesItsOwnHistory: it does not know that an aggregated
// server was restarted, and others do. What it tells has another name than what they tell, whatever
// the hour is.
func TestReplicaThatIsCutOffWhenTheHourChangesNamesItsOwnHistory(t *testing.T) {
	inBubbleOf(t, 2, func(t *testing.T, replicas []*gateway) {
		here, cutOff := replicas[0], replicas[1]
		aggregated := here.api.Aggregated[gauges.Group]
		const path = "/apis/metering.example.org/v1/gauges"
		aggregated.Put("gauges", "a/old")
		aggregated.Put("gauges", "a/both", "spec.of=old")
		here.stream(path).until("synced")
		cutOff.stream(path).until("synced")
		pass(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)) - time.Minute)
		cutOff.way.cut()
		pass(5 * time.Second)
		aggregated.Renumber(1)
		aggregated.Delete("gauges", "a/old")
		knows := func(what string) {
			here.eventually(what, func() bool {
				_, version := here.known(gauges.String())
				return version == aggregated.Version()
			})
		}
		knows("versions went back")
		aggregated.Skip(1500) // so that they are beyond those that were
		aggregated.Put("gauges", "a/both", "spec.of=new")
		knows("what is new")
		for _, after := range []time.Duration{0, time.Minute + 30*time.Second, 10 * time.Minute} {
			pass(after)
			position := cutOff.stream(path).until("synced").id
			moved := here.stream(path, "Last-Event-ID: "+position)
			if f := moved.next(); f.event != "reset" {
				t.Fatalf("%v: a client that knows the old history moves with %s, and is told %q", time.Now(), position, f.raw)
			}
		}
	}, cached(streamOptions()), before(func(api *apitest.API) {
		if api.Aggregated == nil {
			api.Aggregated = map[string]*apitest.API{gauges.Group: apitest.New(gauges)}
		}
	}))
}
