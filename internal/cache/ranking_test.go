package cache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
)

// values are such as decide an order: of every sort, alike at their beginning, and at the ends of what there is.
var values = []string{
	"null", "true", "false", "0", "-0", "0.1", "-0.1", "1", "-1", "1e300", "-1e300", "1e-300", "9007199254740993", "9007199254740992", "123456789.125", "123456789.25",
	`""`, `"a"`, `"b"`, `"aaaaaaaa"`, `"aaaaaaaab"`, `"aaaaaaaaa"`, `"\u0000"`, `"é"`, `"\ud83d\ude00"`, `"500m"`, `"2Gi"`, `"2026-01-01T00:00:00Z"`, `"2026-01-01T00:00:01Z"`, `"1969-12-31T23:59:59Z"`, `[]`, `{"a":1}`,
}

func ranked(t *testing.T, random *rand.Rand, number, version int) *cluster.Object {
	t.Helper()
	o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"name":"n%d","namespace":"ns%d","uid":"u%d","resourceVersion":"%d"},"a":%s,"b":%s}`,
		number, number%3, number, version, values[random.IntN(len(values))], values[random.IntN(len(values))]))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A ranking is what sorting everything anew would be, whatever comes, changes and goes, as far as it holds objects, and a
// copy stays as it was.
func TestARankingIsWhatSortingWouldBe(t *testing.T) {
	for _, text := range []string{"", "a", "-a", "a,-b", "-b,a", "metadata.name", "-metadata.namespace,a"} {
		for _, keep := range []int{1, 3, 1000} {
			t.Run(fmt.Sprintf("%s/%d", text, keep), func(t *testing.T) {
				order, err := Paths{}.Order(text)
				if err != nil {
					t.Fatal(err)
				}
				r := &rankings{T: t, random: rand.New(rand.NewPCG(7, uint64(keep))), order: order, keep: keep, held: map[int]*cluster.Object{}}
				for number := range 40 {
					r.held[number] = ranked(t, r.random, number, number+1)
				}
				r.begin()
				for step := range 3000 {
					r.change(step)
				}
				if r.keep < 10 && (r.anew < 2 || r.all > 2900 || r.shortened < 1) {
					t.Errorf("made anew %d times, shortened %d times, all objects held %d times: this run shows little", r.anew, r.shortened, r.all)
				}
			})
		}
	}
}

// rankings compares a ranking with what sorting would be.
type rankings struct {
	*testing.T
	random               *rand.Rand
	order                Order
	keep                 int
	held                 map[int]*cluster.Object
	ranking              *Ranking
	copied               *Ranking
	then                 []*cluster.Object // what was sorted when it was copied
	anew, all, shortened int
}

func (r *rankings) begin() {
	r.ranking = r.order.Ranking(slices.Values(r.objects()), r.keep, nil)
	r.copied, r.then = r.ranking.Copy(), r.sorted()
}

func (r *rankings) objects() []*cluster.Object {
	return slices.SortedFunc(maps.Values(r.held), compareObjects)
}

func (r *rankings) sorted() (objects []*cluster.Object) {
	s := r.order.Sort(slices.Values(r.objects()), nil)
	for i := range s.Len() {
		objects = append(objects, s.At(i))
	}
	return objects
}

func (r *rankings) change(step int) {
	r.Helper()
	// For a while more come, and then more go.
	number, grows := r.random.IntN(60), step/150%2 == 0
	was, before := r.held[number], r.ranking.ranked.Len()
	if r.random.IntN(5) < 2 == grows {
		delete(r.held, number)
	} else {
		r.held[number] = ranked(r.T, r.random, number, 100+step)
	}
	old, now := was, r.held[number]
	if old == nil && r.ranking.HoldsAll() && r.random.IntN(2) == 0 {
		old = ranked(r.T, r.random, number, 100+step) // one that was not selected
	}
	if r.ranking.Change(old, now) != (was != nil || now != nil) {
		r.Fatalf("step %d: whether number %d is, or was, there is told wrong", step, number)
	}
	if r.ranking.ranked.Len() < before-1 {
		r.shortened++
	}
	want := r.sorted()
	r.same(step, r.ranking, want)
	if holds, known := r.ranking.ranked.Len(), len(r.ranking.held); known != holds {
		r.Fatalf("step %d: %d objects are known of %d that are held", step, known, holds)
	}
	if r.ranking.HoldsAll() {
		r.all++
	}
	if was != nil && r.ranking.Left(was) != (now == nil) {
		r.Fatalf("step %d: whether number %d has left is told wrong", step, number)
	}
	if now != nil && r.ranking.Left(now) {
		r.Fatalf("step %d: number %d has left, and is there", step, number)
	}
	if step%50 == 0 {
		for _, o := range r.then {
			if !r.copied.Left(o) {
				continue
			}
			r.Fatalf("step %d: in a copy, %s has left that is there", step, o.Key())
		}
		r.same(step, r.copied, r.then)
		r.copied, r.then = r.ranking.Copy(), want
	}
	if !r.ranking.Holds(r.keep) {
		r.anew++
		r.begin()
		r.same(step, r.ranking, want)
		if !r.ranking.Holds(min(len(want), heldAtFirst*r.keep)) {
			r.Fatalf("step %d: one that is new holds %d of %d", step, r.ranking.ranked.Len(), len(want))
		}
	}
}

// same compares what a ranking holds, and how many objects it has, with what was sorted.
func (r *rankings) same(step int, ranking *Ranking, want []*cluster.Object) {
	r.Helper()
	holds := ranking.ranked.Len()
	if ranking.Len() != len(want) || holds > heldAtMost*r.keep || ranking.HoldsAll() != (holds == len(want)) {
		r.Fatalf("step %d: it holds %d of %d, want %d", step, holds, ranking.Len(), len(want))
	}
	if !slices.Equal(ranking.Window(nil, 0, holds+1), want[:holds]) {
		r.Fatalf("step %d: the ranking is not in order", step)
	}
}
