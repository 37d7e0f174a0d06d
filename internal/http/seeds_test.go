package http

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
)

// playSeeds plays some seeds, or as many as there is time for.
func playSeeds(t *testing.T, few uint64, play func(t *testing.T, seed uint64)) {
	t.Helper()
	first, lasting := apitest.Soak(t, 0)
	began := time.Now()
	for seed := first; seed < first+few || time.Since(began) < lasting; seed++ {
		stuck := time.AfterFunc(modelPatience, func() { panic(fmt.Sprintf("seed %d has no end", seed)) })
		clean := t.Run(fmt.Sprint(seed), func(t *testing.T) { play(t, seed) })
		stuck.Stop()
		if !clean {
			t.Fatalf("seed %d found something, after %v; KUBECAST_SEED=%[1]d shows it again", seed, time.Since(began).Round(time.Second))
		}
	}
}

// modelPatience is how long a seed may take by the clock on the wall. It takes seconds; whoever
// waits for it would learn nothing from one that goes on for ever in virtual time.
const modelPatience = 10 * time.Minute
