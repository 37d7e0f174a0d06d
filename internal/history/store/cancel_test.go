package store

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Who asks and leaves, again and again, has nothing run in the database that nobody waits for.
func TestWhatIsGivenUpRunsNoLonger(t *testing.T) { // what is given up in a file runs in this process
	onServers(t, func(t *testing.T, s *Store) {
		var long, running string
		switch s.dialect.(type) {
		case postgres:
			long, running = "SELECT pg_sleep(300)", "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'"
		case mariadb:
			long, running = "SELECT SUM(a.seq * b.seq) FROM seq_1_to_1000000 a, seq_1_to_1000000 b", "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SUM(a%'"
		default:
			t.Fatalf("it is not known what takes long in a %T", s.dialect)
		}
		for i := range 2 * readers {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if err := s.For(User(fmt.Sprint("mallory", i))).Each(ctx, func(Scan) error { return nil }, long); err == nil {
				t.Error("it does not take long")
			}
			cancel()
		}
		left := 1
		for deadline := time.Now().Add(2 * time.Minute); left > 0; time.Sleep(10 * time.Millisecond) {
			if err := s.For(Recorder("jobs")).QueryRow(t.Context(), running).Scan(&left); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d statements run for nobody", left)
			}
		}
	})
}
