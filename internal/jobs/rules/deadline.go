package rules

import (
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

// deadlines are where kinds say how long a job may take, in seconds or as a duration.
var deadlines = []string{"activeDeadlineSeconds", "runPolicy.activeDeadlineSeconds", "timeout", "timeouts.pipeline"}

// Deadline is how long a job may take, as its object says; 0 if it says nothing.
func Deadline(o *cluster.Object) time.Duration {
	spec := o.Path("spec")
	for _, path := range deadlines {
		switch value := spec.Get(path); value.Type {
		case gjson.Number:
			if seconds := value.Int(); seconds > 0 && seconds < int64(100*365*24*time.Hour/time.Second) {
				return time.Duration(seconds) * time.Second
			}
		case gjson.String:
			if d, err := time.ParseDuration(value.Str); err == nil && d > 0 {
				return d
			}
		}
	}
	return 0
}
