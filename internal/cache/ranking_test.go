package cache

import (
	"fmt"
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

// A ranking is what sorting everything anew would be, whatever comes, changes and goes, and a copy stays as it was.
func TestARankingIsWhatSortingWouldBe(t *testing.T) {
	for _, text := range []string{"", "a", "-a", "a,-b", "-b,a", "metadata.name", "-metadata.namespace,a"} {
		t.Run(text, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 1))
			order, err := Paths{}.Order(text)
			if err != nil {
				t.Fatal(err)
			}
			held := map[int]*cluster.Object{}
			all := func() []*cluster.Object {
				objects := make([]*cluster.Object, 0, len(held))
				for _, o := range held {
					objects = append(objects, o)
				}
				slices.SortFunc(objects, compareObjects)
				return objects
			}
			sorted := func() (objects []*cluster.Object) {
				s := order.Sort(slices.Values(all()), nil)
				for i := range s.Len() {
					objects = append(objects, s.At(i))
				}
				return objects
			}
			for number := range 40 {
				held[number] = ranked(t, random, number, number+1)
			}
			r := order.Ranking(slices.Values(all()), nil)
			copied, then := r, sorted()
			for step := range 3000 {
				number := random.IntN(60)
				switch o := held[number]; {
				case random.IntN(3) > 0:
					held[number] = ranked(t, random, number, 100+step)
					r.Put(held[number])
				case r.Remove(ranked(t, random, number, 100+step)) != (o != nil):
					t.Fatalf("step %d: whether there was number %d is told wrong", step, number)
				default:
					delete(held, number)
				}
				if got := r.Get(fmt.Sprintf("ns%d", number%3), fmt.Sprintf("n%d", number)); got != held[number] {
					t.Fatalf("step %d: number %d is %v, want %v", step, number, got, held[number])
				}
				if want := sorted(); r.Len() != len(want) || !slices.Equal(r.Window(nil, 0, len(want)+1), want) {
					t.Fatalf("step %d: the ranking is not in order", step)
				}
				if step%50 == 0 {
					if !slices.Equal(copied.Window(nil, 0, 100), then) && step > 0 {
						t.Fatalf("step %d: a copy has changed", step)
					}
					copied, then = r.Copy(), sorted()
				}
			}
		})
	}
}
