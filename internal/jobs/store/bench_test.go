package store

import (
	"fmt"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// BenchmarkWrite writes what a recorder reads at once: the lives of many jobs, four transitions
// each, in one transaction.
func BenchmarkWrite(b *testing.B) {
	for _, name := range []string{"SQLite", "PostgreSQL", "MariaDB"} {
		for _, jobsAtOnce := range []int{1, 128} {
			b.Run(fmt.Sprintf("%s/%d", name, 4*jobsAtOnce), func(b *testing.B) {
				s := openAt(b, dbtest.Addresses[name](b))
				if err := s.Migrate(b.Context()); err != nil {
					b.Fatal(err)
				}
				log, to := take(b, s, "bench"), uint64(0)
				for b.Loop() {
					to++
					log = write(b, s, log, seen(to, "namespace", "owner", numbered(fmt.Sprint(to, "-"), jobsAtOnce),
						jobs.Submitted, jobs.Pending, jobs.Running, jobs.Succeeded))
				}
				b.ReportMetric(float64(log.Seq)/b.Elapsed().Seconds(), "transitions/s")
			})
		}
	}
}
