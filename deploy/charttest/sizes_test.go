package charttest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// What is said of pods and streams must come to the memory and replicas that docs/operations.md, "Sizes", has the figures for; what
// only several replicas need must not be there with one.
func TestSizesFollowFromWhatIsSaid(t *testing.T) {
	replicas, memory, grace := regexp.MustCompile(`\n  replicas: (\d+)`), regexp.MustCompile(`limits: \{memory: (\w+)\}`), regexp.MustCompile(`GracePeriodSeconds: (\d+)`)
	const keys = "keys: {existingSecret: k}, "
	for values, want := range map[string]struct {
		replicas, memory, grace string
		budget                  bool
	}{
		"{}": {"1", "512Mi", "40", false},
		"{" + keys + "size: {pods: 100000, streams: 1000}}":                                    {"2", "1152Mi", "40", true},
		"{" + keys + "size: {streams: 35000}}":                                                 {"4", "1024Mi", "40", true},
		"{" + keys + "replicas: 0}":                                                            {"0", "512Mi", "40", false},
		"{" + keys + "replicas: 1}":                                                            {"1", "512Mi", "40", false},
		"{" + keys + "config: {history: {database: sqlite}}}":                                  {"1", "512Mi", "40", false},
		"{" + keys + "config: {ring: {bytes: 1Gi}, drain: 0s}}":                                {"2", "2944Mi", "20", true},
		"{" + keys + "config: {ring: {bytes: 1073741824}}}":                                    {"2", "2944Mi", "40", true},
		"{" + keys + "config: {drain: 1m30.5s}, preStopSeconds: 0}":                            {"2", "512Mi", "106", true},
		"{" + keys + "autoscaling: {enabled: true, streamsPerReplica: 10000}}":                 {"", "1344Mi", "40", true},
		"{" + keys + "autoscaling: {enabled: true, minReplicas: 1, streamsPerReplica: 1}}":     {"", "512Mi", "40", false},
		"{" + keys + "clusters: [{name: a, existingSecret: b}, {name: c, existingSecret: d}]}": {"2", "832Mi", "40", true},
		"terminationGracePeriodSeconds: 30":                                                    {"1", "512Mi", "30", false},
	} {
		files, err := render4(parse(t, values))
		if err != nil {
			t.Error(values, err)
			continue
		}
		deployment := files["kubecast/templates/deployment.yaml"]
		first := func(of *regexp.Regexp) string {
			if found := of.FindStringSubmatch(deployment); found != nil {
				return found[1]
			}
			return ""
		}
		budget := strings.Contains(files["kubecast/templates/availability.yaml"], "PodDisruptionBudget")
		if first(replicas) != want.replicas || first(memory) != want.memory || first(grace) != want.grace || budget != want.budget {
			t.Errorf("%s: %q replicas, %s, %s s, budget %v, not %v", values, first(replicas), first(memory), first(grace), budget, want)
		}
	}
}

// The limit must be above what was measured: the most that a process took while it read so many pods (go run ./bench/memory -pods N), the
// heap of two full rings (-rings), and streams over HTTP/2, 50 a connection (go run ./bench/fanout -only tls), with a quarter more.
func TestTheMemoryLimitIsAboveWhatWasMeasured(t *testing.T) {
	const rings, stream = 2 * 71, 37.3 / 1024
	limit := regexp.MustCompile(`limits: \{memory: (\d+)Mi\}`)
	for _, m := range []struct{ pods, streams, most int }{{5000, 0, 70}, {20000, 0, 160}, {20000, 10000, 160}, {5000, 1000, 70}} {
		files, err := render4(parse(t, fmt.Sprintf("{keys: {existingSecret: k}, size: {pods: %d, streams: %d}}", m.pods, m.streams)))
		if err != nil {
			t.Fatal(err)
		}
		found := limit.FindStringSubmatch(files["kubecast/templates/deployment.yaml"])
		if found == nil {
			t.Fatal("no limit")
		}
		// While one of two replicas is missing, the other has all streams.
		needed := 1.25 * (float64(m.most+rings) + stream*float64(m.streams))
		if got, _ := strconv.ParseFloat(found[1], 64); got < needed {
			t.Errorf("%d pods and %d streams: %g MiB, but %.0f are needed", m.pods, m.streams, got, needed)
		}
	}
}
