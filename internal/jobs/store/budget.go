package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// What is kept of jobs is the only thing in the database of which a tenant decides how large it is:
// a job's spec and log take a hundred times what its states take. So each namespace of a cluster
// has a budget of a day, for all kinds together. It is a namespace's by its name, since whoever may
// make namespaces anew may also make others.
//
// How much of it is used up is in the database, in the transaction that keeps something: a restart
// gives nothing back, and replicas share it. Each row has one writer, so nobody waits for
// another's: the recorder of a log, or who keeps the ends of its logs. What two of them use at the
// same moment they may both find to be there.

var budgetColumns = []string{"namespace", "log", "kind", "span", "bytes"}

const (
	// budgetSpan is of how much time what was used up is summed up, and budgetSpans of how many of
	// them before the present one it counts: of a day or a little more.
	budgetSpan  = 4 * time.Hour
	budgetSpans = 6
)

// spanNow is the number of the span of time that it is.
func spanNow() int64 { return time.Now().UnixMilli() / budgetSpan.Milliseconds() }

// notKept is in place of what was not kept because of the budget, so that this can be said of it.
// Nothing that Pack makes is so short.
var notKept = []byte{0}

// spender is who uses up a namespace's budget for one kind of what is kept.
type spender struct {
	namespace string
	kind      KeptKind
}

// charge takes what is to be kept from the budgets of its namespaces, and marks what these have no room for.
func (s *Store) charge(ctx context.Context, tx *Tx, log Log, all []Kept) error {
	if s.budget == 0 || len(all) == 0 {
		return nil
	}
	used := map[string]int64{} // of each namespace, by whomever
	for _, k := range all {
		used[k.Namespace] = 0
	}
	own, now := map[spender]int64{}, spanNow() // in this span
	for part := range slices.Chunk(slices.Sorted(maps.Keys(used)), batchOfKeys) {
		w := &where{}
		s.oneOf(w, "namespace", part)
		w.add("log IN (SELECT id FROM logs WHERE cluster = ?)", log.Cluster)
		w.add("span >= ?", now-budgetSpans)
		if err := tx.Each(ctx, func(scan Scan) error {
			var of spender
			var by, span, bytes int64
			err := scan(&of.namespace, &by, &of.kind, &span, &bytes)
			if used[of.namespace] += bytes; by == log.ID && span == now {
				own[of] = bytes
			}
			return err
		}, "SELECT namespace, log, kind, span, bytes FROM kept_budgets "+w.String(), w.args...); err != nil {
			return fmt.Errorf("read budgets: %w", err)
		}
	}
	var changed []spender
	for i := range all {
		k := &all[i]
		cost, most := int64(max(0, len(k.Data)-k.replaces)), s.budget
		if k.Kind.IsOfPod() { // how jobs ended matters more: half of it is left for that
			most /= 2
		}
		if k.Over = used[k.Namespace]+cost > most; k.Over || cost == 0 {
			continue
		}
		of := spender{k.Namespace, k.Kind.payer()}
		used[k.Namespace] += cost
		own[of] += cost
		changed = append(changed, of)
	}
	slices.SortFunc(changed, func(a, b spender) int { // all lock rows in one order
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.kind, b.kind))
	})
	var rows [][]any
	for _, of := range slices.Compact(changed) {
		rows = append(rows, []any{of.namespace, log.ID, string(of.kind), now, own[of]})
	}
	if err := tx.Insert(ctx, "kept_budgets", budgetColumns, rows, budgetColumns[:4], budgetColumns[4:]); err != nil {
		return fmt.Errorf("write budgets: %w", err)
	}
	return nil
}

// lockBudget keeps others from using the same row until the end of the transaction: of logs,
// several are kept at a time.
func (s *Store) lockBudget(ctx context.Context, tx *Tx, log Log, k Kept) error {
	if s.budget == 0 {
		return nil
	}
	key := []any{k.Namespace, log.ID, string(k.Kind.payer()), spanNow()}
	if err := tx.Insert(ctx, "kept_budgets", budgetColumns, [][]any{append(slices.Clone(key), 0)}, budgetColumns[:4], nil); err != nil {
		return err
	}
	var bytes int64
	return tx.QueryRow(ctx, "SELECT bytes FROM kept_budgets WHERE namespace = ? AND log = ? AND kind = ? AND span = ?"+tx.Locks(), key...).Scan(&bytes)
}

// expireBudgets removes what counts no more.
func (s *Store) expireBudgets(ctx context.Context, log Log) error {
	w := &where{}
	w.add("log = ?", log.ID)
	w.add("span < ?", spanNow()-budgetSpans)
	if some, err := s.texts(ctx, "SELECT namespace FROM kept_budgets "+w.String()+" LIMIT 1", w.args...); err != nil || len(some) == 0 {
		return err
	}
	return s.Transact(ctx, func(tx *Tx) error {
		_, err := deleteFrom(ctx, tx, "kept_budgets", w)
		return err
	})
}
