package store

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// A server that was restarted, as at an update or when another takes over, has ended all
// connections. Nobody is told of it who asks afterwards: not even by a connection that was used a
// moment ago, and that has statements to forget, since more were asked than it keeps.
func TestARestartedServerIsAskedByNewConnections(t *testing.T) {
	for _, server := range []*dbtest.Server{dbtest.Postgres(), dbtest.MariaDB()} {
		t.Run(server.Kind, func(t *testing.T) {
			if server.Missing() {
				t.Skip("it is not installed")
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			defer server.Stop()
			address, err := server.Create()
			if err != nil {
				t.Fatal(err)
			}
			s := openAt(t, address)
			ask := func(questions int) error {
				var asking errgroup.Group
				for i := range 4 {
					asking.Go(func() error {
						for j := range questions {
							if err := s.Each(t.Context(), func(Scan) error { return nil }, fmt.Sprintf("SELECT %d AS one%d", i, j)); err != nil {
								return err
							}
						}
						return nil
					})
				}
				return asking.Wait()
			}
			if err := ask(600); err != nil {
				t.Fatal(err)
			}
			server.Kill()
			if err := server.Up(); err != nil {
				t.Fatal(err)
			}
			if err := ask(1); err != nil {
				t.Error("after the restart: ", err)
			}
		})
	}
}
