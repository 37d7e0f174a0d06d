package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/kubecast/kubecast/internal/budget"
)

// A database is shared by all users of a gateway, and by the gateway itself. So each statement
// outside of a transaction, and each transaction, belongs to somebody, and waits for their turn:
//
//   - Recorders use connections that nobody else gets. They wait for nobody, unless the database has but one writer: then
//     their transactions go before all others that wait, but for one turn in sixteen, or those would wait for ever while several
//     recorders write all the time.
//   - Reading and writing have a queue each, in which users take turns. What else the gateway does (System) has every other
//     turn while it waits. There are no more turns than connections, so nobody waits for one of these in order of arrival.
//
// What a transaction can know before it begins is read before, and one that is a user's, or removes
// something, has a bounded number of rows. So a turn is short, and bounded in time
// (userWriteWithin).

// QuotaOwner is in whose name a Store is used.
type QuotaOwner struct {
	class budget.Class
	name  string
}

// Recorder is who records a log. Its turns come before others'.
func Recorder(log string) QuotaOwner { return QuotaOwner{budget.First, log} }

// System is a part of the gateway that works for nobody in particular. All of them together have as
// many turns as all users together.
func System(part string) QuotaOwner { return QuotaOwner{budget.System, part} }

// User is a user, by the name to which costs are charged.
func User(quotaOwner string) QuotaOwner { return QuotaOwner{budget.Users, quotaOwner} }

// classes are the names of who uses a database, in traces.
var classes = [...]string{budget.First: "recorder", budget.System: "system", budget.Users: "user"}

// For is the same database, used in the name of somebody.
func (s *Store) For(p QuotaOwner) *Store { return &Store{database: s.database, quotaOwner: p} }

// ErrBusy means that no turn could be had in time.
var ErrBusy = fmt.Errorf("the database is busy: %w", budget.ErrTooMuch)

const (
	// recorderConnections bounds the recorders' connections; each recorder has one transaction under way.
	recorderConnections = 8
	// readers is how many may read at once, and writers how many may write beside recorders.
	readers, writers = 6, 2
	// userWriteWithin is how long a user's transaction may take once it has its turn.
	userWriteWithin = 3 * time.Second
)

// turns are the queues in front of a database's connections.
type turns struct {
	reading *budget.Queue
	writing *budget.Queue
	alone   bool          // one transaction writes at a time, a recorder's included
	within  time.Duration // how long a user's transaction may take
}

// newTurns makes queues. What reads a file works on this machine's processors. So there are no more readers than those.
func newTurns(d dialect) turns {
	if !d.alone() {
		return turns{budget.NewQueue(readers, readers/2, 0), budget.NewQueue(writers, 1, 0), false, userWriteWithin}
	}
	n := min(max(2, runtime.GOMAXPROCS(0)), readers)
	return turns{budget.NewQueue(n, n/2, 0), budget.NewQueue(1, 0, 0), true, userWriteWithin}
}

// toRead waits for a turn to read.
func (s *Store) toRead(ctx context.Context) (db *sql.DB, release func(), err error) {
	if s.quotaOwner.class == budget.First {
		return s.recorders, func() {}, nil
	}
	release, err = s.take(ctx, s.turns.reading)
	return s.reads, release, err
}

// toWrite waits for a turn to write.
func (s *Store) toWrite(ctx context.Context) (db *sql.DB, release func(), err error) {
	if s.quotaOwner.class != budget.First {
		release, err = s.take(ctx, s.turns.writing)
		return s.writes, release, err
	}
	if !s.turns.alone {
		return s.recorders, func() {}, nil
	}
	release, err = s.take(ctx, s.turns.writing)
	return s.recorders, release, err
}

func (s *Store) take(ctx context.Context, from *budget.Queue) (release func(), err error) {
	release, err = from.TakeAs(ctx, s.quotaOwner.class, s.quotaOwner.name)
	if errors.Is(err, context.DeadlineExceeded) {
		err = ErrBusy
	}
	return release, err
}

// transact does something in a transaction, in its quotaOwner's turn.
func (s *Store) transact(ctx context.Context, do func(tx *Tx) error) (failed error) {
	ctx, span := s.tracer.Start(ctx, "database transaction", trace.SpanKindClient)
	span.Set("kubecast.for", classes[s.quotaOwner.class])
	defer func() { span.EndWith(failed) }()
	db, release, err := s.toWrite(ctx)
	if err != nil {
		return err
	}
	defer release()
	if s.quotaOwner.class == budget.Users {
		within, cancel := context.WithTimeout(ctx, s.turns.within)
		defer cancel()
		ctx = within
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing to do where it was committed
	ends, _ := ctx.Deadline()
	if err := do(&Tx{s.dialect, tx, ends}); err != nil {
		return err
	}
	return tx.Commit()
}

// execute executes one statement by itself, in its quotaOwner's turn.
func (s *Store) execute(ctx context.Context, statement string, args ...any) (changed int64, err error) {
	db, release, err := s.toWrite(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	result, err := db.ExecContext(ctx, s.dialect.bind(statement), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// WritesAlone reports whether one transaction writes at a time, so that recorders wait for turns, too.
func (s *Store) WritesAlone() bool { return s.turns.alone }
