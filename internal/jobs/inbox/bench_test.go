package inbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// What the inbox costs the history: batches of 500 lives of a job, of three transitions each, by a thousand owners.
func BenchmarkWritingTheHistory(b *testing.B) {
	for name, address := range dbtest.Addresses {
		for _, c := range []struct {
			name   string
			owner  func(n int) string
			states []jobs.State
		}{
			{"no owners", func(int) string { return "" }, nil},
			{"nobody wants it", func(n int) string { return fmt.Sprintf("user-%d", n%1000) }, []jobs.State{}},
			{"each end is told", func(n int) string { return fmt.Sprintf("user-%d", n%1000) }, nil},
		} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				r := openAt(b, address(b), Options{States: c.states})
				log, n := r.begun(b, "jobs.batch"), 0
				b.ResetTimer()
				began := time.Now()
				for b.Loop() {
					log = r.write(b, log, func(batch *store.Batch) {
						for range 500 {
							n++
							end(batch, c.owner(n*7), fmt.Sprintf("j%d", n), "Pending", "Running", "Failed")
						}
					})
				}
				b.ReportMetric(float64(3*n)/time.Since(began).Seconds(), "transitions/s")
			})
		}
	}
}
