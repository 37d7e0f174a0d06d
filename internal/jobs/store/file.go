package store

import (
	"context"
	"database/sql/driver"
	"os"

	sqlitedriver "modernc.org/sqlite"
)

// file is a SQLite file. It has the names, owners and messages of all tenants' jobs, so nobody but
// the gateway's own user may read it.
type file struct{ name, path string }

// Connect implements driver.Connector. SQLite gives the files that it makes beside this one the same mode.
func (f file) Connect(context.Context) (driver.Conn, error) {
	f.close()
	return f.Driver().Open(f.name)
}

func (file) Driver() driver.Driver { return &sqlitedriver.Driver{} }

// close takes the file from others, also one that an earlier gateway left open to them. Where it
// cannot be made, opening it says why. One that belongs to somebody else is theirs to close.
func (f file) close() {
	if made, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		made.Close()
		return
	}
	for _, path := range []string{f.path, f.path + "-wal", f.path + "-shm"} {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			_ = os.Chmod(path, info.Mode().Perm()&^0o077)
		}
	}
}
