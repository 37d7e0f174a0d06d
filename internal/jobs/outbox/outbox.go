package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// Store reads the messages and what became of them. Its methods may be called concurrently, and fail while the database
// is away.
type Store struct{ database *store.Store }

// New returns the messages in a database, which is used in the name of all targets together.
func New(database *store.Store) *Store { return &Store{database.For(store.System("webhooks"))} }

// OrderingKey says which messages of a target are sent in order: those of a job, or its digests.
type OrderingKey struct {
	Log int64
	UID string
}

// Digests are in order, too.
var Digests = OrderingKey{}

// MessageKey identifies a message of a target, whose messages are in the order of their keys.
type MessageKey struct {
	Log int64
	Seq uint64
}

// Message is what a target has to be sent.
type Message struct {
	MessageKey
	UID      string
	ID       string    // of all its attempts, and of no other message
	At       jobs.Time // when it was written
	Due      jobs.Time // before this it is not sent; 0: at once
	Attempts int       // that have failed
	Body     string    // JSON: an Event, or of a digest {"transitions":[Event…]}
	Answer   string    // to the last attempt
}

// IsDigest says which of the two the body is.
func (m *Message) IsDigest() bool { return m.Log == Digests.Log }

// OrderingKey is that of the message.
func (m *Message) OrderingKey() OrderingKey { return OrderingKey{m.Log, m.UID} }

const messageColumns = "log, seq, uid, id, at, due, attempts, body, answer"

func scanMessage(scan store.Scan) (*Message, error) {
	var m Message
	err := scan(&m.Log, &m.Seq, &m.UID, &m.ID, &m.At, &m.Due, &m.Attempts, &m.Body, &m.Answer)
	return &m, err
}

// Namespaces are those with messages that wait, behind a name, in the order of their names; at most
// so many. The first, "", is of what has no namespace, and is there whether or not anything waits
// in it.
func (b *Store) Namespaces(ctx context.Context, target, after string, most int) (names []string, err error) {
	for len(names) < most { // each is found by its place in the index, however many messages the one before has
		name := ""
		err := b.database.QueryRow(ctx, "SELECT namespace FROM outbox WHERE target = ? AND dead = 0 AND namespace > ? ORDER BY namespace LIMIT 1", target, after).Scan(&name)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return names, nil
		case err != nil:
			return nil, fmt.Errorf("find whose messages wait: %w", err)
		}
		names, after = append(names, name), name
	}
	return names, nil
}

// Due are jobs of a namespace with messages that may be sent now, each perhaps several times: first
// those that were tried before, and then those that were not. Of each there are at most so many.
// The latter begin after a place; next is where to go on, or the zero MessageKey if there are no more.
func (b *Store) Due(ctx context.Context, target, namespace string, now jobs.Time, after MessageKey, most int) (jobList []OrderingKey, next MessageKey, err error) {
	fail := func(err error) ([]OrderingKey, MessageKey, error) {
		return nil, MessageKey{}, fmt.Errorf("find what is due: %w", err)
	}
	of, args := "target = ? AND dead = 0 AND namespace = ?", []any{target, namespace}
	if namespace == "" {
		of, args = "target = ? AND dead = 0 AND (namespace IS NULL OR namespace = '')", args[:1]
	}
	err = b.database.Each(ctx, func(scan store.Scan) error {
		var j OrderingKey
		err := scan(&j.Log, &j.UID)
		jobList = append(jobList, j)
		return err
	}, "SELECT log, uid FROM outbox WHERE "+of+" AND due > 0 AND due <= ? ORDER BY due LIMIT ?", append(args, int64(now), most)...)
	if err != nil {
		return fail(err)
	}
	n := 0
	err = b.database.Each(ctx, func(scan store.Scan) error {
		var j OrderingKey
		err := scan(&j.Log, &next.Seq, &j.UID)
		next.Log = j.Log
		jobList, n = append(jobList, j), n+1
		return err
	}, "SELECT log, seq, uid FROM outbox WHERE "+of+" AND due = 0 AND log >= ? AND (log > ? OR seq > ?) ORDER BY log, seq LIMIT ?",
		append(args, after.Log, after.Log, int64(after.Seq), most)...)
	if err != nil {
		return fail(err)
	}
	if n < most {
		next = MessageKey{}
	}
	return jobList, next, nil
}

// Oldest is the oldest message of a job that waits; nil if none does.
func (b *Store) Oldest(ctx context.Context, target string, job OrderingKey) (*Message, error) {
	m, err := scanMessage(b.database.QueryRow(ctx, "SELECT "+messageColumns+" FROM outbox WHERE target = ? AND log = ? AND uid = ? AND dead = 0 ORDER BY seq LIMIT 1", target, job.Log, job.UID).Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read a message: %w", err)
	}
	return m, nil
}

// Postpone makes the messages of a job that are behind a message as late as that one. Otherwise
// they would be found to be due again and again.
func (b *Store) Postpone(ctx context.Context, target string, behind *Message) error {
	const atOnce = 500
	for {
		seqs, err := collect[uint64](ctx, b.database, "SELECT seq FROM outbox WHERE target = ? AND log = ? AND uid = ? AND seq > ? AND dead = 0 AND due < ? LIMIT ?",
			target, behind.Log, behind.UID, int64(behind.Seq), int64(behind.Due), atOnce)
		if err != nil {
			return fmt.Errorf("find what is behind a message: %w", err)
		}
		if len(seqs) == 0 {
			return nil
		}
		err = b.database.Transact(ctx, func(tx *store.Tx) error {
			return eachOf(seqs, func(list string, args []any) error {
				_, err := tx.Exec(ctx, "UPDATE outbox SET due = ? WHERE target = ? AND log = ? AND seq IN "+list, append([]any{int64(behind.Due), target, behind.Log}, args...)...)
				return err
			})
		})
		if err != nil {
			return fmt.Errorf("postpone: %w", err)
		}
		if len(seqs) < atOnce {
			return nil
		}
	}
}

// collect reads rows of one column.
func collect[T any](ctx context.Context, from *store.Store, query string, args ...any) (all []T, err error) {
	err = from.Each(ctx, func(scan store.Scan) error {
		var one T
		err := scan(&one)
		all = append(all, one)
		return err
	}, query, args...)
	return all, err
}

// eachOf calls do for parts of a list of numbers, as it stands in a statement. Rows that are named by their key are
// the only ones that MySQL locks, so that a recorder that writes new ones need not wait.
func eachOf(seqs []uint64, do func(list string, args []any) error) error {
	for part := range slices.Chunk(seqs, 100) {
		args := make([]any, len(part))
		for i, seq := range part {
			args[i] = int64(seq)
		}
		if err := do("(?"+strings.Repeat(", ?", len(part)-1)+")", args); err != nil {
			return err
		}
	}
	return nil
}

// AttemptResult is what became of an attempt.
type AttemptResult struct {
	Target string
	MessageKey
	Delivered bool // then the rest does not count: the message is gone
	Attempts  int
	Due       jobs.Time
	Dead      bool // it is not tried again, unless somebody asks for it
	Answer    string
}

// Record records outcomes, and what changed of targets, in one transaction.
func (b *Store) Record(ctx context.Context, outcomes []AttemptResult, changes map[string]Switch) error {
	err := b.database.Transact(ctx, func(tx *store.Tx) error {
		type list struct {
			target string
			log    int64
		}
		delivered := map[list][]uint64{}
		for _, o := range outcomes {
			if o.Delivered {
				in := list{o.Target, o.Log}
				delivered[in] = append(delivered[in], o.Seq)
				continue
			}
			dead := 0
			if o.Dead {
				dead = 1
			}
			if _, err := tx.Exec(ctx, "UPDATE outbox SET attempts = ?, due = ?, dead = ?, answer = ? WHERE target = ? AND log = ? AND seq = ?",
				o.Attempts, int64(o.Due), dead, o.Answer, o.Target, o.Log, int64(o.Seq)); err != nil {
				return err
			}
		}
		for in, seqs := range delivered {
			if err := remove(ctx, tx, in.target, in.log, seqs); err != nil {
				return err
			}
		}
		for target, c := range changes {
			if _, err := tx.Exec(ctx, "UPDATE webhooks SET off = ?, reason = ?, hold = ? WHERE name = ?", int64(c.Off), c.Reason, int64(c.Hold), target); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record what became of messages: %w", err)
	}
	return nil
}

func remove(ctx context.Context, tx *store.Tx, target string, log int64, seqs []uint64) error {
	return eachOf(seqs, func(list string, args []any) error {
		_, err := tx.Exec(ctx, "DELETE FROM outbox WHERE target = ? AND log = ? AND seq IN "+list, append([]any{target, log}, args...)...)
		return err
	})
}

const (
	// digestMost is how many transitions a digest has at most.
	digestMost = 1000
	// digestBytes bounds a digest's body.
	digestBytes = 1 << 20
)

// Compose makes one message of all that waits for a digest, if the first of it has waited for long enough. The new
// message is kept as it is, so all its attempts are the same. It reports whether there is one.
func (b *Store) Compose(ctx context.Context, target string, now jobs.Time) (composed bool, err error) {
	var first sql.NullInt64
	if err := b.database.QueryRow(ctx, "SELECT MIN(due) FROM outbox WHERE target = ? AND dead = 0 AND log > 0", target).Scan(&first); err != nil {
		return false, fmt.Errorf("look for a digest: %w", err)
	}
	if !first.Valid || first.Int64 > int64(now) {
		return false, nil
	}
	err = b.database.Transact(ctx, func(tx *store.Tx) error {
		parts, err := take(ctx, tx, target)
		if err != nil || len(parts) == 0 {
			return err
		}
		var body struct {
			Transitions []json.RawMessage `json:"transitions"`
		}
		taken, ids := map[int64][]uint64{}, []string{"digest"}
		for _, m := range parts {
			ids = append(ids, m.ID)
			body.Transitions = append(body.Transitions, json.RawMessage(m.Body))
			taken[m.Log] = append(taken[m.Log], m.Seq)
		}
		for log, seqs := range taken {
			if err := remove(ctx, tx, target, log, seqs); err != nil {
				return err
			}
		}
		var last sql.NullInt64
		if err := tx.QueryRow(ctx, "SELECT MAX(seq) FROM outbox WHERE target = ? AND log = ?", target, Digests.Log).Scan(&last); err != nil {
			return err
		}
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		row := []any{target, Digests.Log, last.Int64 + 1, Digests.UID, idFrom(ids...), int64(parts[0].At), 0, 0, 0, string(text), "", ""}
		composed = true
		return tx.Insert(ctx, "outbox", columns, [][]any{row}, nil, nil)
	})
	if err != nil {
		return false, fmt.Errorf("compose a digest: %w", err)
	}
	return composed, nil
}

// take reads the messages that a digest has room for.
func take(ctx context.Context, tx *store.Tx, target string) (parts []*Message, err error) {
	size := 0
	err = tx.Each(ctx, func(scan store.Scan) error {
		m, err := scanMessage(scan)
		if size += len(m.Body) + 1; size <= digestBytes || len(parts) == 0 {
			parts = append(parts, m)
		}
		return err
	}, "SELECT "+messageColumns+" FROM outbox WHERE target = ? AND dead = 0 AND log > 0 ORDER BY log, seq LIMIT ?"+tx.Locks(), target, digestMost)
	return parts, err
}

// Expire removes messages that were written before a time, at most so many of each target, whether they wait or are
// dead letters. It also removes those of targets that are no longer configured. It returns how many were removed.
func (b *Store) Expire(ctx context.Context, before time.Time, most int) (removed int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("remove old messages: %w", err)
		}
	}()
	targets, err := collect[string](ctx, b.database, "SELECT name FROM webhooks")
	if err != nil {
		return 0, err
	}
	for _, target := range targets {
		for dead := range 2 {
			old, err := b.messages(ctx, "target = ? AND dead = ? AND at < ? ORDER BY at LIMIT ?", target, dead, int64(jobs.At(before)), most)
			if err != nil {
				return removed, err
			}
			seqs := map[int64][]uint64{}
			for _, m := range old {
				seqs[m.Log] = append(seqs[m.Log], m.Seq)
			}
			if len(old) == 0 {
				continue
			}
			if err := b.database.Transact(ctx, func(tx *store.Tx) error {
				for log, seqs := range seqs {
					if err := remove(ctx, tx, target, log, seqs); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				return removed, err
			}
			removed += len(old)
		}
	}
	return removed, nil
}

// messages are those of a condition, in its order.
func (b *Store) messages(ctx context.Context, where string, args ...any) (all []*Message, err error) {
	err = b.database.Each(ctx, func(scan store.Scan) error {
		m, err := scanMessage(scan)
		all = append(all, m)
		return err
	}, "SELECT "+messageColumns+" FROM outbox WHERE "+where, args...)
	return all, err
}
