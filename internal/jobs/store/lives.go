package store

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/kubecast/kubecast/internal/jobs"
)

// Jobs are ordered by creation, and asked for by when their state changed. What was created before
// one time and changed after another would be found by no index of either, if the two are far
// apart, but by looking through all that was created before. So each row has about how long its job
// has lived, as a power of two. Among jobs of about one length of life, either time says what the
// other is: a job that has lived for two to four hours and has changed since noon was created after
// eight o'clock.

// lengths is how many lengths of life there are: 0 for less than one second, 1 for less than two,
// then four, up to 68 years and above.
const lengths = 32

// mostArgs bounds the arguments that stand in a question once for each length of life, such as the
// namespaces that a caller may see. Of all that a question has, SQLite takes 32,766, and the others
// 65,535.
const mostArgs = 20_000

// lived is about how long a job has lived, from its creation to the last change of its state.
func lived(j *jobs.Job) int {
	return min(bits.Len64(uint64(max(0, j.Since-j.Created))/1000), lengths-1)
}

// created are the bounds of when jobs were created of one length of life, of which the state has
// changed within the span of time; the second is exclusive.
func (q *search) created(life int) (from, before int64) {
	from, before = math.MinInt64, math.MaxInt64
	if q.span[0] != 0 && life < lengths-1 {
		from = int64(q.span[0]) - 1000<<life + 1
	}
	if q.span[1] != 0 {
		before = int64(q.span[1])
		if life > 0 {
			before -= 1000 << (life - 1)
		}
	}
	return from, before
}

// lives is a lead by all lengths of life: to all jobs, in an index that has their names. It is one part, since what else is
// asked for, such as thousands of namespaces, would stand in the question once for each.
func (q *search) lives() lead {
	all := make([]string, lengths)
	for life := range all {
		all[life] = strconv.Itoa(life)
	}
	holds := &where{}
	holds.add("lived IN (" + strings.Join(all, ", ") + ")")
	return lead{{index: "jobs_lived", holds: holds}}
}

// fewLives is a lead by lengths of life, if there is a span of time in which no more than so many
// jobs changed that come after a place; else nil.
func (q *search) fewLives(ctx context.Context, after JobAfter, rows int) (lead, error) {
	if q.span == [2]jobs.Time{} || q.caused {
		return nil, nil
	}
	const index = "jobs_lived"
	var parts []string
	var args []any
	var by [lengths]led
	for life := range lengths {
		from, before := q.created(life)
		if after != (JobAfter{}) {
			before = min(before, int64(after.Created)+1)
		}
		holds := &where{}
		holds.add("lived = ? AND created >= ? AND created < ?", life, from, before)
		by[life] = led{index: index, holds: holds}
		parts = append(parts, fmt.Sprintf("SELECT * FROM (SELECT lived FROM jobs%s WHERE log = ? AND %s LIMIT %d) AS life%d", q.store.dialect.use(index), holds.texts[0], rows+1, life))
		args = append(append(args, q.log.ID), holds.args...)
	}
	least, n := lengths, 0
	if err := q.store.Each(ctx, func(scan Scan) error {
		var life, jobList int
		if err := scan(&life, &jobList); err != nil {
			return err
		}
		least, n = min(least, life), n+jobList
		return nil
	}, fmt.Sprintf("SELECT lived, COUNT(*) FROM (%s LIMIT %d) AS lives GROUP BY lived", strings.Join(parts, " UNION ALL "), rows+1), args...); err != nil {
		return nil, fmt.Errorf("look for a page: %w", err)
	}
	switch {
	case n > rows:
		return nil, nil
	case n == 0:
		return lead{by[0]}, nil
	}
	// A job may grow older before its row is read, but never younger. So those of longer lives are asked for, too.
	few := by[least:]
	if len(few)*len(q.where.args) > mostArgs {
		return nil, nil
	}
	return few, nil
}
