// Package dbtest runs real PostgreSQL and MariaDB servers for tests and benchmarks: private ones on
// loopback, in a temporary directory, that end with the program, also when it is killed.
package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// patience bounds the start of a server, on a machine that is busy.
const patience = time.Minute

// Server is a database server.
type Server struct {
	// Kind is postgres or mysql.
	Kind string
	// Durable lets the server wait for its disk at each commit, and gives it memory as one in
	// earnest has. Else it saves both.
	Durable bool

	missing string // why it cannot be started here
	prepare func(dir string, run func(name string, args ...string) error) error
	command func(dir string, port int) []string
	account string // as root it runs as this user
	quit    string // the signal that ends it at once

	dir   string
	port  int
	stdin io.Closer
	done  chan struct{}
}

var databases atomic.Int64

// Postgres is a PostgreSQL server.
func Postgres() *Server {
	s := &Server{Kind: "postgres", account: "postgres", quit: "QUIT"}
	initdb, server := find("initdb"), find("postgres")
	if initdb == "" || server == "" {
		s.missing = "PostgreSQL is not installed"
	}
	s.prepare = func(dir string, run func(string, ...string) error) error {
		return run(initdb, "-D", filepath.Join(dir, "data"), "-U", "root", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
	}
	s.command = func(dir string, port int) []string {
		fsync, buffers := "fsync=off", "shared_buffers=128MB"
		if s.Durable {
			fsync, buffers = "fsync=on", "shared_buffers=2GB"
		}
		return []string{server, "-D", filepath.Join(dir, "data"), "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-k", dir, "-c", "max_connections=200", "-c", "max_wal_size=4GB", "-c", fsync, "-c", buffers}
	}
	return s
}

// MariaDB is a MariaDB server.
func MariaDB() *Server {
	s := &Server{Kind: "mysql", account: "mysql", quit: "KILL"}
	install, server := find("mariadb-install-db"), find("mariadbd")
	if install == "" || server == "" {
		s.missing = "MariaDB is not installed"
	}
	s.prepare = func(dir string, run func(string, ...string) error) error {
		return run(install, "--no-defaults", "--datadir="+filepath.Join(dir, "data"), "--auth-root-authentication-method=normal", "--skip-test-db")
	}
	s.command = func(dir string, port int) []string {
		// A table is no file of its own, and nothing waits for the disk: most of what a test has a server do is to make and
		// drop tables, which cost three times as much otherwise.
		more := []string{"--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=256M", "--innodb-file-per-table=0", "--debug-no-sync"}
		if s.Durable {
			more = []string{"--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=2G"}
		}
		// A server that starts removes all temporary tables that it finds, so it is to find none of another.
		return append([]string{server, "--no-defaults", "--datadir=" + filepath.Join(dir, "data"), "--tmpdir=" + filepath.Join(dir, "data"), "--bind-address=127.0.0.1", "--port=" + strconv.Itoa(port),
			"--socket=" + filepath.Join(dir, "socket"), "--pid-file=" + filepath.Join(dir, "pid"), "--max-connections=200"}, more...)
	}
	return s
}

// find is a server's program, which Debian keeps off the PATH.
func find(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, pattern := range []string{"/usr/sbin/" + name, "/usr/lib/postgresql/*/bin/" + name} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	return ""
}

// Missing reports whether the server is not installed, or the tests are short ones.
func (s *Server) Missing() bool { return s.absent() != "" }

// absent is why tests do without the server; "" if they do not. Short ones, which `make check` runs, start none.
func (s *Server) absent() string {
	if testing.Testing() && testing.Short() {
		return "short tests start no database server"
	}
	return s.missing
}

// Start starts the server, for the tests of a whole package; Stop has to follow. Where it is missing it does nothing.
func (s *Server) Start() error {
	if s.Missing() {
		return nil
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "kubecast-"+s.Kind+"-"); err != nil {
		return err
	}
	credential, err := s.credential()
	if err != nil {
		return err
	}
	if credential != nil {
		if err := os.Chown(s.dir, int(credential.Uid), int(credential.Gid)); err != nil {
			return err
		}
	}
	if err := s.prepare(s.dir, func(name string, args ...string) error {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.SysProcAttr = s.dir, &syscall.SysProcAttr{Credential: credential}
		cmd.Env = append(os.Environ(), "TMPDIR="+s.dir) // it may not write into this process's
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, out)
		}
		return nil
	}); err != nil {
		return err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.port = free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		return err
	}
	return s.Up()
}

// credential is the user as whom the server runs, nil for one's own: none of them runs as root.
func (s *Server) credential() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup(s.account)
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}

// Up starts the server again, after Kill.
func (s *Server) Up() error {
	credential, err := s.credential()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	// The shell ends the server when its own input ends, as it does with this process, however that ends.
	cmd := exec.Command("sh", append([]string{"-c", `"$@" </dev/null & p=$!; cat >/dev/null; kill -` + s.quit + ` $p; wait $p`, "sh"}, s.command(s.dir, s.port)...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential, Setpgid: true}
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		_ = cmd.Wait() // it was killed
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if err = s.admin(func(db *sql.DB) error { return db.Ping() }); err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("%s does not come up: %w: %s", s.Kind, err, text)
		}
	}
}

// Kill ends the server as a crash does.
func (s *Server) Kill() {
	_ = s.stdin.Close()
	<-s.done
}

// Stop ends the server, and removes what is left of it.
func (s *Server) Stop() {
	if s.done == nil {
		return
	}
	s.Kill()
	_ = os.RemoveAll(s.dir)
}

// admin does something as the administrator.
func (s *Server) admin(do func(*sql.DB) error) error {
	driver, dsn := "mysql", fmt.Sprintf("root@tcp(127.0.0.1:%d)/", s.port)
	if s.Kind == "postgres" {
		driver, dsn = "pgx", fmt.Sprintf("postgres://root@127.0.0.1:%d/postgres?sslmode=disable", s.port)
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

// Exec has the administrator say something.
func (s *Server) Exec(t testing.TB, statement string) {
	t.Helper()
	if err := s.exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func (s *Server) exec(statement string) error {
	return s.admin(func(db *sql.DB) error {
		_, err := db.ExecContext(context.Background(), statement)
		return err
	})
}

// Create makes an empty database, which lasts as long as the server, and gives its address.
func (s *Server) Create() (address string, err error) {
	name := fmt.Sprintf("test%d", databases.Add(1))
	return s.Address(name, "root", ""), s.exec("CREATE DATABASE " + name)
}

// Dir is where the server's files are.
func (s *Server) Dir() string { return s.dir }

// Database makes an empty database and gives its address. The test is skipped where the server is not installed.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	if absent := s.absent(); absent != "" {
		t.Skip(absent)
	}
	name := fmt.Sprintf("test%d", databases.Add(1))
	s.Exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		if s.Kind == "postgres" {
			name += " WITH (FORCE)"
		}
		s.Exec(t, "DROP DATABASE "+name)
	})
	return s.Address(name, "root", "")
}

// Role makes a user who has no right yet, and gives its name as statements have it, and the address
// of a database for it.
func (s *Server) Role(t testing.TB, name, database string) (role, address string) {
	t.Helper()
	at, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	role, create := `"`+name+`"`, "CREATE ROLE %s LOGIN PASSWORD 'x'"
	if s.Kind == "mysql" {
		role, create = "'"+name+"'@'%'", "CREATE USER %s IDENTIFIED BY 'x'"
	}
	s.Exec(t, fmt.Sprintf(create, role))
	return role, s.Address(strings.TrimPrefix(at.Path, "/"), name, "x")
}

// Address is that of a database for a user.
func (s *Server) Address(database, name, password string) string {
	u := url.URL{Scheme: s.Kind, Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/" + database, User: url.User(name)}
	if password != "" {
		u.User = url.UserPassword(name, password)
	}
	if s.Kind == "postgres" {
		u.RawQuery = "sslmode=disable"
	}
	return u.String()
}
