package inbox

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/kubecast/kubecast/internal/jobs/store"
)

// Mark says what was read: all up to a number, or some.
type Mark struct {
	UpTo   string   `json:"upTo,omitempty"`
	IDs    []string `json:"ids,omitempty"`
	Unread *int     `json:"unread,omitempty"` // how many are left; only of the last of several, and not in the database
}

// markAtOnce is how many notifications are marked in one transaction. So others never wait for one who marks thousands.
const markAtOnce = 200

// Read marks notifications of a user as read: all up to a number, and those with given numbers.
// What is read already, not there, or not to be seen is left out: a mark tells nothing of it. What
// is to be marked is found before anything is written, and where there is nothing, nothing is
// written. Of many there are several marks, the oldest notifications first. Errors are those of
// Settings.
func (i *Inbox) Read(ctx context.Context, owner string, sees Sees, upTo uint64, ids []uint64) error {
	var before, named []uint64
	err := i.ask(ctx, "look for what is to be marked as read", func(ctx context.Context) error {
		h, err := headOf(ctx, i.of(owner), owner)
		if err != nil {
			return err
		}
		upTo = min(upTo, h.seq)
		if upTo > 0 {
			if before, err = visibleUnread(ctx, i.of(owner), owner, sees, upTo); err != nil {
				return err
			}
		}
		ids = slices.DeleteFunc(slices.Clone(ids), func(id uint64) bool { return id <= upTo || id > h.seq })
		named, err = visibleUnreadOf(ctx, i.of(owner), owner, sees, ids)
		return err
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(before, markAtOnce) {
		last := some[len(some)-1]
		if last == before[len(before)-1] {
			last = upTo
		}
		if err := i.mark(ctx, owner, some, Mark{UpTo: strconv.FormatUint(last, 10)}); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(named, markAtOnce) {
		var m Mark
		for _, seq := range some {
			m.IDs = append(m.IDs, strconv.FormatUint(seq, 10))
		}
		if err := i.mark(ctx, owner, some, m); err != nil {
			return err
		}
	}
	return nil
}

// mark marks some notifications, and writes a mark that says so, unless another has marked all of them meanwhile.
func (i *Inbox) mark(ctx context.Context, owner string, seqs []uint64, m Mark) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	marked := false
	err = i.ask(ctx, "mark notifications as read", func(ctx context.Context) error {
		return i.of(owner).Transact(ctx, func(tx *store.Tx) error {
			h, err := lockOne(ctx, tx, owner)
			if err != nil || h == nil {
				return err
			}
			n, err := tx.Exec(ctx, "UPDATE inbox SET read_at = ? WHERE owner = ? AND read_at = 0 AND seq IN "+listOf(seqs), append([]any{int64(h.now), owner}, numbers(seqs)...)...)
			if marked = n > 0; err != nil || !marked {
				return err
			}
			h.add(kindMark, JobRef{}, false, h.now, string(body))
			return save(ctx, tx, []*head{h})
		})
	})
	if err == nil && marked {
		i.Wake()
	}
	return err
}
