package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/store"
)

// Place is where the job of a notification is, or was.
type Place struct {
	Cluster   string // identifies the cluster for good
	Resource  string // jobs.batch
	Namespace string
	Name      string // "" where all that is in the namespace has to be visible
}

// Sees reports whether a place may be seen.
type Sees func(Place) bool

// row is a row of an inbox.
type row struct {
	seq    uint64
	at     history.Time
	kind   string
	place  Place // zero of a digest and of a mark
	silent bool
	readAt history.Time
	body   string
}

// The kinds of rows, beside the states of which notifications tell.
const (
	kindDigest = "Digest"
	kindMark   = "read" // a mark; it has a time of reading itself, so that it is not unread
)

const selectRows = "SELECT seq, at, kind, cluster, resource, namespace, name, silent, read_at, body FROM inbox "

func (i *Inbox) rows(ctx context.Context, where string, args ...any) (found []row, err error) {
	err = i.store.Each(ctx, func(scan store.Scan) error {
		var r row
		err := scan(&r.seq, &r.at, &r.kind, &r.place.Cluster, &r.place.Resource, &r.place.Namespace, &r.place.Name, &r.silent, &r.readAt, &r.body)
		found = append(found, r)
		return err
	}, selectRows+where, args...)
	return found, err
}

// pageRows is how many rows are read at once, and pageBytes after how many bytes a page ends before its limit.
const (
	pageRows  = 200
	pageBytes = 4 << 20
)

// Page are a user's notifications below a number (0: all), the newest first, at most so many. Next is the number below which there
// are more, 0 if there are none. Errors are those of Settings.
func (i *Inbox) Page(ctx context.Context, owner string, sees Sees, below uint64, unread bool, limit int) (found []Notification, next uint64, err error) {
	err = i.ask(ctx, "read notifications", func(ctx context.Context) error {
		found, next, err = i.page(ctx, owner, sees, below, unread, limit)
		return err
	})
	return found, next, err
}

func (i *Inbox) page(ctx context.Context, owner string, sees Sees, below uint64, unread bool, limit int) (found []Notification, next uint64, err error) {
	if limit == 0 {
		return nil, 0, nil
	}
	if below == 0 {
		below = 1<<63 - 1
	}
	only := ""
	if unread {
		only = " AND read_at = 0"
	}
	bytes := 0
	for most := min(pageRows, limit+1); ; most = pageRows { // behind what may not be seen there may be much of it
		rows, err := i.rows(ctx, "WHERE owner = ? AND seq < ? AND kind <> '"+kindMark+"'"+only+" ORDER BY seq DESC LIMIT ?", owner, int64(below), most)
		if err != nil {
			return nil, 0, err
		}
		for _, r := range rows {
			n, ok := r.notification(sees)
			if !ok {
				below = r.seq
				continue
			}
			if len(found) == limit || bytes > pageBytes {
				return found, below, nil
			}
			found, bytes, below = append(found, n), bytes+len(r.body), r.seq
		}
		if len(rows) < most {
			return found, 0, nil
		}
	}
}

// selectUnread reads what of an inbox is unread, up to a number. A body is needed only of digests.
const selectUnread = "SELECT seq, kind, cluster, resource, namespace, name, CASE WHEN kind = '" + kindDigest + "' THEN body ELSE '' END FROM inbox WHERE owner = ? AND read_at = 0 AND seq <= ? ORDER BY seq"

// unread counts what a user may see and has not read, up to a number.
func (i *Inbox) unread(ctx context.Context, owner string, sees Sees, upTo uint64) (int, error) {
	found, err := visibleUnread(ctx, i.store, owner, sees, upTo)
	return len(found), err
}

// visibleUnread are the numbers of what is unread and may be seen, up to a number.
func visibleUnread(ctx context.Context, from interface {
	Each(context.Context, func(store.Scan) error, string, ...any) error
}, owner string, sees Sees, upTo uint64) (found []uint64, err error) {
	err = from.Each(ctx, func(scan store.Scan) error {
		var r row
		if err := scan(&r.seq, &r.kind, &r.place.Cluster, &r.place.Resource, &r.place.Namespace, &r.place.Name, &r.body); err != nil {
			return err
		}
		if r.isSeen(sees) {
			found = append(found, r.seq)
		}
		return nil
	}, selectUnread, owner, int64(upTo))
	return found, err
}

// Unread counts what a user may see and has not read. Errors are those of Settings.
func (i *Inbox) Unread(ctx context.Context, owner string, sees Sees) (n int, err error) {
	err = i.ask(ctx, "count what is unread", func(ctx context.Context) error {
		n, err = i.unread(ctx, owner, sees, 1<<63-1)
		return err
	})
	return n, err
}

// State is how an inbox stands at one number.
type State struct {
	Seq    uint64
	Newest []Notification
	Unread int
}

// State is how an inbox stands now, with so many of its newest notifications, the oldest first. Errors are those of Settings.
func (i *Inbox) State(ctx context.Context, owner string, sees Sees, newest int) (s State, err error) {
	err = i.ask(ctx, "read notifications", func(ctx context.Context) error {
		h, err := i.headOf(ctx, owner)
		if err != nil {
			return err
		}
		s.Seq = h.seq
		if s.Newest, _, err = i.page(ctx, owner, sees, h.seq+1, false, newest); err != nil {
			return err
		}
		slices.Reverse(s.Newest)
		s.Unread, err = i.unread(ctx, owner, sees, h.seq)
		return err
	})
	return s, err
}

// Change is one thing that has happened to an inbox.
type Change struct {
	Seq          uint64
	Notification *Notification // nil: something was read, or is not to be seen
	Mark         *Mark         // nil: nothing was read
}

// After are the changes that follow a number, in order, at most so many. Beside the errors of Settings there are ErrAhead and
// ErrExpired.
func (i *Inbox) After(ctx context.Context, owner string, sees Sees, after uint64, limit int) (found []Change, err error) {
	err = i.ask(ctx, "read notifications", func(ctx context.Context) error {
		rows, err := i.rows(ctx, "WHERE owner = ? AND seq > ? ORDER BY seq LIMIT ?", owner, int64(after), limit)
		if err != nil {
			return err
		}
		h, err := i.headOf(ctx, owner) // afterwards: if it came first, something could be removed before it is read
		if err == nil {
			err = h.goesOn(after, i.opts.Keep)
		}
		if err != nil {
			return err
		}
		found = make([]Change, len(rows))
		var last *Change
		for n, r := range rows {
			found[n].Seq = r.seq
			if r.kind == kindMark {
				found[n].Mark = &Mark{}
				if err := json.Unmarshal([]byte(r.body), found[n].Mark); err != nil {
					return fmt.Errorf("a mark: %w", err)
				}
				last = &found[n]
			} else if told, ok := r.notification(sees); ok {
				found[n].Notification = &told
			}
		}
		if last == nil {
			return nil
		}
		left, err := i.unread(ctx, owner, sees, last.Seq)
		last.Mark.Unread = &left
		return err
	}, ErrAhead, ErrExpired)
	return found, err
}

// Mark says what was read: all up to a number, or some.
type Mark struct {
	UpTo   string   `json:"upTo,omitempty"`
	IDs    []string `json:"ids,omitempty"`
	Unread *int     `json:"unread,omitempty"` // how many are left; only of the last of several, and not in the database
}

// Read marks notifications of a user as read: all up to a number, and those with given numbers. What is read already, not there, or not to be
// seen is left out: a mark tells nothing of it. Errors are those of Settings.
func (i *Inbox) Read(ctx context.Context, owner string, sees Sees, upTo uint64, ids []uint64) error {
	marked := false
	err := i.ask(ctx, "mark notifications as read", func(ctx context.Context) error {
		return i.store.Transact(ctx, func(tx *store.Tx) error {
			h, err := lockOne(ctx, tx, owner)
			if err != nil || h == nil {
				return err
			}
			if marked, err = h.mark(ctx, tx, sees, min(upTo, h.seq), ids); err != nil || !marked {
				return err
			}
			return save(ctx, tx, []*head{h})
		})
	})
	if err == nil && marked {
		i.Wake()
	}
	return err
}

func (h *head) mark(ctx context.Context, tx *store.Tx, sees Sees, upTo uint64, ids []uint64) (marked bool, err error) {
	highest := upTo
	for _, id := range ids {
		highest = max(highest, min(id, h.seq))
	}
	unread, err := visibleUnread(ctx, tx, h.owner, sees, highest)
	if err != nil {
		return false, err
	}
	note := func(read []uint64, m Mark) error {
		if len(read) == 0 {
			return nil
		}
		marked = true
		for some := range slices.Chunk(read, atOnce) {
			args := []any{int64(h.now), h.owner}
			for _, seq := range some {
				args = append(args, int64(seq))
			}
			if _, err := tx.Exec(ctx, "UPDATE inbox SET read_at = ? WHERE owner = ? AND seq IN (?"+strings.Repeat(", ?", len(some)-1)+")", args...); err != nil {
				return err
			}
		}
		body, err := json.Marshal(m)
		h.add(kindMark, Place{}, false, h.now, string(body))
		return err
	}
	var before, named []uint64
	var texts []string
	for _, seq := range unread {
		if seq <= upTo {
			before = append(before, seq)
		} else if slices.Contains(ids, seq) {
			named, texts = append(named, seq), append(texts, strconv.FormatUint(seq, 10))
		}
	}
	if err := note(before, Mark{UpTo: strconv.FormatUint(upTo, 10)}); err != nil {
		return false, err
	}
	err = note(named, Mark{IDs: texts})
	return marked, err
}
