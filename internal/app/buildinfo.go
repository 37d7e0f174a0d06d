package app

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// buildInfo says which release this is.
func buildInfo(version string) prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kubecast_build_info", Help: "1, for the gateway's version and that of Go it was built with.",
	}, []string{"version", "go"})
	info.WithLabelValues(version, runtime.Version()).Set(1)
	return info
}
