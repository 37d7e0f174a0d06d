package store

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs/dbtest"
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
		waitCount(t, s, running, 0)
	})
}

// TestWhatIsGivenUpEndsThoughNobodySaysSo at a server that can look whether its client is still there: what tells it to end a
// statement comes on a connection of its own, which may not come about, and may be there before the statement is.
func TestWhatIsGivenUpEndsThoughNobodySaysSo(t *testing.T) {
	const long = "SELECT pg_sleep(240)"
	at := dbtest.Addresses["PostgreSQL"](t)
	direct := migrated(t, at)
	address, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	host, refuse := passOn(t, address.Host)
	address.Host = host
	s := openAt(t, address.String())
	const running = "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND query = '" + long + "'"
	ctx, giveUp := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		if err := s.For(User("mallory")).Each(ctx, func(Scan) error { return nil }, long); err == nil {
			t.Error("it does not take long")
		}
	})
	waitCount(t, direct, running, 1)
	refuse()
	giveUp()
	asking.Wait()
	waitCount(t, direct, running, 0)
}

// waitCount waits until so many statements run, as a server says that is asked so.
func waitCount(t *testing.T, s *Store, running string, want int) {
	t.Helper()
	n := -1
	for deadline := time.Now().Add(2 * time.Minute); n != want; time.Sleep(10 * time.Millisecond) {
		if err := s.For(Recorder("jobs")).QueryRow(t.Context(), running).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != want && time.Now().After(deadline) {
			t.Fatalf("%d statements run, not %d", n, want)
		}
	}
}

// passOn passes connections on to an address, and says where; refuse ends that for further ones.
func passOn(t *testing.T, to string) (host string, refuse func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var passing sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		passing.Wait()
	})
	passing.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", to)
			if err != nil {
				from.Close()
				t.Error(err)
				return
			}
			for _, ends := range [][2]net.Conn{{from, upstream}, {upstream, from}} {
				passing.Go(func() {
					_, _ = io.Copy(ends[1], ends[0])
					from.Close()
					upstream.Close()
				})
			}
		}
	})
	return listener.Addr().String(), func() { listener.Close() }
}
