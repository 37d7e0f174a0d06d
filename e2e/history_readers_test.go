package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
)

// pastReader reads a history, from any of the gateways that share the database.
type pastReader struct {
	wanderer
	record *record

	mu   sync.Mutex
	last uint64 // the number of the last transition
	err  error  // something was told twice, or passed over
}

// count is up to which transition it was told.
func (f *pastReader) count() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int(f.last), nil
}

// follow follows each record's history until the returned function is called, which waits until all is told that is
// recorded by then.
func (s *stage) follow(t *testing.T, random *rand.Rand, records []*record) (finish func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	token := s.viewer(t)
	var all []*pastReader
	var following sync.WaitGroup
	for _, r := range records {
		for range 2 {
			f, random := &pastReader{record: r, wanderer: wanderer{path: "/history/apis/batch/v1/jobs?limit=1000", urls: r.urls(), token: token}}, rand.New(rand.NewPCG(random.Uint64(), 0))
			all = append(all, f)
			following.Go(func() {
				f.wander(ctx, random, f.note)
			})
		}
	}
	return func() {
		for _, f := range all {
			var recorded uint64
			if err := f.record.db.QueryRow("SELECT seq FROM logs WHERE resource = 'jobs.batch'").Scan(&recorded); err != nil {
				t.Fatal(err)
			}
			advancing(t, "all of "+f.record.name+" is told", f.count, func() error {
				f.mu.Lock()
				defer f.mu.Unlock()
				if f.err == nil && f.last < recorded {
					return fmt.Errorf("only up to %d of %d", f.last, recorded)
				}
				return nil
			})
		}
		cancel()
		following.Wait()
		for _, f := range all {
			if f.err != nil || f.cuts < 3 {
				t.Errorf("%s: %v, after %d connections", f.record.name, f.err, f.cuts)
			}
		}
	}
}

func (f *pastReader) note(read frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch read.event {
	case "reset":
		f.err = fmt.Errorf("a %+v behind %d", read, f.last)
	case "transition":
		var told struct{ Seq string }
		if err := json.Unmarshal([]byte(read.data), &told); err != nil {
			f.err = err
		}
		seq, err := strconv.ParseUint(told.Seq, 10, 64)
		if err != nil || f.last != 0 && seq != f.last+1 {
			f.err = fmt.Errorf("%s follows %d", told.Seq, f.last)
		}
		f.last = seq
	}
}
