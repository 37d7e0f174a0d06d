package table

import (
	"time"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubecast/kubecast/internal/cluster"
)

// measuredColumns are those of metrics-server, which measures exactly these two resources.
func measuredColumns() columns {
	return columns{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the resource"},
		{Name: "cpu", Type: "string", Format: "quantity"},
		{Name: "memory", Type: "string", Format: "quantity"},
		{Name: "Window", Type: "string", Format: "duration"},
	}
}

// printMeasured prints what a node uses, or what all containers of a pod use together.
func printMeasured(r *row, o *cluster.Object) {
	r.name(o)
	for _, name := range []string{"cpu", "memory"} {
		var used resource.Quantity
		add := func(usage gjson.Result) {
			if q, err := resource.ParseQuantity(usage.Get(name).String()); err == nil {
				used.Add(q)
			}
		}
		add(o.Path("usage"))
		each(o.Path("containers"), func(container gjson.Result) bool {
			add(container.Get("usage"))
			return true
		})
		r.text(used.String())
	}
	window, _ := time.ParseDuration(o.Path("window").Str) // 0 if it says none
	r.text(window.String())
}
