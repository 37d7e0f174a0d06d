package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/history"
)

// A page is looked for in windows: stretches of the order in which pages are, each so short that all of it can be looked
// at. Of the conditions that are asked for, the one leads by which there is least to look at: an owner's 500 jobs rather
// than a queue's million. The index of an owner or queue says how far back a given number of rows reaches from where the
// page begins. So nothing depends on a database's statistics, and a page with few rows costs as much as these, and not
// as much as the table.

const (
	// firstWindow is how many rows the first window has. Only after that is it known whether these fill the page.
	firstWindow = 1000
	// windowGrowth is how many times as large each window is as the one before.
	windowGrowth = 8
	// mostLeading is how many values are looked up one by one at most.
	mostLeading = 100
)

// lead is a condition by which rows can be found: one of its columns has one of its values.
type lead []led

// led is the part of a lead that concerns one column, which has an index. Without a column it means all rows, in their
// order.
type led struct {
	index  string
	column string
	values []string
	span   []any // instead of a column: a span of time
}

// search looks for pages of a table.
type search struct {
	store *Store
	log   Log
	table string // its index of a column is called table_column
	by    string // the column by which it is ordered, the highest first
	order string // the index that has all rows in this order
	state string // the column of States
	time  string // the column of Since and Until
	where *where
	span  [2]history.Time // bounds of time: from, and before; 0: no bound
	leads []lead
}

func (s *Store) search(log Log, f Filter, q search) *search {
	q.store, q.log, q.where, q.span = s, log, f.where(log, q.state, q.time), [2]history.Time{f.Since, f.Until}
	q.lead("uid", f.UIDs)
	q.lead("name", one(f.Name))
	q.lead("owner", f.Owners)
	q.lead("queue", f.Queues)
	q.lead("namespace", one(f.Namespace))
	q.lead(q.state, texts(f.States))
	if f.Namespace == "" && f.Within != nil {
		q.leadWithin(f.Within, f.Own)
	}
	return &q
}

func one(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

func texts(states []history.State) (all []string) {
	for _, s := range states {
		all = append(all, string(s))
	}
	return all
}

// lead adds a condition that could lead.
func (q *search) lead(column string, values []string) {
	if len(values) > 0 && len(values) <= mostLeading {
		q.leads = append(q.leads, lead{{index: q.table + "_" + column, column: column, values: slices.Compact(slices.Sorted(slices.Values(values)))}})
	}
}

// leadWithin adds what a caller may see as a condition that could lead.
func (q *search) leadWithin(places []Place, own string) {
	var namespaces, names []string
	for _, p := range places {
		switch {
		case p.Name != "":
			names = append(names, p.Name)
		case p.Namespace == AnyNamespace:
			return
		default:
			namespaces = append(namespaces, p.Namespace)
		}
	}
	if len(namespaces)+len(names) > mostLeading {
		return
	}
	before := len(q.leads)
	q.lead("namespace", namespaces)
	q.lead("name", names)
	q.lead("owner", one(own))
	if parts := q.leads[before:]; len(parts) > 0 {
		q.leads = append(q.leads[:before:before], slices.Concat(parts...))
	}
}

// none is the bound below which there is nothing.
const none = math.MinInt64

// window returns from where on there are about so many rows to look at, up to a place, and the lead by which to read
// them. If from is none, these are all rows.
func (q *search) window(ctx context.Context, upTo int64, rows int) (from int64, by lead, err error) {
	leads := q.leads
	if len(leads) == 0 {
		leads = []lead{{{index: q.order, values: []string{""}}}} // all of them
	}
	var parts []string
	var args []any
	for _, l := range leads {
		n := 0
		for _, of := range l {
			n += len(of.values)
		}
		for _, of := range l {
			one := fmt.Sprintf("SELECT %s FROM %s%s WHERE log = ?%%s AND %s <= ? ORDER BY %s DESC LIMIT 1 OFFSET %d",
				q.by, q.table, q.store.dialect.use(of.index), q.by, q.by, rows/n)
			args = append(args, q.log.ID, upTo)
			if of.column == "" {
				parts = append(parts, "("+fmt.Sprintf(one, "")+")")
				continue
			}
			value := "SELECT CAST(? AS " + q.store.dialect.text() + ")"
			parts = append(parts, fmt.Sprintf("(SELECT MAX(back) FROM (SELECT ("+one+") AS back FROM (%s AS value%s) AS one) AS all_of_them)",
				" AND "+of.column+" = one.value", value, strings.Repeat(" UNION ALL "+value, len(of.values)-1)))
			for _, value := range of.values {
				args = append(args, value)
			}
		}
	}
	bounds := make([]sql.NullInt64, len(parts))
	into := make([]any, len(parts))
	for i := range bounds {
		into[i] = &bounds[i]
	}
	if err := q.store.db.QueryRowContext(ctx, q.store.dialect.bind("SELECT "+strings.Join(parts, ", ")), args...).Scan(into...); err != nil {
		return 0, nil, fmt.Errorf("look for a page: %w", err)
	}
	from = math.MaxInt64
	for _, l := range leads {
		back := int64(none)
		for range l {
			if b := bounds[0]; b.Valid {
				back = max(back, b.Int64)
			}
			bounds = bounds[1:]
		}
		if back < from {
			from, by = back, l
		}
	}
	return from, by, nil
}

// few is a lead by a span of time, if the question has one with no more than so many rows; else nil.
func (q *search) few(ctx context.Context, rows int) (lead, error) {
	if q.span == [2]history.Time{} {
		return nil, nil
	}
	from, before := q.times()
	index := q.table + "_" + q.time
	var beyond int64
	err := q.store.db.QueryRowContext(ctx, q.store.dialect.bind(fmt.Sprintf("SELECT %s FROM %s%s WHERE log = ? AND %s >= ? AND %s < ? ORDER BY %s LIMIT 1 OFFSET %d",
		q.time, q.table, q.store.dialect.use(index), q.time, q.time, q.time, rows)), q.log.ID, from, before).Scan(&beyond)
	if errors.Is(err, sql.ErrNoRows) {
		return lead{{index: index, span: []any{from, before}}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a page: %w", err)
	}
	return nil, nil
}

// times are the bounds of the span; the second is exclusive.
func (q *search) times() (from, before int64) {
	from, before = int64(q.span[0]), int64(q.span[1])
	if before == 0 {
		before = math.MaxInt64
	}
	return from, before
}

// rowsOf is what follows FROM to read rows by one part of a lead, between bounds.
func (q *search) rowsOf(by led, bounds *where) (text string, args []any) {
	w := &where{}
	w.add("log = ?", q.log.ID)
	if by.column != "" {
		oneOf(w, by.column, by.values)
	}
	if by.span != nil {
		w.add(q.time+" >= ? AND "+q.time+" < ?", by.span...)
	}
	w.texts, w.args = append(w.texts, bounds.texts...), append(w.args, bounds.args...)
	from, args := q.store.dialect.led(q.table, by.index, w)
	all := &where{texts: slices.Concat(q.where.texts, w.texts[1:]), args: slices.Concat(q.where.args, w.args[1:])}
	return from + " " + all.String(), append(args, all.args...)
}

// merge reads by each part of a lead, and keeps the first of all rows found, each once.
func merge[T any](by lead, limit int, compare func(a, b T) int, read func(led) ([]T, error)) (all []T, err error) {
	for _, of := range by {
		found, err := read(of)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if len(by) > 1 {
		slices.SortFunc(all, compare)
		all = slices.CompactFunc(all, func(a, b T) bool { return compare(a, b) == 0 })
	}
	return all[:min(len(all), limit)], nil
}

// Jobs is a page of jobs, the newest first: ordered by creation, then by uid. If there are fewer than the limit, there
// are no more.
func (s *Store) Jobs(ctx context.Context, log Log, f Filter, after JobAfter, limit int) (found []*history.Job, err error) {
	q := s.search(log, f, search{table: "jobs", by: "created", order: "jobs_created", state: "state", time: "since"})
	if f.Until != 0 && (after == JobAfter{} || after.Created >= f.Until) {
		after = JobAfter{Created: f.Until} // a job is created before it comes to its state
	}
	for rows := firstWindow; ; rows *= windowGrowth {
		few, err := q.few(ctx, rows)
		if err != nil {
			return nil, err
		}
		by, from, bounds := few, int64(none), &where{}
		if after != (JobAfter{}) {
			bounds.add("created <= ? AND (created < ? OR uid < ?)", int64(after.Created), int64(after.Created), after.UID)
		}
		if few == nil {
			upTo := int64(after.Created)
			if after == (JobAfter{}) {
				upTo = math.MaxInt64
			}
			if from, by, err = q.window(ctx, upTo, rows); err != nil {
				return nil, err
			}
			if from != none {
				bounds.add("created >= ?", from)
			}
		}
		most := limit - len(found)
		page, err := merge(by, most, func(a, b *history.Job) int {
			return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(b.UID, a.UID))
		}, func(of led) ([]*history.Job, error) {
			text, args := q.rowsOf(of, bounds)
			return s.jobs(ctx, text+" ORDER BY created DESC, uid DESC LIMIT ?", append(args, most)...)
		})
		if err != nil {
			return nil, err
		}
		if found = append(found, page...); len(found) >= limit || from == none {
			return found, nil
		}
		after = JobAfter{Created: history.Time(from)}
	}
}

// Transitions is a page of transitions, the newest first, of those before a number; 0 is before all. Less than the limit are all
// that there are.
func (s *Store) Transitions(ctx context.Context, log Log, f Filter, before uint64, limit int) (found []*history.Transition, err error) {
	q := s.search(log, f, search{table: "transitions", by: "seq", order: s.dialect.primary("transitions"), state: "to_state", time: "at"})
	upTo := int64(math.MaxInt64)
	if before != 0 {
		upTo = int64(before) - 1
	}
	for rows := firstWindow; ; rows *= windowGrowth {
		few, err := q.few(ctx, rows)
		if err != nil {
			return nil, err
		}
		by, from, bounds := few, int64(none), &where{}
		if few == nil {
			tail, more, err := q.skip(ctx, &upTo)
			if err != nil || !more {
				return found, err
			}
			if from, by, err = q.window(ctx, upTo, rows); err != nil {
				return nil, err
			}
			if from = max(from, tail); from != none {
				bounds.add("seq >= ?", from)
			}
		}
		bounds.add("seq <= ?", upTo)
		most := limit - len(found)
		page, err := merge(by, most, func(a, b *history.Transition) int { return cmp.Compare(b.Seq, a.Seq) }, func(of led) ([]*history.Transition, error) {
			text, args := q.rowsOf(of, bounds)
			return s.transitions(ctx, text+" ORDER BY seq DESC LIMIT ?", append(args, most)...)
		})
		if err != nil {
			return nil, err
		}
		if found = append(found, page...); len(found) >= limit || from == none {
			return found, nil
		}
		upTo = from - 1
	}
}

// skip passes over transitions outside the span of time. It lowers upTo to the end of the first block that has some
// within the span, or reports that there is none. Transitions that are in no whole block yet, from tail on, are looked
// at first.
func (q *search) skip(ctx context.Context, upTo *int64) (tail int64, more bool, err error) {
	if q.span == [2]history.Time{} {
		return none, true, nil
	}
	whole := int64(q.log.Seq / blockSize)
	if *upTo > whole*blockSize {
		return whole*blockSize + 1, true, nil
	}
	from, before := q.times()
	var block int64
	err = q.store.db.QueryRowContext(ctx, q.store.dialect.bind("SELECT block FROM spans WHERE log = ? AND block <= ? AND least < ? AND most >= ? ORDER BY block DESC LIMIT 1"),
		q.log.ID, (*upTo-1)/blockSize, before, from).Scan(&block)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look for a page: %w", err)
	}
	*upTo = min(*upTo, (block+1)*blockSize)
	return none, true, nil
}

// blockSize is the number of transitions whose times one row of spans covers. The first block has the numbers from 1 to
// blockSize.
const blockSize = 1000

// block writes the spans of time of the blocks that a batch completes. So pages of the past need not look through what
// came after.
func (s *Store) block(ctx context.Context, tx *sql.Tx, log Log, to uint64) error {
	for block := log.Seq / blockSize; block < to/blockSize; block++ {
		var least, most sql.NullInt64
		if err := tx.QueryRowContext(ctx, s.dialect.bind("SELECT MIN(at), MAX(at) FROM transitions WHERE log = ? AND seq > ? AND seq <= ?"),
			log.ID, int64(block*blockSize), int64((block+1)*blockSize)).Scan(&least, &most); err != nil {
			return err
		}
		if _, err := s.exec(ctx, tx, "INSERT INTO spans (log, block, least, most) VALUES (?, ?, ?, ?)", log.ID, int64(block), least.Int64, most.Int64); err != nil {
			return err
		}
	}
	return nil
}
