package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// head is the row of an inbox as a whole. Whoever writes to an inbox has locked its head.
type head struct {
	owner   string
	began   uint64 // the number before the first that there ever was
	seq     uint64 // the last number
	expired uint64 // the highest number that was removed; at least began
	chosen  chosen
	due     jobs.Time // when a digest is to be made of what waits; 0: nothing waits
	waiting int       // how many transitions wait
	now     jobs.Time // by the database's clock

	rows  [][]any // to be written
	waits [][]any
	share map[JobRef]int // how many transitions wait, by namespace; nil: so few that it does not matter
}

// maxOwner is how long, in bytes, the name of an owner may be for the database to keep it.
const maxOwner = 256

// atOnce is how many owners, or numbers, one statement names.
const atOnce = 500

var headColumns = strings.Fields("owner began seq expired states digest paused due waiting news moved")

const selectHeads = "SELECT owner, began, seq, expired, states, digest, paused, due, waiting, "

func scanHead(scan store.Scan) (*head, error) {
	h := &head{}
	err := scan(&h.owner, &h.began, &h.seq, &h.expired, &h.chosen.states, &h.chosen.digest, &h.chosen.paused, &h.due, &h.waiting, &h.now)
	return h, err
}

// headOf reads a head. That of a user who has none is as if it began now.
func headOf(ctx context.Context, from *store.Store, owner string) (*head, error) {
	h, err := scanHead(from.QueryRow(ctx, selectHeads+from.Now()+" FROM inbox_heads WHERE owner = ?", owner).Scan)
	if !errors.Is(err, sql.ErrNoRows) {
		return h, err
	}
	h = &head{owner: owner, chosen: chosen{digest: byDefault}}
	err = from.QueryRow(ctx, "SELECT "+from.Now()).Scan(&h.now)
	h.began, h.seq, h.expired = uint64(h.now), uint64(h.now), uint64(h.now)
	return h, err
}

// goesOn reports whether a reader may go on behind a number: nil, ErrAhead or ErrExpired.
//
// A number before the head's first is of a head that was removed, or of a time when there was none.
// Heads are removed only when they were unused for as long as notifications are kept. So in a
// shorter time there was none, and nothing is missing.
func (h *head) goesOn(after uint64, keep time.Duration) error {
	switch {
	case after > h.seq:
		return ErrAhead
	case after < h.began && h.began-after > uint64(keep.Milliseconds()), h.expired > max(after, h.began):
		return ErrExpired
	}
	return nil
}

// find reads the heads that there are, without locking them.
func find(ctx context.Context, tx *store.Tx, owners []string) (map[string]*head, error) {
	return heads(ctx, tx, owners, "")
}

// lock locks the heads of owners, in the order of their names, and makes those that are missing.
// All transactions lock in this order, so that no two of them wait for each other. Existing are the
// owners that have one already, as far as is known.
func lock(ctx context.Context, tx *store.Tx, owners []string, existing map[string]*head) (map[string]*head, error) {
	slices.Sort(owners)
	missing := slices.DeleteFunc(slices.Clone(owners), func(owner string) bool { return existing[owner] != nil })
	for range 3 { // a head can be removed before it is locked
		if err := begin(ctx, tx, missing); err != nil {
			return nil, err
		}
		locked, err := heads(ctx, tx, owners, " ORDER BY owner"+tx.Locks())
		if err != nil {
			return nil, err
		}
		missing = slices.DeleteFunc(slices.Clone(owners), func(owner string) bool { return locked[owner] != nil })
		if len(missing) == 0 {
			return locked, nil
		}
	}
	return nil, fmt.Errorf("the heads of %d inboxes are not there", len(missing))
}

// lockOne locks a head that exists; nil if there is none.
func lockOne(ctx context.Context, tx *store.Tx, owner string) (*head, error) {
	locked, err := heads(ctx, tx, []string{owner}, tx.Locks())
	return locked[owner], err
}

func heads(ctx context.Context, tx *store.Tx, owners []string, suffix string) (map[string]*head, error) {
	found := make(map[string]*head, len(owners))
	for some := range slices.Chunk(owners, atOnce) {
		if err := tx.Each(ctx, func(scan store.Scan) error {
			h, err := scanHead(scan)
			found[h.owner] = h
			return err
		}, selectHeads+tx.Now()+" FROM inbox_heads WHERE owner IN (?"+strings.Repeat(", ?", len(some)-1)+")"+suffix, anys(some)...); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// begin makes heads. Their numbers begin with the time: a head that was removed had lower ones.
func begin(ctx context.Context, tx *store.Tx, owners []string) error {
	if len(owners) == 0 {
		return nil
	}
	var now int64
	if err := tx.QueryRow(ctx, "SELECT "+tx.Now()).Scan(&now); err != nil {
		return err
	}
	rows := make([][]any, len(owners))
	for n, owner := range owners {
		rows[n] = []any{owner, now, now, now, "", byDefault, 0, 0, 0, 0, now}
	}
	return tx.Insert(ctx, "inbox_heads", headColumns, rows, headColumns[:1], nil)
}

var (
	rowColumns  = strings.Fields("owner seq at kind cluster resource namespace name namespace_uid silent read_at body")
	waitColumns = strings.Fields("owner n kind cluster resource namespace name namespace_uid body")
)

// add adds a row that is to be written.
func (h *head) add(kind string, of JobRef, silent bool, readAt jobs.Time, body string) {
	h.seq++
	quiet := 0
	if silent {
		quiet = 1
	}
	h.rows = append(h.rows, []any{h.owner, int64(h.seq), int64(h.now), kind, of.Cluster, of.Resource, of.Namespace, of.Name, known(of.NamespaceUID), quiet, int64(readAt), body})
}

// save writes the rows of heads that are locked, and the heads themselves, as they are now.
func save(ctx context.Context, tx *store.Tx, all []*head) error {
	var rows, waits, changed [][]any
	var news int64
	for _, h := range all {
		rows, waits = append(rows, h.rows...), append(waits, h.waits...)
	}
	if err := tx.Insert(ctx, "inbox", rowColumns, rows, nil, nil); err != nil {
		return fmt.Errorf("write notifications: %w", err)
	}
	if err := tx.Insert(ctx, "inbox_waiting", waitColumns, waits, nil, nil); err != nil {
		return fmt.Errorf("write what waits for a digest: %w", err)
	}
	for _, h := range all {
		if err := h.trim(ctx, tx); err != nil {
			return fmt.Errorf("remove what is too much: %w", err)
		}
	}
	if len(rows) > 0 {
		if _, err := tx.Exec(ctx, "UPDATE inbox_news SET changes = changes + 1 WHERE id = 1"); err != nil {
			return fmt.Errorf("count a change: %w", err)
		}
		if err := tx.QueryRow(ctx, "SELECT changes FROM inbox_news WHERE id = 1").Scan(&news); err != nil {
			return fmt.Errorf("count a change: %w", err)
		}
	}
	plain, told := make([][]any, 0), make([][]any, 0)
	for _, h := range all {
		row := []any{h.owner, int64(h.began), int64(h.seq), int64(h.expired), h.chosen.states, h.chosen.digest, h.chosen.paused, int64(h.due), h.waiting, news, int64(h.now)}
		if len(h.rows) > 0 {
			told = append(told, row)
		} else {
			plain = append(plain, row)
		}
	}
	replaced := []string{"seq", "expired", "states", "digest", "paused", "due", "waiting", "moved"}
	changed = append(changed, plain...)
	if err := tx.Insert(ctx, "inbox_heads", headColumns, changed, headColumns[:1], replaced); err != nil {
		return fmt.Errorf("write heads: %w", err)
	}
	if err := tx.Insert(ctx, "inbox_heads", headColumns, told, headColumns[:1], append(replaced, "news")); err != nil {
		return fmt.Errorf("write heads: %w", err)
	}
	return nil
}

// known is a text, or NULL for one that is not known.
func known(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func anys[T any](values []T) []any {
	all := make([]any, len(values))
	for n, v := range values {
		all[n] = v
	}
	return all
}
