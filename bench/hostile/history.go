//go:build linux

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// histories are where the gateway may keep its history.
var histories = []string{"none", "sqlite", "postgres"}

// openHistory starts the server of the history's database, if it needs one.
func (b *bench) openHistory() error {
	if !slices.Contains(histories, b.history) {
		return fmt.Errorf("there is no history %q", b.history)
	}
	if b.history != "postgres" {
		return nil
	}
	b.database = dbtest.Postgres()
	if b.database.Missing() {
		return errors.New("PostgreSQL is not installed")
	}
	b.database.Durable = true
	return b.database.Start()
}

func (b *bench) closeHistory() {
	if b.database != nil {
		b.database.Stop()
	}
}

// historyConfig is the part of a gateway's configuration that gives it a database of its own.
func (b *bench) historyConfig(dir string) (config string, err error) {
	address := "none"
	switch b.history {
	case "none":
		return "", nil // internal/gateway says so
	case "sqlite":
		address = "sqlite://" + filepath.Join(dir, "history.db")
	case "postgres":
		if address, err = b.database.Create(); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("history: {database: %q}\nnotifications: {states: [Suspended, Pending]}\n", address), nil
}
