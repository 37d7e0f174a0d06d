package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/kubecast/kubecast/internal/tracing"
)

// Options say where the database is.
type Options struct {
	// Address is a file in StateDir ("sqlite"), sqlite:///path, postgres://… as libpq has it, or
	// mysql://user@host:port/database with tls=true, tls=skip-verify, or ca= a file of
	// certificates.
	Address  string
	StateDir string
	// PasswordFile has the password for an address without one. It is read for each connection, so it may change.
	PasswordFile string
	Writers      []Writer // called in order
	// KeepBudget is how many bytes of specs and logs are kept of each namespace of a cluster in a day; 0: no bound.
	KeepBudget int64
	Tracer     *tracing.Tracer // nil: there are no traces
	// Release is what the database is told has changed its schema, for people.
	Release string
}

// Redacted is the database's address as it is shown to people, without a password or parameters.
func (o Options) Redacted() string {
	if o.Address == "sqlite" {
		return o.File()
	}
	address, err := url.Parse(o.Address)
	if err != nil {
		return "" // New refuses such an address
	}
	shown := &url.URL{Scheme: address.Scheme, Host: address.Host, Path: address.Path}
	if name := address.User.Username(); name != "" {
		shown.User = url.User(name)
	}
	return shown.String()
}

// File is the path of SQLite's file; empty: a server.
func (o Options) File() string {
	if o.Address == "sqlite" {
		return filepath.Join(o.StateDir, fileName)
	}
	if address, err := url.Parse(o.Address); err == nil && address.Scheme == "sqlite" {
		return address.Path
	}
	return ""
}

// fileName is the name of the SQLite file in the state directory.
const fileName = "history.db"

// Store is a database, used in the name of somebody (see For). Its methods may be called
// concurrently, and fail while the database is away. What a function is given that reads rows must
// not use the Store itself, or it could wait for its own turn.
type Store struct {
	*database
	quotaOwner QuotaOwner
}

// database is what all that use a database share.
type database struct {
	recorders, reads, writes *sql.DB // connections: recorders', and everybody else's to read and to write

	turns   turns
	dialect dialect
	writers []Writer
	window  int                            // how many rows the first window of a page has
	looks   time.Duration                  // how long a page looks for names; see SearchWithin
	bounds  runBounds                      // how many runs are read to find causes
	parked  int                            // see mostParked
	budget  int64                          // see Options.KeepBudget
	release string                         // see Options.Release
	file    string                         // of SQLite; empty: a server
	refused atomic.Pointer[error]          // see Refused
	tracer  *tracing.Tracer                // see Options.Tracer
	asked   func(query string, args []any) // of tests; nil otherwise
	knows   int                            // of tests: the newest version of the schema that this gateway knows; 0: all
}

// New reads the address. It does not connect, so its errors are those of what was configured. The
// Store is the gateway's own until For says otherwise.
func New(opts Options) (*Store, error) {
	s := &database{writers: opts.Writers, window: firstWindow, looks: SearchWithin, bounds: firstRunBounds, parked: mostParked, budget: opts.KeepBudget, release: opts.Release, file: opts.File(), tracer: opts.Tracer}
	for _, pool := range []struct {
		of   **sql.DB
		most int
	}{{&s.recorders, recorderConnections}, {&s.reads, readers}, {&s.writes, writers}} {
		db, d, err := open(opts, pool.of == &s.recorders)
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(pool.most)
		db.SetMaxIdleConns(pool.most)
		db.SetConnMaxIdleTime(5 * time.Minute)
		*pool.of, s.dialect = db, d
	}
	s.turns = newTurns(s.dialect)
	return &Store{s, System("")}, nil
}

// Close ends all connections.
func (s *Store) Close() error {
	return errors.Join(s.recorders.Close(), s.reads.Close(), s.writes.Close())
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.recorders.PingContext(ctx); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

func open(opts Options, recorders bool) (*sql.DB, dialect, error) {
	if opts.Address == "sqlite" {
		if opts.StateDir == "" {
			return nil, nil, errors.New("sqlite needs a state directory")
		}
		return openSQLite(opts, recorders)
	}
	address, err := url.Parse(opts.Address)
	if err != nil {
		return nil, nil, errors.New("is no address: sqlite, sqlite:///path, postgres://… or mysql://… is expected") // the address is not shown, since it may contain a password
	}
	if _, has := address.User.Password(); has && opts.PasswordFile != "" {
		return nil, nil, errors.New("has a password, beside a passwordFile; one of them is too many")
	}
	switch address.Scheme {
	case "sqlite":
		if address.Host != "" || address.Path == "" {
			return nil, nil, errors.New("of a file begins with three slashes: sqlite:///path")
		}
		return openSQLite(opts, recorders)
	case "postgres", "postgresql":
		return openPostgres(opts)
	case "mysql":
		return openMySQL(opts, address)
	}
	return nil, nil, fmt.Errorf("has the scheme %q; known are sqlite, postgres and mysql", address.Scheme)
}

func openSQLite(opts Options, recorders bool) (*sql.DB, dialect, error) {
	path := opts.File()
	if opts.PasswordFile != "" {
		return nil, nil, errors.New("is a file, which takes no passwordFile")
	}
	values := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)"}}
	// What SQLite sorts goes to files that it unlinks at once. Where it puts them by itself need
	// not be a folder that can be written to: the root of a container is not.
	values.Add("_pragma", "temp_store_directory('"+strings.ReplaceAll(filepath.Dir(path), "'", "''")+"')")
	if recorders {
		// What undoes a statement of many rows that fails would go to a file otherwise, a fifth of
		// the time of writing them. A recorder's statements have a bounded number of rows; what
		// others sort, or a new index, may be larger than memory.
		values.Add("_pragma", "temp_store(MEMORY)")
	}
	name := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: values.Encode()}).String()
	return sql.OpenDB(file{name, path}), sqlite{}, nil
}

func openPostgres(opts Options) (*sql.DB, dialect, error) {
	config, err := pgx.ParseConfig(opts.Address)
	if err != nil {
		return nil, nil, err // this error hides the password
	}
	return stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) (err error) {
		if opts.PasswordFile != "" {
			c.Password, err = readPassword(opts.PasswordFile)
		}
		return err
	}), stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		// Some owners, queues and states are much more frequent than others, so each plan is made for its values.
		if _, err := c.Exec(ctx, "SET plan_cache_mode = force_custom_plan"); err != nil {
			return err
		}
		// The driver asks the server to end a statement that is given up. That is lost if it comes before the statement, or
		// cannot connect; then the server itself finds that its client has gone, where it can (14 or later, not on Windows).
		_, err := c.Exec(ctx, "SET client_connection_check_interval = '5s'")
		if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
			return nil
		}
		return err
	}), stdlib.OptionShouldPing(func(_ context.Context, p stdlib.ShouldPingParams) bool {
		// What the driver asks for itself on a connection that is dead, it does not ask again on
		// another. No server restarts more quickly.
		return p.IdleDuration > 50*time.Millisecond
	})), postgres{}, nil
}

func openMySQL(opts Options, address *url.URL) (*sql.DB, dialect, error) {
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", address.Host
	if address.Port() == "" {
		config.Addr += ":3306"
	}
	config.User = address.User.Username()
	config.Passwd, _ = address.User.Password()
	config.DBName = strings.TrimPrefix(address.Path, "/")
	if config.DBName == "" || address.Host == "" {
		return nil, nil, errors.New("needs a host and a database: mysql://user@host:3306/database")
	}
	config.ClientFoundRows = true // a row counts even if it is updated to what it was, which the compare-and-set relies on
	config.InterpolateParams = true
	config.Logger = &mysql.NopLogger{} // which would print what it mends; what it cannot mend is an error
	config.Timeout = 10 * time.Second
	config.Params = map[string]string{"sql_mode": "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"}
	config.Collation = "utf8mb4_general_ci"
	if err := config.Apply(mysql.BeforeConnect(func(_ context.Context, c *mysql.Config) (err error) {
		if opts.PasswordFile != "" {
			c.Passwd, err = readPassword(opts.PasswordFile)
		}
		return err
	})); err != nil {
		return nil, nil, err
	}
	for name, values := range address.Query() {
		switch value := values[0]; {
		case name == "socket":
			config.Net, config.Addr = "unix", value
		case name == "tls" && (value == "true" || value == "skip-verify" || value == "preferred"):
			config.TLSConfig = value
		case name == "ca":
			pem, err := os.ReadFile(value)
			if err != nil {
				return nil, nil, fmt.Errorf("ca: %w", err)
			}
			roots := x509.NewCertPool()
			if !roots.AppendCertsFromPEM(pem) {
				return nil, nil, fmt.Errorf("ca: %s holds no certificate", value)
			}
			config.TLS = &tls.Config{RootCAs: roots, ServerName: address.Hostname(), MinVersion: tls.VersionTLS12}
		default:
			return nil, nil, fmt.Errorf("has the parameter %s=%s; known are tls (true, skip-verify, preferred), ca and socket", name, value)
		}
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, nil, err
	}
	return sql.OpenDB(ending{connector}), mariadb{}, nil
}

func readPassword(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("passwordFile: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
