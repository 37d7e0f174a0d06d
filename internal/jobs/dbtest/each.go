package dbtest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The servers that all tests of a package share; Main starts them.
var (
	PostgreSQL = Postgres()
	Maria      = MariaDB()
)

// Addresses are those of an empty database of each sort that the gateway can write to.
var Addresses = map[string]func(testing.TB) string{
	"SQLite":     func(t testing.TB) string { return "sqlite://" + t.TempDir() + "/h.db" },
	"PostgreSQL": PostgreSQL.Database,
	"MariaDB":    Maria.Database,
}

// Each runs a test at the address of an empty database of each sort.
func Each(t *testing.T, test func(t *testing.T, address string)) {
	for name, address := range Addresses {
		t.Run(name, func(t *testing.T) { test(t, address(t)) })
	}
}

// Main is the TestMain of a package whose tests write to databases: it starts the servers, and ends
// with failure if a goroutine is left.
func Main(m *testing.M) {
	flag.Parse() // whether the tests are short
	for _, server := range []*Server{PostgreSQL, Maria} {
		if err := server.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	PostgreSQL.Stop()
	Maria.Stop()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
