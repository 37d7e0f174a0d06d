package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
)

// LogName is what a log is of.
type LogName struct {
	Cluster  string // identifies the cluster for good
	Resource string // jobs.batch
}

// Log is one log as somebody found it.
type Log struct {
	LogName
	ID      int64
	People  string // the cluster's name for people
	Version uint64 // everything up to here has been written; 0: nothing is known
	Seq     uint64 // the last transition's number
	Expired uint64 // the highest number that was removed
}

var (
	// ErrMoved means that somebody else has written what was to be written, or part of it.
	ErrMoved = errors.New("another has written to this log")
	// ErrHeld means that another holds the log's lease.
	ErrHeld = errors.New("another records this log")
	// ErrNoLog means that nobody has ever recorded a log.
	ErrNoLog = errors.New("no such log")
)

// Take takes or renews the lease of a log for a holder, and finds where the log stands; a log that
// is new stands at 0. The error is ErrHeld while it is another's, and ErrNewer once a newer gateway
// has changed the schema so that this one must not write. Time is the database's.
func (s *Store) Take(ctx context.Context, name LogName, people, holder string, lease time.Duration) (Log, error) {
	if err := s.Check(ctx); err != nil {
		return Log{}, err
	}
	return s.takeLease(ctx, name, people, holder, lease)
}

func (s *Store) takeLease(ctx context.Context, name LogName, people, holder string, lease time.Duration) (Log, error) {
	n, err := s.execute(ctx, `UPDATE logs SET holder = ?, lease = `+s.dialect.now()+` + ?, name = ?
		WHERE cluster = ? AND resource = ? AND (holder = ? OR lease <= `+s.dialect.now()+`)`,
		holder, lease.Milliseconds(), people, name.Cluster, name.Resource, holder)
	if err != nil {
		return Log{}, fmt.Errorf("take the lease of %s: %w", name.Resource, err)
	}
	log, err := s.Find(ctx, name)
	switch {
	case n > 0:
		return log, err
	case err == nil:
		return Log{}, ErrHeld
	case !errors.Is(err, ErrNoLog):
		return Log{}, err
	}
	if _, err := s.execute(ctx, `INSERT INTO logs (cluster, resource, name, version, seq, expired, holder, lease, moved)
		VALUES (?, ?, ?, 0, 0, 0, '', 0, 0)`+s.dialect.upsert([]string{"cluster", "resource"}, nil), name.Cluster, name.Resource, people); err != nil {
		return Log{}, fmt.Errorf("begin the log of %s: %w", name.Resource, err)
	}
	return s.takeLease(ctx, name, people, holder, lease)
}

// Release gives up a lease, so that another need not wait for its end.
func (s *Store) Release(ctx context.Context, name LogName, holder string) error {
	_, err := s.execute(ctx, `UPDATE logs SET lease = 0, moved = `+s.dialect.now()+` WHERE cluster = ? AND resource = ? AND holder = ?`, name.Cluster, name.Resource, holder)
	if err != nil {
		return fmt.Errorf("release the lease of %s: %w", name.Resource, err)
	}
	return nil
}

// Find is where a log stands. The error is ErrNoLog if there is none.
func (s *Store) Find(ctx context.Context, name LogName) (Log, error) {
	log := Log{LogName: name}
	err := s.QueryRow(ctx, `SELECT id, name, version, seq, expired FROM logs WHERE cluster = ? AND resource = ?`,
		name.Cluster, name.Resource).Scan(&log.ID, &log.People, &log.Version, &log.Seq, &log.Expired)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Log{}, ErrNoLog
	case err != nil:
		return Log{}, fmt.Errorf("find the log of %s: %w", name.Resource, err)
	}
	return log, nil
}

// Batch is what was read of a log, from where it stood up to a version.
type Batch struct {
	To          uint64
	Transitions []*jobs.Transition // in order; they get their numbers
	Jobs        []*jobs.Job        // as the transitions left them, each once
	After       []*jobs.Job        // for each transition, its job as it was after it; only writers read it, nil if there are none
	Causes      []KnownCause       // of transitions that were written before
	Runs        []*Run             // of a log of pods: each once; they get their numbers in this order
	Gone        []Gone             // of a log of pods: of which nothing else has changed
	Kept        []Kept             // of jobs, each kind once; they are told whether they were kept
}

// IsOfPart reports whether one of the transitions is of a job that is a part of another one: that
// one is told of, and not its parts.
func (b Batch) IsOfPart(transition int) bool {
	return transition < len(b.After) && b.After[transition].Parent.UID != ""
}

// Writer writes rows of its own in the transaction that writes a batch: what follows from a
// transition is written if, and only if, the transition is.
type Writer interface {
	// Write is called before the commit. The log is as it was before, so Version 0 means that this
	// batch is what a first start found; the transitions have their numbers. An error undoes the
	// whole batch, which is then tried again. So Write must change nothing but the database.
	Write(ctx context.Context, tx *Tx, log Log, b Batch) error
}

// Write writes a batch and moves the log, or does neither. It gives the log as it is then. The
// error is ErrMoved if the log does not stand where it did. After any other error it is not known
// which: the log has to be found again. If writers and others have got into each other's way, it is
// tried again.
func (s *Store) Write(ctx context.Context, log Log, b Batch) (next Log, err error) {
	err = s.Transact(ctx, func(tx *Tx) error {
		next, err = s.writeIn(ctx, tx, log, b)
		return err
	})
	switch {
	case errors.Is(err, ErrMoved):
		return log, err
	case err != nil:
		return log, fmt.Errorf("write: %w", err)
	}
	return next, nil
}

func (s *Store) writeIn(ctx context.Context, tx *Tx, log Log, b Batch) (Log, error) {
	next := log
	next.Version, next.Seq = b.To, log.Seq+uint64(len(b.Transitions)+len(b.Runs))
	n, err := tx.Exec(ctx, `UPDATE logs SET version = ?, seq = ?, moved = `+tx.Now()+` WHERE id = ? AND version = ? AND seq = ?`,
		int64(next.Version), int64(next.Seq), log.ID, int64(log.Version), int64(log.Seq))
	if err != nil {
		return log, fmt.Errorf("move the log: %w", err)
	}
	if n == 0 {
		return log, ErrMoved
	}
	seq := log.Seq
	rows := make([][]any, 0, len(b.Transitions))
	for _, t := range b.Transitions {
		seq++
		t.Seq = seq
		cause, reason, err := causeRow(t.Cause)
		if err != nil {
			return log, err
		}
		rows = append(rows, []any{log.ID, int64(seq), t.UID, t.Namespace, t.Name, int64(t.Version), string(t.From), string(t.To), int64(t.At),
			int64(t.Observed), asInt(t.Late), t.Attempt, t.Reason, t.Message, t.Owner, t.Queue, known(t.NamespaceUID), cause, reason})
	}
	if err := tx.Insert(ctx, "transitions", transitionColumns, rows, nil, nil); err != nil {
		return log, fmt.Errorf("write transitions: %w", err)
	}
	if err := s.block(ctx, tx, log, next.Seq); err != nil {
		return log, fmt.Errorf("write spans: %w", err)
	}
	rows = rows[:0]
	for _, j := range b.Jobs {
		row, err := jobRow(log.ID, j)
		if err != nil {
			return log, err
		}
		rows = append(rows, row)
	}
	if err := tx.Insert(ctx, "jobs", jobColumns, rows, jobColumns[:2], jobColumns[2:]); err != nil {
		return log, fmt.Errorf("write jobs: %w", err)
	}
	if err := s.writeCauses(ctx, tx, log, b.Causes); err != nil {
		return log, fmt.Errorf("write causes: %w", err)
	}
	if err := s.writeRuns(ctx, tx, log, b); err != nil {
		return log, fmt.Errorf("write runs: %w", err)
	}
	if err := s.charge(ctx, tx, log, b.Kept); err != nil {
		return log, err
	}
	if err := s.writeKept(ctx, tx, log, b.Kept); err != nil {
		return log, fmt.Errorf("write what is kept: %w", err)
	}
	if len(b.Transitions) > 0 {
		for _, w := range s.writers {
			if err := w.Write(ctx, tx, log, b); err != nil {
				return log, fmt.Errorf("write what follows: %w", err)
			}
		}
	}
	return next, nil
}

var (
	transitionColumns = strings.Fields("log seq uid namespace name version from_state to_state at observed late attempt reason message owner queue namespace_uid cause cause_reason")
	jobColumns        = strings.Fields("log uid namespace name owner queue state since reason message attempt version created started ended deleted spent requests reasons ran_until namespace_uid counts parent_resource parent_name parent_uid progress_done progress_of began_late stopped_late cause cause_reason lived")
)

func jobRow(log int64, j *jobs.Job) ([]any, error) {
	spent := make(map[jobs.State]int64, len(j.Spent))
	for state, d := range j.Spent {
		spent[state] = d.Milliseconds()
	}
	spentText, err := json.Marshal(spent)
	if err != nil {
		return nil, err
	}
	requests, err := json.Marshal(j.Requests)
	if err != nil {
		return nil, err
	}
	var reasons string
	if len(j.Reasons) > 0 {
		text, err := json.Marshal(j.Reasons)
		if err != nil {
			return nil, err
		}
		reasons = string(text)
	}
	var counts string
	if j.Counts != (jobs.Counts{}) {
		text, err := json.Marshal(j.Counts)
		if err != nil {
			return nil, err
		}
		counts = string(text)
	}
	var done, of any
	if j.Progress.Of != 0 {
		done, of = j.Progress.Done, j.Progress.Of
	}
	cause, reason, err := causeRow(j.Cause)
	if err != nil {
		return nil, err
	}
	return []any{log, j.UID, j.Namespace, j.Name, j.Owner, j.Queue, string(j.State), int64(j.Since), j.Reason, j.Message, j.Attempt,
		int64(j.Version), int64(j.Created), int64(j.Started), int64(j.Ended), int64(j.Deleted), string(spentText), string(requests), reasons, ranUntil(j), known(j.NamespaceUID), counts, known(j.Parent.Resource), known(j.Parent.Name), known(j.Parent.UID), done, of, orNull(j.BeganLate), orNull(j.StoppedLate), cause, reason, lived(j)}, nil
}

// stillRuns is the ran_until of a job that is running.
const stillRuns = math.MaxInt64

// ranUntil is NULL where it is not known: what was written before there was such a column. 0: it never ran.
func ranUntil(j *jobs.Job) any {
	switch {
	case j.State == jobs.Running:
		return int64(stillRuns)
	case j.RanUntil == 0 && j.Started != 0:
		return nil
	}
	return int64(j.RanUntil)
}

// known is a text, or NULL for one that is not known.
func known(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// orNull is 1, or NULL, as in rows of before.
func orNull(b bool) any {
	if b {
		return 1
	}
	return nil
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
