package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// JobRef names the job of a notification by where it is, or was.
type JobRef struct {
	Cluster   string // identifies the cluster for good
	Resource  string // jobs.batch
	Namespace string
	Name      string // "" where all that is in the namespace has to be visible
	// NamespaceUID says which namespace of that name it is in; "" if that is not known.
	NamespaceUID string
	// Seen is when it was seen to be there, where NamespaceUID is not known; 0 if that is not known, either.
	Seen jobs.Time
}

// Sees reports whether a job may be seen.
type Sees func(JobRef) bool

// row is a row of an inbox.
type row struct {
	seq    uint64
	at     jobs.Time
	kind   string
	job    JobRef // zero of a digest and of a mark
	silent bool
	readAt jobs.Time
	body   string
}

// The kinds of rows, beside the states of which notifications tell.
const (
	kindDigest = "Digest"
	kindMark   = "read" // a mark; it has a time of reading itself, so that it is not unread
)

const selectRows = "SELECT seq, at, kind, cluster, resource, namespace, name, COALESCE(namespace_uid, ''), silent, read_at, body FROM inbox "

func rows(ctx context.Context, from *store.Store, where string, args ...any) (found []row, err error) {
	err = from.Each(ctx, func(scan store.Scan) error {
		var r row
		err := scan(&r.seq, &r.at, &r.kind, &r.job.Cluster, &r.job.Resource, &r.job.Namespace, &r.job.Name, &r.job.NamespaceUID, &r.silent, &r.readAt, &r.body)
		found = append(found, r)
		return err
	}, selectRows+where, args...)
	if err != nil {
		return nil, err
	}
	return found, explain(ctx, from, found)
}

// pageRows is how many rows are read at once, and pageBytes after how many bytes a page ends before its limit.
const (
	pageRows  = 200
	pageBytes = 4 << 20
)

// Page are a user's notifications below a number (0: all), the newest first, at most so many. Next
// is the number below which there are more, 0 if there are none. Errors are those of Settings.
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
		some, err := rows(ctx, i.of(owner), "WHERE owner = ? AND seq < ? AND kind <> '"+kindMark+"'"+only+" ORDER BY seq DESC LIMIT ?", owner, int64(below), most)
		if err != nil {
			return nil, 0, err
		}
		for _, r := range some {
			n, ok := r.notification(sees, i.seal)
			if !ok {
				below = r.seq
				continue
			}
			if len(found) == limit || bytes > pageBytes {
				return found, below, nil
			}
			found, bytes, below = append(found, n), bytes+len(r.body), r.seq
		}
		if len(some) < most {
			return found, 0, nil
		}
	}
}

// selectUnread reads what of an inbox is unread. A body is needed only of digests, and where it is
// not known which namespace it is about.
const selectUnread = "SELECT seq, kind, cluster, resource, namespace, name, COALESCE(namespace_uid, ''), CASE WHEN kind = '" + kindDigest +
	"' OR namespace_uid IS NULL THEN body ELSE '' END FROM inbox WHERE owner = ? AND read_at = 0"

// unread counts what a user may see and has not read, up to a number.
func (i *Inbox) unread(ctx context.Context, owner string, sees Sees, upTo uint64) (int, error) {
	found, err := visibleUnread(ctx, i.of(owner), owner, sees, upTo)
	return len(found), err
}

// visibleUnread are the numbers of what is unread and may be seen, up to a number. It is read in several turns.
func visibleUnread(ctx context.Context, from *store.Store, owner string, sees Sees, upTo uint64) (found []uint64, err error) {
	for after, more := uint64(0), true; more; {
		n := 0
		if err := from.Each(ctx, func(scan store.Scan) error {
			var seen bool
			after, seen, err = scanUnread(scan, sees)
			if n++; seen {
				found = append(found, after)
			}
			return err
		}, selectUnread+" AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?", owner, int64(after), int64(upTo), atOnce); err != nil {
			return nil, err
		}
		more = n == atOnce
	}
	return found, nil
}

// visibleUnreadOf are those of some numbers that are unread and may be seen.
func visibleUnreadOf(ctx context.Context, from *store.Store, owner string, sees Sees, seqs []uint64) (found []uint64, err error) {
	for some := range slices.Chunk(seqs, atOnce) {
		if err := from.Each(ctx, func(scan store.Scan) error {
			seq, seen, err := scanUnread(scan, sees)
			if seen {
				found = append(found, seq)
			}
			return err
		}, selectUnread+" AND seq IN "+listOf(some)+" ORDER BY seq", append([]any{owner}, numbers(some)...)...); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func scanUnread(scan store.Scan, sees Sees) (seq uint64, seen bool, err error) {
	var r row
	if err := scan(&r.seq, &r.kind, &r.job.Cluster, &r.job.Resource, &r.job.Namespace, &r.job.Name, &r.job.NamespaceUID, &r.body); err != nil {
		return 0, false, err
	}
	return r.seq, r.isSeen(sees), nil
}

// listOf is a list of as many arguments as there are values, which follows IN.
func listOf[T any](values []T) string { return "(?" + strings.Repeat(", ?", len(values)-1) + ")" }

func numbers(seqs []uint64) []any {
	all := make([]any, len(seqs))
	for n, seq := range seqs {
		all[n] = int64(seq)
	}
	return all
}

// Unread counts what a user may see and has not read. Errors are those of Settings.
func (i *Inbox) Unread(ctx context.Context, owner string, sees Sees) (n int, err error) {
	err = i.ask(ctx, "count what is unread", func(ctx context.Context) error {
		n, err = i.unread(ctx, owner, sees, 1<<63-1)
		return err
	})
	return n, err
}

// Snapshot is how an inbox stands at one number.
type Snapshot struct {
	Seq    uint64
	Newest []Notification
	Unread int
}

// Snapshot is how an inbox stands now, with so many of its newest notifications, the oldest first.
// Errors are those of Settings.
func (i *Inbox) Snapshot(ctx context.Context, owner string, sees Sees, newest int) (s Snapshot, err error) {
	err = i.ask(ctx, "read notifications", func(ctx context.Context) error {
		h, err := headOf(ctx, i.of(owner), owner)
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

// Update is one thing that has happened to an inbox.
type Update struct {
	Seq          uint64
	Notification *Notification // nil: something was read, or is not to be seen
	Mark         *Mark         // nil: nothing was read
}

// After are the changes that follow a number, in order, at most so many. Beside the errors of
// Settings there are ErrAhead and ErrExpired.
func (i *Inbox) After(ctx context.Context, owner string, sees Sees, after uint64, limit int) (found []Update, err error) {
	err = i.ask(ctx, "read notifications", func(ctx context.Context) error {
		all, err := rows(ctx, i.of(owner), "WHERE owner = ? AND seq > ? ORDER BY seq LIMIT ?", owner, int64(after), limit)
		if err != nil {
			return err
		}
		h, err := headOf(ctx, i.of(owner), owner) // afterwards: if it came first, something could be removed before it is read
		if err == nil {
			err = h.goesOn(after, i.keep())
		}
		if err != nil {
			return err
		}
		found = make([]Update, len(all))
		var last *Update
		for n, r := range all {
			found[n].Seq = r.seq
			if r.kind == kindMark {
				found[n].Mark = &Mark{}
				if err := json.Unmarshal([]byte(r.body), found[n].Mark); err != nil {
					return fmt.Errorf("a mark: %w", err)
				}
				last = &found[n]
			} else if told, ok := r.notification(sees, i.seal); ok {
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
