package authtest

import (
	"context"
	"sync"
	"testing"
)

// Run runs something in the background until the test or its synctest bubble ends, and waits for
// its end. An error of it fails the test.
func Run(t testing.TB, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}
