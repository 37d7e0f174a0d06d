package table

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

// scaleTargets prints what an autoscaler measures, and what it aims at: two of its metrics, and how
// many more there are.
func scaleTargets(r *row, o *cluster.Object) {
	metrics, measured := o.Path("spec.metrics").Array(), o.Path("status.currentMetrics").Array()
	if o.Path("apiVersion").Str == "autoscaling/v1" {
		metrics, measured = oldMetrics(o)
	}
	var targets []string
	for i, metric := range metrics {
		var now gjson.Result
		if i < len(measured) {
			now = measured[i]
		}
		targets = append(targets, scaleTarget(metric, now))
	}
	switch {
	case len(targets) == 0:
		r.text(none)
	case len(targets) > 2:
		r.text(fmt.Sprintf("%s + %d more...", strings.Join(targets[:2], ", "), len(targets)-2))
	default:
		r.text(strings.Join(targets, ", "))
	}
}

// oldMetrics are the metrics of autoscaling/v1, which has a field for one only, the use of CPU. All others are
// in annotations. Which of them came before the CPU is not said; mostly it is the first.
func oldMetrics(o *cluster.Object) (metrics, measured []gjson.Result) {
	const prefix = "autoscaling.alpha.kubernetes.io/"
	cpu := func(member string, percent gjson.Result) gjson.Result {
		return gjson.Parse(`{"type":"Resource","resource":{"name":"cpu","` + member + `":` + percent.Raw + `}}`)
	}
	if percent := o.Path("spec.targetCPUUtilizationPercentage"); isSet(percent) {
		metrics = append(metrics, cpu("targetAverageUtilization", percent))
	}
	metrics = append(metrics, gjson.Parse(annotation(o, prefix+"metrics").Str).Array()...)
	if current := annotation(o, prefix+"current-metrics"); current.Exists() {
		measured = gjson.Parse(current.Str).Array()
	} else if percent := o.Path("status.currentCPUUtilizationPercentage"); isSet(percent) {
		measured = append(measured, cpu("currentAverageUtilization", percent))
	}
	return metrics, measured
}

// scaleTarget is one metric: what it is, and should be. Its members have other names in the
// annotations of autoscaling/v1.
func scaleTarget(metric, now gjson.Result) string {
	kind := metric.Get("type").Str
	member, known := map[string]string{
		"External": "external", "Pods": "pods", "Object": "object", "Resource": "resource", "ContainerResource": "containerResource",
	}[kind]
	if !known {
		return "<unknown type>"
	}
	source, measured := metric.Get(member), now.Get(member)
	average := firstSet(source, "target.averageValue", "targetAverageValue", "averageValue")
	isAverage := firstSet(measured, "current.averageValue", "currentAverageValue", "averageValue")
	prefix := ""
	if strings.HasSuffix(kind, "Resource") {
		prefix = source.Get("name").Str + ": "
	}
	switch {
	case kind == "Pods", isSet(average) && prefix != "":
		return prefix + amountIf(measured, isAverage) + "/" + quantity(average.Str)
	case prefix != "":
		return prefix + percentOr(firstSet(measured, "current.averageUtilization", "currentAverageUtilization"), unknown) + "/" +
			percentOr(firstSet(source, "target.averageUtilization", "targetAverageUtilization"), "<auto>")
	case isSet(average):
		return amountIf(isAverage, isAverage) + "/" + quantity(average.Str) + " (avg)"
	}
	return amountIf(measured, firstSet(measured, "current.value", "currentValue")) + "/" + quantity(firstSet(source, "target.value", "targetValue").Str)
}

// firstSet is the first value that is there.
func firstSet(of gjson.Result, paths ...string) (value gjson.Result) {
	for _, path := range paths {
		if value = of.Get(path); isSet(value) {
			return value
		}
	}
	return gjson.Result{}
}

// amountIf is an amount if something is there, of which it may be left out.
func amountIf(there, amount gjson.Result) string {
	if !isSet(there) {
		return unknown
	}
	return quantity(amount.Str)
}

func percentOr(value gjson.Result, otherwise string) string {
	if !isSet(value) {
		return otherwise
	}
	return value.Raw + "%"
}
