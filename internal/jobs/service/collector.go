package service

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/jobs/recorder"
	"github.com/kubecast/kubecast/internal/stream"
)

// collector tells Prometheus, at each scrape, what the recorders do.
type collector Service

func recorderMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("kubecast_"+name, help, []string{"cluster", "kind"}, nil)
}

var (
	descReady     = prometheus.NewDesc("kubecast_history_ready", "1 once the database's schema is as this gateway needs it.", nil, nil)
	descRefused   = prometheus.NewDesc("kubecast_history_schema_refused", "1 while the database has a schema that this gateway must not use: another release has changed it, or it was not brought up to date.", nil, nil)
	descRecording = recorderMetric("history_recording", "1 where this replica records; the sum over all replicas is 1.")
	descVersions  = recorderMetric("history_lag_versions", "By how many versions what is recorded is behind the newest change; what lies further back than the API server remembers (five minutes) will be late; not told by a replica on standby.")
	descSeconds   = recorderMetric("history_lag_seconds", "For how long there has been something that is not recorded; not told by a replica on standby.")
	descFollowers = recorderMetric("history_followers", "Streams that follow a history at this replica.")
	descFollowAge = recorderMetric("history_followers_age_seconds", "For how long it has not been known what a history has: what was recorded since is not told. Only while somebody follows it.")
	descJobs      = recorderMetric("history_living_jobs", "Jobs that are not deleted, as the recorder keeps them in memory.")
)

func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descReady, descRefused, descRecording, descVersions, descSeconds, descJobs, descFollowers, descFollowAge} {
		descs <- d
	}
}

func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	a := (*Service)(c)
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	ready := 0.0
	select {
	case <-a.ready:
		ready = 1
	default:
	}
	gauge(descReady, ready)
	refused := 0.0
	if a.database.Refused() != nil {
		refused = 1
	}
	gauge(descRefused, refused)
	for of, f := range a.tails.followed() {
		gauge(descFollowers, float64(f.readers), of[:]...)
		gauge(descFollowAge, f.age.Seconds(), of[:]...)
	}
	told := map[[2]string]bool{}
	for _, r := range slices.Backward(a.running()) {
		now, of := r.Status(), [2]string{r.Cluster(), r.Resource()}
		if told[of] { // a cluster that is being replaced has two recorders
			continue
		}
		told[of] = true
		labels := of[:]
		if now.Phase == recorder.Standby {
			gauge(descRecording, 0, labels...)
			continue
		}
		recording, versions, seconds := 0.0, 0.0, 0.0
		if now.Phase == recorder.Recording {
			recording = 1
		}
		if now.Behind {
			seconds = time.Since(now.Caught).Seconds()
			if _, changed := r.Store().View(stream.AllNamespaces()); now.Version != 0 && changed.Version > now.Version {
				versions = float64(changed.Version - now.Version)
			}
		}
		gauge(descRecording, recording, labels...)
		gauge(descVersions, versions, labels...)
		gauge(descSeconds, seconds, labels...)
		gauge(descJobs, float64(now.Jobs), labels...)
	}
}

// running are the recorders that run now.
func (a *Service) running() []*recorder.Recorder {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.recorders)
}
