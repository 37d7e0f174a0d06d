package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
)

// Jobs that were created before a span of time and held anything in it are found by what they held:
// in the whole log, by the indexes of until when jobs held something. These are stretches in which
// jobs move while they are read, so that one could be passed over, or met twice. So it is noted
// which ones were given, and those that have changed since the reading began are looked up by their
// uids at the end.
//
// A caller who may see or asks for little of the log does not pay for the whole of it: then all
// jobs that they may see are looked at, by when they were created, which never changes.

// changes are what has changed since a reading began.
type changes struct {
	runs, jobs int64           // the numbers of the last changes that were looked at
	ran, moved map[string]bool // the uids of jobs whose runs have changed, and that have changed their states
}

// lookForRuns looks at which jobs have runs that have changed.
func (l *lives) lookForRuns(ctx context.Context) error {
	return l.look(ctx, "runs", "runs_seq", &l.changes.runs, l.changes.ran)
}

// lookForJobs looks at which jobs have changed their states.
func (l *lives) lookForJobs(ctx context.Context) error {
	return l.look(ctx, "transitions", l.store.dialect.primary("transitions"), &l.changes.jobs, l.changes.moved)
}

func (l *lives) look(ctx context.Context, table, index string, since *int64, into map[string]bool) error {
	for {
		n := 0
		if err := l.store.Each(ctx, func(scan Scan) error {
			var uid string
			if err := scan(since, &uid); err != nil {
				return err
			}
			n++
			into[uid] = true
			return nil
		}, "SELECT seq, uid FROM "+table+l.store.dialect.use(index)+" WHERE log = ? AND seq > ? ORDER BY seq LIMIT ?", l.log.ID, *since, usageRows); err != nil {
			return err
		}
		if n < usageRows {
			return nil
		}
	}
}

var givenSeed = maphash.MakeSeed()

// first reports whether a job was not given yet, and notes that it is now. It keeps a hash of 8
// bytes, since there may be millions: that two of three million are taken for one is one in four
// million.
func (l *lives) first(uid string) bool {
	if l.given == nil {
		l.given = map[uint64]struct{}{}
	}
	key := maphash.String(givenSeed, uid)
	_, known := l.given[key]
	l.given[key] = struct{}{}
	return !known
}

// before reads the jobs that were created before a time and held anything after it.
func (l *lives) before(ctx context.Context, from int64) error {
	q := l.store.search(l.log, l.filter, jobsByCreation)
	few, err := l.asksForLess(ctx, q, from)
	if err != nil {
		return err
	}
	if few {
		return l.asked(ctx, q, from)
	}
	holds := index{"totals", "totals_until"}
	latest, err := l.latest(ctx, holds, "held_until")
	if err != nil {
		return err
	}
	for _, in := range []stretch{
		{holds, "1 = 1", "held_until", from, latest},
		{holds, fmt.Sprintf("held_until = %d", int64(stillRuns)), "first_held", math.MinInt64, int64(l.span.Until) - 1},
	} {
		if err := l.held(ctx, in, from); err != nil {
			return err
		}
	}
	if err := l.unrecorded(ctx, from); err != nil {
		return err
	}
	return l.changed(ctx, from)
}

// mostCompared is up to how many jobs it is counted what is less to read: what is asked for, or all
// of the log that held anything.
const mostCompared = 64_000

// asksForLess reports whether the jobs that are asked for and were created before a time are fewer
// than those of the log that held anything after it.
func (l *lives) asksForLess(ctx context.Context, q *search, from int64) (bool, error) {
	if len(q.leads) == 0 {
		return false, nil
	}
	for rows := l.store.window; rows <= mostCompared; rows *= windowGrowth {
		least, _, err := q.window(ctx, from-1, rows)
		if err != nil || least == none {
			return err == nil, err
		}
		var beyond int64
		err = l.store.QueryRow(ctx, fmt.Sprintf("SELECT held_until FROM totals%s WHERE log = ? AND held_until > ? ORDER BY held_until LIMIT 1 OFFSET %d",
			l.store.dialect.use("totals_until"), rows), l.log.ID, from).Scan(&beyond)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// asked reads the jobs that were created before a time and held anything after it, by what is asked for.
func (l *lives) asked(ctx context.Context, q *search, from int64) error {
	for upTo := from - 1; upTo != none; {
		least, by, err := q.window(ctx, upTo, l.store.window)
		if err != nil {
			return err
		}
		bounds := &where{}
		bounds.add("created <= ?", upTo)
		if least != none {
			bounds.add("created >= ?", least)
			upTo = least - 1
		} else {
			upTo = none
		}
		keys, args := q.keys(by, bounds, math.MaxInt32)
		uids, err := l.store.texts(ctx, "SELECT uid FROM "+keys, args...)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(uids, batchOfKeys) {
			if err := l.heldAmong(ctx, part, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// heldAmong reads those of some jobs that held anything after a time.
func (l *lives) heldAmong(ctx context.Context, uids []string, from int64) error {
	w := &where{}
	w.add("log = ?", l.log.ID)
	oneOf(w, "uid", uids)
	totals := map[string]int64{}
	if err := l.store.Each(ctx, func(scan Scan) error {
		var uid string
		var until int64
		err := scan(&uid, &until)
		totals[uid] = until
		return err
	}, "SELECT uid, held_until FROM totals "+w.String(), w.args...); err != nil {
		return err
	}
	var holding, unknown []string
	for _, uid := range uids {
		switch until, ok := totals[uid]; {
		case !ok:
			unknown = append(unknown, uid)
		case until > from || until == 0: // 0: none of its pods was bound, or all were forgotten
			holding = append(holding, uid)
		}
	}
	if err := l.these(ctx, holding, &where{}, nil); err != nil {
		return err
	}
	ran := &where{}
	ran.add("(ran_until IS NULL OR ran_until > ?)", from)
	return l.these(ctx, unknown, ran, nil)
}

// these reads jobs by their uids.
func (l *lives) these(ctx context.Context, uids []string, and *where, counts func(uid string, total bool) bool) error {
	if len(uids) == 0 {
		return nil
	}
	w := l.store.where(l.filter, l.log, "jobs", "state", "")
	oneOf(w, "uid", uids)
	w.texts, w.args = append(w.texts, and.texts...), append(w.args, and.args...)
	return l.read(ctx, "jobs"+l.store.dialect.use(l.store.dialect.primary("jobs"))+" "+w.String(), w.args, counts)
}

// unrecorded reads the jobs of which runs are not known that were created before a time and ran after it.
func (l *lives) unrecorded(ctx context.Context, from int64) error {
	created := from
	if l.covered.until == math.MaxInt64 {
		created = min(from, int64(l.covered.from))
	}
	ran := index{"jobs", "jobs_ran"}
	latest, err := l.latest(ctx, ran, "ran_until")
	if err != nil {
		return err
	}
	for _, in := range []stretch{
		{ran, "1 = 1", "ran_until", from, latest},
		{ran, fmt.Sprintf("ran_until = %d", int64(stillRuns)), "created", math.MinInt64, created - 1},
		{ran, "ran_until IS NULL", "created", math.MinInt64, created - 1},
	} {
		if err := l.ran(ctx, in, created); err != nil {
			return err
		}
	}
	return nil
}

// changed reads the jobs that have changed while others were read, and were not given: they may
// have been in none of the places where they were looked for.
func (l *lives) changed(ctx context.Context, from int64) error {
	if err := l.lookForRuns(ctx); err != nil {
		return err
	}
	if err := l.lookForJobs(ctx); err != nil {
		return err
	}
	var uids []string
	for _, of := range []map[string]bool{l.changes.ran, l.changes.moved} {
		for uid := range of {
			uids = append(uids, uid)
		}
	}
	created := &where{}
	created.add("created < ?", from)
	for part := range slices.Chunk(distinct(uids), batchOfKeys) {
		if err := l.these(ctx, part, created, func(uid string, _ bool) bool { return l.first(uid) }); err != nil {
			return err
		}
	}
	return nil
}

// index is one of a table.
type index struct{ table, name string }

// stretch is a part of an index.
type stretch struct {
	index
	is          string // what all its rows are
	column      string // that they are ordered by
	above, upTo int64
}

// latest is where a stretch of an index ends, of what has ended by now. What ends later is there
// because it has changed, and would otherwise be followed for as long as it goes on to.
func (l *lives) latest(ctx context.Context, of index, column string) (latest int64, err error) {
	err = l.store.QueryRow(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE log = ? AND %s < ? ORDER BY %s DESC LIMIT 1", column, of.table+l.store.dialect.use(of.name), column, column),
		l.log.ID, int64(stillRuns)).Scan(&latest)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return latest, err
}

// next cuts off a piece of a stretch, up to a value of its column; more says whether there is a rest.
func (l *lives) next(ctx context.Context, in stretch) (upTo int64, more bool, err error) {
	upTo = in.upTo
	err = l.store.QueryRow(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE log = ? AND %s AND %s > ? AND %s <= ? ORDER BY %s LIMIT 1 OFFSET %d",
		in.column, in.table+l.store.dialect.use(in.name), in.is, in.column, in.column, in.column, l.store.window), l.log.ID, in.above, in.upTo).Scan(&upTo)
	if errors.Is(err, sql.ErrNoRows) {
		return in.upTo, false, nil
	}
	return upTo, err == nil, err
}

// ran reads the jobs of a stretch that were created before a time, and whose runs are not known.
func (l *lives) ran(ctx context.Context, in stretch, created int64) error {
	for more := true; more; {
		var upTo int64
		var err error
		if upTo, more, err = l.next(ctx, in); err != nil {
			return err
		}
		w := l.store.where(l.filter, l.log, "jobs", "state", "")
		w.add(in.is+" AND created < ? AND "+in.column+" > ? AND "+in.column+" <= ?", created, in.above, upTo)
		if err := l.read(ctx, in.table+l.store.dialect.use(in.name)+" "+w.String(), w.args, func(uid string, total bool) bool { return !total && l.first(uid) }); err != nil {
			return err
		}
		in.above = upTo
	}
	return nil
}

// held reads the jobs that were created before a time and whose totals are in a stretch.
func (l *lives) held(ctx context.Context, in stretch, created int64) error {
	for more := true; more; {
		var upTo int64
		var err error
		if upTo, more, err = l.next(ctx, in); err != nil {
			return err
		}
		uids, err := l.store.texts(ctx, "SELECT uid FROM "+in.table+l.store.dialect.use(in.name)+" WHERE log = ? AND "+in.is+" AND "+in.column+" > ? AND "+in.column+" <= ?", l.log.ID, in.above, upTo)
		if err != nil {
			return err
		}
		before := &where{}
		before.add("created < ?", created)
		for part := range slices.Chunk(uids, batchOfKeys) {
			if err := l.these(ctx, part, before, func(uid string, total bool) bool { return total && l.first(uid) }); err != nil {
				return err
			}
		}
		in.above = upTo
	}
	return nil
}
