//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// question is a page that somebody asks for.
type question struct {
	transitions bool
	filter      store.Filter
	after       store.JobAfter
	before      uint64
}

// pageSize is that of a page as the gateway asks for it: one more than its limit says whether there are others.
const pageSize = 101

// ask makes a question: any combination of what can be asked for, of values that are frequent, seldom, or not there.
func (b *bench) ask(random *rand.Rand) (q question) {
	rows := b.sizes.rows
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	namespace := func() string {
		return one(fmt.Sprintf("large-%d", random.IntN(7)), fmt.Sprintf("team-%d", random.IntN(500)), fmt.Sprintf("team-%d", random.IntN(500)), "none")
	}
	user := func() string {
		return one("robot", fmt.Sprintf("user-%d", random.IntN(3000)), fmt.Sprintf("user-%d", random.IntN(3000)), "nobody")
	}
	some := func(most int, what func() string) (all []string) {
		for range 1 + random.IntN(most)*random.IntN(2) {
			all = append(all, what())
		}
		return all
	}
	often := func(in int) bool { return random.IntN(in) == 0 }
	f := &q.filter
	q.transitions = often(2)
	if often(3) {
		f.Namespace = namespace()
		if often(4) {
			f.Name = fmt.Sprintf("train-%d", random.IntN(1_000_003))
		}
	}
	if often(3) && f.Namespace == "" { // a narrowed caller
		f.Within = []store.NamespacedName{}
		for range 1 + random.IntN(100)*random.IntN(2) {
			f.Within = append(f.Within, store.NamespacedName{Namespace: namespace()})
		}
		if often(4) {
			f.Within = append(f.Within, store.NamespacedName{Namespace: namespace(), Name: "train-1"}, store.NamespacedName{Namespace: store.AnyNamespace, Name: "train-2"})
		}
	}
	if often(3) {
		f.Owners = some(5, user)
		if f.Within != nil {
			f.Own = f.Owners[0] // who sees their own jobs asks for these
		}
	}
	if often(4) {
		f.Queues = some(5, func() string { return one("default", fmt.Sprintf("queue-%d", random.IntN(40)), "none") })
	}
	if often(3) {
		for _, s := range some(3, func() string { return string(jobs.States()[random.IntN(8)]) }) {
			f.States = append(f.States, jobs.State(s))
		}
	}
	when := func() jobs.Time { return firstTime + jobs.Time(random.Int64N(period)) }
	if often(4) {
		f.Since = when()
		if often(2) {
			f.Since = firstTime + period - jobs.Time(random.Int64N(24*3_600_000))
		}
	}
	if often(6) {
		f.Until = when()
	}
	if often(3) { // another page than the first
		q.before = 1 + random.Uint64N(uint64(rows))
		q.after = store.JobAfter{Created: when() / 1000 * 1000, UID: "5"}
	}
	return q
}

// answer asks a database.
func (q question) answer(ctx context.Context, s *store.Store, log store.Log) (items int, err error) {
	if q.transitions {
		found, err := s.Transitions(ctx, log, q.filter, q.before, pageSize)
		return len(found), err
	}
	found, err := s.Jobs(ctx, log, q.filter, q.after, pageSize)
	return len(found), err
}

// String is what is asked for, in short.
func (q question) String() string {
	var said []string
	say := func(what string, n int) {
		if n > 0 {
			said = append(said, fmt.Sprintf("%s×%d", what, n))
		}
	}
	f := q.filter
	if f.Namespace != "" {
		said = append(said, f.Namespace)
	}
	if f.Name != "" {
		said = append(said, f.Name)
	}
	if f.Within != nil {
		said = append(said, fmt.Sprintf("within %d", len(f.Within)))
	}
	if f.Own != "" {
		said = append(said, "own "+f.Own)
	}
	say("state "+fmt.Sprint(f.States), len(f.States))
	say("owner "+strings.Join(f.Owners, ","), len(f.Owners))
	say("queue "+strings.Join(f.Queues, ","), len(f.Queues))
	if f.Since != 0 {
		said = append(said, fmt.Sprintf("since %d %%", (f.Since-firstTime)*100/period))
	}
	if f.Until != 0 {
		said = append(said, fmt.Sprintf("until %d %%", (f.Until-firstTime)*100/period))
	}
	if q.transitions && q.before > 0 {
		said = append(said, fmt.Sprintf("before %d", q.before))
	}
	if !q.transitions && q.after.UID != "" {
		said = append(said, fmt.Sprintf("after %d %%", (q.after.Created-firstTime)*100/period))
	}
	view := "jobs"
	if q.transitions {
		view = "transitions"
	}
	return view + ": " + strings.Join(said, ", ")
}
