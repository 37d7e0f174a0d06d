package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// ErrHeld means that another holds the lease of a target.
var ErrHeld = errors.New("another sends to this target")

// Switch is whether and when a target may be sent anything.
type Switch struct {
	Off    jobs.Time // since when it is switched off; 0: it is on
	Reason string    // why it is off
	Hold   jobs.Time // before this nothing is sent
}

// LastAnswer is what a target has said last.
type LastAnswer struct {
	At   jobs.Time
	Text string
}

// TargetState is what is known of a target.
type TargetState struct {
	Switch
	LastAnswer
	Holder string
	Held   bool // the lease has not run out
}

// Take takes the lease of a target for a holder. The error is ErrHeld while it is another's. If the URL is another one
// than before (told by anything that identifies it), the target is switched on.
func (b *Store) Take(ctx context.Context, target, url, holder string, lease time.Duration) (TargetState, error) {
	fail := func(err error) (TargetState, error) {
		return TargetState{}, fmt.Errorf("take the lease of webhook %s: %w", target, err)
	}
	taken, missing := false, false
	err := b.database.Transact(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, "UPDATE webhooks SET holder = ?, lease = "+tx.Now()+" + ? WHERE name = ? AND (holder = ? OR lease <= "+tx.Now()+")",
			holder, lease.Milliseconds(), target, holder)
		if err != nil {
			return err
		}
		var known string
		err = tx.QueryRow(ctx, "SELECT url FROM webhooks WHERE name = ?", target).Scan(&known)
		if missing = errors.Is(err, sql.ErrNoRows); missing {
			return tx.Insert(ctx, "webhooks", []string{"name", "url", "off", "reason", "hold", "holder", "lease", "answered", "answer"},
				[][]any{{target, url, 0, "", 0, "", 0, 0, ""}}, []string{"name"}, nil)
		}
		if taken = n > 0; err != nil || !taken || known == url {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE webhooks SET url = ?, off = 0, reason = '', hold = 0 WHERE name = ?", url, target)
		return err
	})
	switch {
	case err != nil:
		return fail(err)
	case missing:
		return b.Take(ctx, target, url, holder, lease)
	case !taken:
		return fail(ErrHeld)
	}
	state, err := b.State(ctx, target)
	if err != nil {
		return fail(err)
	}
	return state, nil
}

// Renew renews all leases of a holder, and records what its targets have said last. It returns the targets whose lease
// the holder has.
func (b *Store) Renew(ctx context.Context, holder string, lease time.Duration, answers map[string]LastAnswer) (map[string]Switch, error) {
	var held map[string]Switch
	err := b.database.Transact(ctx, func(tx *store.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE webhooks SET lease = "+tx.Now()+" + ? WHERE holder = ?", lease.Milliseconds(), holder); err != nil {
			return err
		}
		for target, a := range answers {
			if _, err := tx.Exec(ctx, "UPDATE webhooks SET answered = ?, answer = ? WHERE name = ?", int64(a.At), a.Text, target); err != nil {
				return err
			}
		}
		held = map[string]Switch{}
		return tx.Each(ctx, func(scan store.Scan) error {
			var target string
			var c Switch
			err := scan(&target, &c.Off, &c.Reason, &c.Hold)
			held[target] = c
			return err
		}, "SELECT name, off, reason, hold FROM webhooks WHERE holder = ?", holder)
	})
	if err != nil {
		return nil, fmt.Errorf("renew the leases of webhooks: %w", err)
	}
	return held, nil
}

// Release gives up a lease, so that another need not wait for its end.
func (b *Store) Release(ctx context.Context, target, holder string) error {
	err := b.database.Transact(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE webhooks SET lease = 0, holder = '' WHERE name = ? AND holder = ?", target, holder)
		return err
	})
	if err != nil {
		return fmt.Errorf("release the lease of webhook %s: %w", target, err)
	}
	return nil
}

// State returns what is known of a target, which may be nothing yet.
func (b *Store) State(ctx context.Context, target string) (s TargetState, err error) {
	held := 0
	err = b.database.QueryRow(ctx, "SELECT off, reason, hold, answered, answer, holder, CASE WHEN lease > "+b.database.Now()+" THEN 1 ELSE 0 END FROM webhooks WHERE name = ?", target).
		Scan(&s.Off, &s.Reason, &s.Hold, &s.At, &s.Text, &s.Holder, &held)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return TargetState{}, fmt.Errorf("read the state of webhook %s: %w", target, err)
	}
	s.Held = held == 1
	return s, nil
}

// Enable switches a target on, and ends its hold.
func (b *Store) Enable(ctx context.Context, target string) error {
	return b.Record(ctx, nil, map[string]Switch{target: {}})
}

// Counts are how many messages a target has.
type Counts struct {
	Waiting int
	Oldest  jobs.Time // of those that wait; 0: there are none
	Dead    int
}

// Counts counts the messages of a target.
func (b *Store) Counts(ctx context.Context, target string) (c Counts, err error) {
	var oldest sql.NullInt64
	if err := b.database.QueryRow(ctx, "SELECT COUNT(*), MIN(at) FROM outbox WHERE target = ? AND dead = 0", target).Scan(&c.Waiting, &oldest); err != nil {
		return c, fmt.Errorf("count messages: %w", err)
	}
	c.Oldest = jobs.Time(oldest.Int64)
	if err := b.database.QueryRow(ctx, "SELECT COUNT(*) FROM outbox WHERE target = ? AND dead = 1", target).Scan(&c.Dead); err != nil {
		return c, fmt.Errorf("count messages: %w", err)
	}
	return c, nil
}

// Dead are the newest dead letters of a target, at most so many.
func (b *Store) Dead(ctx context.Context, target string, most int) ([]*Message, error) {
	messages, err := b.messages(ctx, "target = ? AND dead = 1 ORDER BY at DESC LIMIT ?", target, most)
	if err != nil {
		return nil, fmt.Errorf("read dead letters: %w", err)
	}
	return messages, nil
}

// Resend makes dead letters wait again, as if they had never been tried: the one with an id, or if
// that is empty, those that were written from a time on and before another one. It returns how
// many.
func (b *Store) Resend(ctx context.Context, target, id string, since, until jobs.Time) (n int64, err error) {
	condition, args := "id = ?", []any{target, id}
	if id == "" {
		condition, args = "at >= ? AND at < ?", []any{target, int64(since), int64(until)}
	}
	err = b.database.Transact(ctx, func(tx *store.Tx) error {
		n, err = tx.Exec(ctx, "UPDATE outbox SET dead = 0, due = 0, attempts = 0 WHERE target = ? AND dead = 1 AND "+condition, args...)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("send again: %w", err)
	}
	return n, nil
}
