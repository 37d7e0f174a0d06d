//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// databases are those that can be measured.
var databases = []string{"sqlite", "postgres", "mysql"}

// database is an empty database, and the benchmark's own way into it.
type database struct {
	name    string
	address string // as history.database has it
	dir     string // where its files are
	kept    bool   // its files stay
	server  *dbtest.Server
	db      *sql.DB
}

var errMissing = errors.New("not installed")

// open starts a database.
func (b *bench) open(name string) (d *database, err error) {
	d = &database{name: name}
	if d.dir, err = os.MkdirTemp(b.dir, name+"-"); err != nil {
		return nil, err
	}
	driver, dsn := "sqlite", ""
	switch name {
	case "sqlite":
		file := filepath.Join(d.dir, "history.db")
		if b.kept != "" {
			file, d.dir, d.kept = b.kept, filepath.Dir(b.kept), true
		}
		d.address, dsn = "sqlite://"+file, "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(10000)"
	case "postgres":
		d.server, driver = dbtest.Postgres(), "pgx"
	case "mysql":
		d.server, driver = dbtest.MariaDB(), "mysql"
	default:
		return nil, fmt.Errorf("there is no database %q", name)
	}
	if d.server != nil {
		if d.server.Missing() {
			return nil, errMissing
		}
		d.server.Durable = true
		if err := d.server.Start(); err != nil {
			return nil, err
		}
		d.dir = d.server.Dir()
		if d.address, err = d.server.Create(); err != nil {
			return nil, err
		}
		dsn = d.address
	}
	if name == "mysql" {
		host, database, _ := strings.Cut(strings.TrimPrefix(d.address, "mysql://root@"), "/")
		dsn = "root@tcp(" + host + ")/" + database
	}
	d.db, err = sql.Open(driver, dsn)
	return d, err
}

func (d *database) close() {
	_ = d.db.Close()
	if d.server != nil {
		d.server.Stop()
	}
	if !d.kept {
		_ = os.RemoveAll(d.dir)
	}
}

// each does something with each of the databases that are installed.
func (b *bench) each(wanted []string, do func(*database) error) error {
	for _, name := range wanted {
		if !slices.Contains(databases, name) {
			return fmt.Errorf("there is no database %q", name)
		}
		d, err := b.open(name)
		if errors.Is(err, errMissing) {
			fmt.Fprintf(b.out, "\n%s is left out: it is not installed\n", name)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		err = do(d)
		d.close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// number asks for one number.
func (d *database) number(ctx context.Context, question string) (n int64, err error) {
	err = d.db.QueryRowContext(ctx, question).Scan(&n)
	return n, err
}

// patience bounds each wait.
const patience = 2 * time.Minute

// await waits until so many transitions are there.
func (d *database) await(ctx context.Context, transitions int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		n, err := d.number(ctx, "SELECT seq FROM logs")
		if err == nil && n >= transitions {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("there are %d of %d transitions: %w", n, transitions, errors.Join(err, ctx.Err()))
		}
		time.Sleep(10 * time.Millisecond) // a question takes from the database what it has to write with
	}
}

// forget lets the database, and the system, forget what they have in memory of it.
func (d *database) forget() error {
	if d.server != nil {
		d.server.Kill()
	}
	unix.Sync() // what is not written yet cannot be forgotten
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
	if err == nil && d.server != nil {
		err = d.server.Up()
	}
	return err
}
