package store

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/history/dbtest"
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
	var open atomic.Bool
	open.Store(true)
	address.Host = passOn(t, address.Host, &open)
	s := openAt(t, address.String())
	running := func() (n int) {
		t.Helper()
		if err := direct.For(Recorder("jobs")).QueryRow(t.Context(), "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND query = '"+long+"'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	wait := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("not within two minutes: ", what)
			}
		}
	}
	ctx, giveUp := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		if err := s.For(User("mallory")).Each(ctx, func(Scan) error { return nil }, long); err == nil {
			t.Error("it does not take long")
		}
	})
	wait("the statement runs", func() bool { return running() == 1 })
	open.Store(false)
	giveUp()
	asking.Wait()
	wait("nothing runs for nobody", func() bool { return running() == 0 })
}

// passOn passes connections on to an address. While it is not open, it closes new ones. It returns its own address.
func passOn(t *testing.T, to string, open *atomic.Bool) string {
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
			if !open.Load() {
				from.Close()
				continue
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
	return listener.Addr().String()
}
