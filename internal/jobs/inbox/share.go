package inbox

import (
	"context"
	"maps"
	"slices"

	"github.com/kubecast/kubecast/internal/jobs/store"
)

// Anybody who may write jobs somewhere can name any owner, and so fill another's inbox. So where
// there is too much, the namespaces share the room, and the one of which there is most makes room
// first.

// room is how many rows an inbox has at most, and slack how many more it may have until some are
// removed, so that not each new row removes one. Tests change them.
var room, slack = uint64(10_000), uint64(500)

// where is a place without what does not count for a share.
func where(p JobRef) JobRef { return JobRef{Cluster: p.Cluster, Namespace: p.Namespace} }

// level is how much each may have at most, so that all together have no more than there is room for; at least one.
func level(counts []int, room int) int {
	slices.Sort(counts)
	for i, n := range counts {
		if share := room / (len(counts) - i); n > share {
			return max(1, share)
		}
		room -= n
	}
	return counts[len(counts)-1]
}

// shares counts the rows of a user in a table, by namespace.
func shares(ctx context.Context, tx *store.Tx, table, owner string) (counts map[JobRef]int, err error) {
	counts = map[JobRef]int{}
	err = tx.Each(ctx, func(scan store.Scan) error {
		var p JobRef
		var n int
		err := scan(&p.Cluster, &p.Namespace, &n)
		counts[p] = n
		return err
	}, "SELECT cluster, namespace, COUNT(*) FROM "+table+" WHERE owner = ? GROUP BY cluster, namespace", owner)
	return counts, err
}

// trim removes the oldest rows of the namespaces of which there are most, if an inbox has too many.
func (h *head) trim(ctx context.Context, tx *store.Tx) error {
	if h.seq-h.began <= room || h.seq/slack == (h.seq-uint64(len(h.rows)))/slack {
		return nil
	}
	counts, err := shares(ctx, tx, "inbox", h.owner)
	if err != nil {
		return err
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	if total <= int(room) {
		return nil
	}
	most := level(slices.Collect(maps.Values(counts)), int(room))
	for p, n := range counts {
		if n <= most {
			continue
		}
		var last uint64
		err := tx.QueryRow(ctx, "SELECT seq FROM inbox WHERE owner = ? AND cluster = ? AND namespace = ? ORDER BY seq LIMIT 1 OFFSET ?", h.owner, p.Cluster, p.Namespace, n-most-1).Scan(&last)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM inbox WHERE owner = ? AND cluster = ? AND namespace = ? AND seq <= ?", h.owner, p.Cluster, p.Namespace, int64(last)); err != nil {
			return err
		}
		h.expired = max(h.expired, last)
	}
	return nil
}

// chosenOf are those of some rows that fit into a digest, in their order: of each namespace the first.
func chosenOf(waiting []row, room int) (chosen map[int]bool) {
	counts := map[JobRef]int{}
	for _, r := range waiting {
		counts[where(r.job)]++
	}
	chosen = map[int]bool{}
	if len(counts) == 0 {
		return chosen
	}
	most := level(slices.Collect(maps.Values(counts)), room)
	clear(counts)
	for n, r := range waiting {
		if p := where(r.job); counts[p] < most && len(chosen) < room {
			counts[p]++
			chosen[n] = true
		}
	}
	return chosen
}
