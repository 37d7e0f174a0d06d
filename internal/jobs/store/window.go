package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/jobs"
)

// A page is looked for in windows: stretches of the order in which pages are, each so short that
// all of it can be looked at. Of the conditions that are asked for, the one leads by which there is
// least to look at: an owner's 500 jobs rather than a queue's million. The index of an owner or
// queue says how far back a given number of rows reaches from where the page begins. So nothing
// depends on a database's statistics, and a page with few rows costs as much as these, and not as
// much as the table.
//
// Whatever is looked at is in an index with all columns that are asked for. The rows themselves are
// read last, and no more of them than the page has.

const (
	// firstWindow is how many rows the first window has. Only after that is it known whether these fill the page.
	firstWindow = 1000
	// windowGrowth is how many times as large each window is as the one before.
	windowGrowth = 8
	// mostLeading is how many values are looked up one by one at most.
	mostLeading = 100
)

// lead is a condition by which rows can be found: all of one of its parts.
type lead []led

// led is the part of a lead that one index finds: a column has one of some values, or something
// else holds, or neither, which means all rows in their order.
type led struct {
	index  string
	column string
	values []string
	holds  *where
	whole  bool // all is asked of its rows that the filter asks, also what is not in other indexes
}

// search looks for pages of a table.
type search struct {
	store  *Store
	log    Log
	table  string       // its index of a column is called table_column
	key    string       // with the log, its primary key
	by     string       // the column by which it is ordered, the highest first
	page   string       // the order of pages
	order  string       // the index that has all rows in this order
	state  string       // the column of States; "" if there are none
	time   string       // the column of Since and Until
	where  *where       // what indexes have
	whole  *where       // all that is asked for
	named  *led         // what the first leaves out, where the rest can be looked for without: objects that a caller may see by their names, which few indexes have
	span   [2]jobs.Time // bounds of time: from, and before; 0: no bound
	leads  []lead
	parted bool // a part of a name is asked for
	caused bool // causes are asked for, which only the index that leads has
}

func (s *Store) search(log Log, f Filter, q search) *search {
	q.store, q.log, q.span, q.parted = s, log, [2]jobs.Time{f.Since, f.Until}, f.Search != ""
	q.whole = s.where(f, log, q.table, q.state, q.time)
	namespaces, names, anywhere := split(f.Within)
	if len(f.Causes) > 0 { // no other index has them
		q.where, q.caused = q.whole, true
		q.lead("cause_reason", f.Causes)
		return &q
	}
	if !anywhere && len(names) > 0 && len(names) <= mostLeading && (len(namespaces) > 0 || f.Own != "") {
		q.named = &led{index: q.table + "_name", column: "name", values: distinct(names), whole: true}
		f.Within, names = slices.DeleteFunc(slices.Clone(f.Within), func(p NamespacedName) bool { return p.Name != "" }), nil
	}
	q.where = s.where(f, log, q.table, q.state, q.time)
	if len(f.Parents) > 0 { // which no other index has
		q.leads, q.named, q.where = []lead{{{index: "jobs_parent", column: "parent_uid", values: distinct(f.Parents)}}}, nil, q.whole
		return &q
	}
	q.lead("uid", f.UIDs)
	q.lead("name", one(f.Name))
	q.lead("owner", f.Owners)
	if q.table != "runs" { // which have no such index
		q.lead("queue", f.Queues)
	}
	q.lead("namespace", one(f.Namespace))
	q.lead(q.state, texts(f.States))
	if f.Namespace == "" && f.Within != nil && !anywhere {
		q.leadWithin(namespaces, names, f.Own)
	}
	return &q
}

// split takes what a caller may see apart: whole namespaces, the names of single objects, and whether it is everything.
func split(named []NamespacedName) (namespaces, names []string, anywhere bool) {
	for _, p := range named {
		switch {
		case p.Name != "":
			names = append(names, p.Name)
		case p.Namespace == AnyNamespace:
			anywhere = true
		default:
			namespaces = append(namespaces, p.Namespace)
		}
	}
	return namespaces, names, anywhere
}

func distinct(values []string) []string { return slices.Compact(slices.Sorted(slices.Values(values))) }

func one(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

func texts(states []jobs.State) (all []string) {
	for _, s := range states {
		all = append(all, string(s))
	}
	return all
}

// lead adds a condition that could lead.
func (q *search) lead(column string, values []string) {
	index := q.table + "_" + column
	if column == q.key {
		index = q.store.dialect.primary(q.table) // it has a row of a value, which needs no other index
	}
	if len(values) > 0 && len(values) <= mostLeading {
		q.leads = append(q.leads, lead{{index: index, column: column, values: distinct(values)}})
	}
}

// leadWithin adds what a caller may see as a condition that could lead.
func (q *search) leadWithin(namespaces, names []string, own string) {
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
			if of.column == "" {
				parts, args = append(parts, "("+fmt.Sprintf(one, "")+")"), append(args, q.log.ID, upTo)
				continue
			}
			if !q.store.dialect.seeks() {
				each := "SELECT (" + fmt.Sprintf(one, " AND "+of.column+" = ?") + ") AS back"
				parts = append(parts, "(SELECT MAX(back) FROM ("+each+strings.Repeat(" UNION ALL "+each, len(of.values)-1)+") AS all_of_them)")
				for _, value := range of.values {
					args = append(args, q.log.ID, value, upTo)
				}
				continue
			}
			args = append(args, q.log.ID, upTo)
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
	if err := q.store.QueryRow(ctx, "SELECT "+strings.Join(parts, ", "), args...).Scan(into...); err != nil {
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
	if rows > q.store.window && len(q.leads) > 1 { // the second window tells by which condition there is least to look at
		q.leads = []lead{by}
	}
	return from, by, nil
}

// wider is how many rows the window behind one of so many has.
func (q *search) wider(rows int) int {
	rows *= windowGrowth
	switch {
	case !q.parted:
		return rows
	case slices.ContainsFunc(q.leads, lead.hasNoNames):
		return min(rows, mostRead)
	}
	return min(rows, mostSearched)
}

// hasNoNames reports whether the rows themselves are read for their names, which is a read of the disk for each where the
// database has not read them lately.
func (l lead) hasNoNames() bool {
	return slices.ContainsFunc(l, func(of led) bool { return !slices.Contains([]string{"name", "parent_uid", "cause_reason"}, of.column) })
}

// few is a lead by a span of time, if the question has one with no more than so many rows; else nil.
func (q *search) few(ctx context.Context, rows int) (lead, error) {
	if q.span == [2]jobs.Time{} || q.caused {
		return nil, nil
	}
	from, before := q.times()
	index := q.table + "_" + q.time
	var beyond int64
	err := q.store.QueryRow(ctx, fmt.Sprintf("SELECT %s FROM %s%s WHERE log = ? AND %s >= ? AND %s < ? ORDER BY %s LIMIT 1 OFFSET %d",
		q.time, q.table, q.store.dialect.use(index), q.time, q.time, q.time, rows), q.log.ID, from, before).Scan(&beyond)
	if errors.Is(err, sql.ErrNoRows) {
		holds := &where{}
		holds.add(q.time+" >= ? AND "+q.time+" < ?", from, before)
		return lead{{index: index, holds: holds}}, nil
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

// rowsOf reads the keys of a page's rows by one part of a lead, between bounds.
func (q *search) rowsOf(by led, bounds *where, limit int) (text string, args []any) {
	w := &where{}
	w.add("log = ?", q.log.ID)
	if by.column != "" {
		oneOf(w, by.column, by.values)
	}
	if by.holds != nil {
		w.texts, w.args = append(w.texts, by.holds.texts...), append(w.args, by.holds.args...)
	}
	w.texts, w.args = append(w.texts, bounds.texts...), append(w.args, bounds.args...)
	asked := q.where
	if by.whole {
		asked = q.whole
	}
	from, args := q.store.dialect.led(q.table, by.index, w)
	all := &where{texts: slices.Concat(asked.texts, w.texts[1:]), args: slices.Concat(asked.args, w.args[1:])}
	columns := q.by
	if q.key != q.by {
		columns += ", " + q.key
	}
	text = fmt.Sprintf("SELECT %s AS id, %s FROM %s %s ORDER BY %s LIMIT ?", q.store.dialect.row(q.key), columns, from, all, q.page)
	return text, append(append(args, all.args...), limit)
}

// rows is what follows FROM to read the first rows by a lead, between bounds: the keys are found in
// indexes, and only then are so many rows read.
func (q *search) rows(by lead, bounds *where, limit int) (text string, args []any) {
	keys, args := q.keys(by, bounds, limit)
	order := q.table + "." + strings.ReplaceAll(q.page, ", ", ", "+q.table+".")
	return fmt.Sprintf("(SELECT id FROM %s) AS found CROSS JOIN %s WHERE %s.log = ? AND %s.%s = found.id ORDER BY %s",
		keys, q.table, q.table, q.table, q.store.dialect.row(q.key), order), append(args, q.log.ID)
}

// keys is a table expression of the keys of the first rows by a lead, between bounds.
func (q *search) keys(by lead, bounds *where, limit int) (text string, args []any) {
	if q.named != nil {
		by = append(by[:len(by):len(by)], *q.named)
	}
	var parts []string
	for _, of := range by {
		part, more := q.rowsOf(of, bounds, limit)
		parts, args = append(parts, part), append(args, more...)
	}
	keys := parts[0]
	if len(parts) > 1 {
		for i, part := range parts {
			parts[i] = fmt.Sprintf("SELECT * FROM (%s) AS part%d", part, i)
		}
		keys = "SELECT * FROM (" + strings.Join(parts, " UNION ") + ") AS parts ORDER BY " + q.page + " LIMIT ?"
		args = append(args, limit)
	}
	return "(" + keys + ") AS keyed", args
}
