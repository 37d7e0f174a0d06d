package ownerref

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
)

func object(t testing.TB, namespace, name, uid, refs string) *cluster.Object {
	t.Helper()
	o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":"1","ownerReferences":%s}}`, namespace, name, uid, refs))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func ref(apiVersion, kind, name, uid string, controls bool) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":%t}`, apiVersion, kind, name, uid, controls)
}

func TestWhatControlsCountsFirstAndOfManyOnlySome(t *testing.T) {
	var refs []string
	for i := range 10 {
		refs = append(refs, ref("v1", "Node", fmt.Sprint(i), fmt.Sprint("u", i), false))
	}
	refs = append(refs, ref("batch/v1", "Job", "p", "self", true), ref("batch/v1", "Job", "j", "uj", true), ref("batch/v1", "Job", "k", "uk", true), `7`, `{"uid":7}`)
	o := object(t, "n", "p", "self", "["+strings.Join(refs, ",")+"]")
	owners := Owners(o)
	if want := (ID{"n", "uj", "batch", "Job", "j"}); len(owners) != maxOwners || owners[0] != want || owners[1] != (ID{"n", "u0", "", "Node", "0"}) {
		t.Errorf("%+v", owners)
	}
	if controller, ok := Controller(o); !ok || controller != owners[0] {
		t.Errorf("%+v %t", controller, ok)
	}
	if _, ok := Controller(object(t, "n", "p", "self", "["+refs[0]+"]")); ok {
		t.Error("an owner that does not control it does")
	}
}

// Who forges a reference knows a uid and no more, or writes it in another namespace. A label knows
// no more either, and counts within its namespace.
func TestOnlyWhatIsThereAsItIsNamedIsAnOwner(t *testing.T) {
	job := ID{"n", "uj", "batch", "Job", "j"}
	for name, test := range map[string]struct {
		owner ID
		found bool
	}{
		"as it is":                {job, true},
		"another kind":            {ID{"n", "uj", "example.org", "Nothing", "j"}, false},
		"another name":            {ID{"n", "uj", "batch", "Job", "k"}, false},
		"another group":           {ID{"n", "uj", "", "Job", "j"}, false},
		"another uid":             {ID{"n", "uk", "batch", "Job", "j"}, false},
		"from another namespace":  {ID{"m", "uj", "batch", "Job", "j"}, false},
		"without a namespace":     {ID{"", "uj", "batch", "Job", "j"}, false},
		"by a label":              {job.label(), true},
		"by a label of elsewhere": {ID{Namespace: "m", UID: "uj"}, false},
	} {
		g := NewGraph(func(a, b int) bool { return a < b })
		g.Put(ID{test.owner.Namespace, "up", "", "Pod", "p"}, []ID{test.owner}, 1, true)
		if _, ok, _ := g.Best(job); ok != test.found {
			t.Errorf("%s: %t", name, ok)
		}
	}
}

// jobs are n jobs that own each other.
func jobs(n int) (all []ID) {
	for i := range n {
		all = append(all, ID{"n", fmt.Sprint("u", i), "batch", "Job", fmt.Sprint("j", i)})
	}
	return all
}

func TestObjectsThatOwnEachOtherAreVisitedOnce(t *testing.T) {
	g := NewGraph(func(a, b int) bool { return a < b })
	four := jobs(4)
	for _, id := range four {
		g.Put(id, four, 0, false)
	}
	const pods = 20_000
	for i := range pods {
		g.Put(ID{"n", fmt.Sprint("p", i), "", "Pod", fmt.Sprint("p", i)}, four, i, true)
	}
	if best, ok, steps := g.Best(four[0]); best != pods-1 || !ok || steps > len(four) {
		t.Errorf("%d %t after %d steps", best, ok, steps)
	}
	visits := map[ID]int{}
	g.Above(ID{"n", "p0", "", "Pod", "p0"}, func(id ID) { visits[id]++ })
	for _, id := range four {
		if visits[id] != 1 || len(visits) != 4 {
			t.Errorf("%v", visits)
		}
	}
}

func TestWalksEndHoweverHighOrWideItIs(t *testing.T) {
	chain := jobs(1000)
	visits := 0
	Above(chain[:1], func(id ID) ([]ID, bool) {
		visits++
		i := slices.Index(chain, id)
		return chain[i+1 : i+2], true
	})
	if visits != MaxHeight {
		t.Errorf("%d of a chain", visits)
	}
	wide := jobs(1000)
	visits = 0
	Above(wide[:1], func(ID) ([]ID, bool) { visits++; return wide, true })
	if visits != maxAbove {
		t.Errorf("%d of those above", visits)
	}
	g := NewGraph(func(a, b int) bool { return a < b })
	head := ID{"n", "head", "g", "Head", "head"}
	for _, id := range jobs(maxBelow + 100) {
		g.Put(id, []ID{head}, 0, false)
		g.Put(ID{"n", "of" + id.UID, "", "Pod", "p"}, []ID{id}, 1, true)
	}
	if _, ok, steps := g.Best(head); !ok || steps > maxBelow+1 {
		t.Errorf("%t after %d steps", ok, steps)
	}
}

// naive is a Graph that looks at everything for each answer.
type naive map[ID]struct {
	owners []ID
	value  int
	says   bool
}

// levels are an object, what belongs to it, what belongs to that, and so on, as far as walks lead.
func (n naive) levels(of ID) (levels []map[ID]bool) {
	level := map[ID]bool{of: true}
	for range MaxHeight {
		levels = append(levels, level)
		next := map[ID]bool{}
		for id, o := range n {
			if n.belongs(o.owners, level) {
				next[id] = true
			}
		}
		level = next
	}
	return levels
}

func (naive) belongs(owners []ID, level map[ID]bool) bool {
	return slices.ContainsFunc(owners, func(owner ID) bool {
		for at := range level {
			if owner.matches(at) {
				return true
			}
		}
		return false
	})
}

// found is what Best and Sum should find.
func (n naive) found(counted map[ID]Tally, of ID) (best int, ok bool, sum Tally) {
	seen := map[ID]bool{}
	for _, level := range n.levels(of) {
		for at := range level {
			for _, key := range []ID{at, at.label()} {
				if !seen[key] {
					seen[key], sum = true, sum.plus(counted[key])
				}
			}
		}
		for _, o := range n {
			if o.says && (!ok || o.value > best) && n.belongs(o.owners, level) {
				best, ok = o.value, true
			}
		}
	}
	return best, ok, sum
}

// said is what Said and LeastSaid should find.
func (n naive) said(of ID) (most, least int, ok bool) {
	for _, o := range n {
		if o.says && n.belongs(o.owners, map[ID]bool{of: true}) {
			if !ok {
				most, least, ok = o.value, o.value, true
			}
			most, least = max(most, o.value), min(least, o.value)
		}
	}
	return most, least, ok
}

// Whatever is put, put anew and removed, in whatever order, is found as by looking at everything.
func TestGraphFindsWhatLookingAtEverythingFinds(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		g, want := NewGraph(func(a, b int) bool {
			if a < 0 || b < 0 {
				t.Fatalf("seed %d: what says nothing is put in order", seed)
			}
			return a < b
		}), naive{}
		ids := append(jobs(12), ID{"n", "u0", "other", "Twin", "twin"}, ID{"m", "u1", "batch", "Job", "j1"})
		counted := map[ID]Tally{}
		for step := range 500 {
			id := ids[random.IntN(len(ids))]
			if of := ids[random.IntN(len(ids))]; random.IntN(3) == 0 {
				if random.IntN(4) == 0 {
					of = of.label()
				}
				by := Tally{random.IntN(3) - 1, random.IntN(3) - 1}
				if counted[of] != (Tally{}) && random.IntN(2) == 0 {
					by = Tally{-counted[of].All, -counted[of].Stuck}
				}
				g.Count(of, by)
				counted[of] = counted[of].plus(by)
			}
			if random.IntN(3) == 0 {
				g.Remove(id)
				delete(want, id)
			} else {
				var owners []ID
				for range random.IntN(4) {
					owner := ids[random.IntN(len(ids))]
					if random.IntN(4) == 0 {
						owner = owner.label()
					}
					if owner.UID != id.UID {
						owners = append(owners, owner)
					}
				}
				value, says := random.IntN(100), random.IntN(2) == 0
				if !says {
					value = -1
				}
				g.Put(id, owners, value, says)
				want[id] = struct {
					owners []ID
					value  int
					says   bool
				}{owners, value, says}
			}
			some := ids
			if step%25 > 0 { // all of them each time would take minutes
				some = []ID{ids[random.IntN(len(ids))]}
			}
			for _, id := range some {
				best, ok, _ := g.Best(id)
				sum, _ := g.Sum(id)
				if wantBest, wantOK, wantSum := want.found(counted, id); best != wantBest || ok != wantOK || sum != wantSum {
					t.Fatalf("seed %d, step %d: of %v is said %d, %t, and counted %v; not %d, %t and %v", seed, step, id, best, ok, sum, wantBest, wantOK, wantSum)
				}
				said, _ := g.Said(id)
				least, ok := g.LeastSaid(id)
				if wantMost, wantLeast, wantOK := want.said(id); said != wantMost || least != wantLeast || ok != wantOK {
					t.Fatalf("seed %d, step %d: %v itself is said %d to %d, %t; not %d to %d, %t", seed, step, id, least, said, ok, wantLeast, wantMost, wantOK)
				}
			}
		}
		g.CountNothing()
		for _, id := range ids {
			g.Remove(id)
		}
		if len(g.nodes) > 0 || len(g.below) > 0 {
			t.Errorf("seed %d: %d and %d are left", seed, len(g.nodes), len(g.below))
		}
	}
}

func FuzzOwners(f *testing.F) {
	f.Add(`[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"u","controller":true}]`)
	f.Add(`{"uid":[]}`)
	f.Fuzz(func(t *testing.T, refs string) {
		o, err := cluster.NewObject(`{"metadata":{"namespace":"n","name":"x","uid":"x","resourceVersion":"1","ownerReferences":` + refs + `}}`)
		if err != nil {
			return
		}
		for _, id := range Owners(o) {
			if id.UID == "" || id.UID == "x" && id.Name == "x" || id.Namespace != "n" {
				t.Errorf("%+v", id)
			}
		}
	})
}

func TestAPodIsAPartOfTheTopmostJobThatControlsIt(t *testing.T) {
	id := func(kind, name string) ID { return ID{"n", "u" + name, "g", kind, name} }
	job, set, train, cron := id("Job", "j"), id("JobSet", "s"), id("TrainJob", "t"), id("CronJob", "c")
	above := map[ID]ID{job: set, set: train, train: cron}
	look := func(at ID) (ID, bool, bool) {
		up, controlled := above[at]
		return up, controlled, at.Kind != "CronJob" && at.Kind != "JobSet"
	}
	controlledBy := func(of ID) *cluster.Object {
		return object(t, "n", "p", "up", "["+ref("v1", "Node", "x", "ux", false)+","+ref("g/v1", of.Kind, of.Name, of.UID, true)+"]")
	}
	if top, ok := Topmost(controlledBy(job), look); top != train || !ok {
		t.Errorf("%+v %t", top, ok)
	}
	if top, ok := Topmost(controlledBy(cron), look); ok {
		t.Errorf("no job controls it, and it is a part of %+v", top)
	}
	if _, ok := Topmost(object(t, "n", "p", "up", "["+ref("g/v1", "Job", "j", "uj", false)+"]"), look); ok {
		t.Error("it is a part of what owns it and does not control it")
	}
	above[cron] = job // somebody plays
	steps := 0
	if top, ok := Topmost(controlledBy(job), func(at ID) (ID, bool, bool) { steps++; return look(at) }); !ok || top != train || steps != 4 {
		t.Errorf("%+v %t after %d steps", top, ok, steps)
	}
	chain := jobs(20)
	steps = 0
	Topmost(controlledBy(chain[0]), func(ID) (ID, bool, bool) { steps++; return chain[steps], true, true })
	if steps != MaxHeight {
		t.Errorf("%d of a chain", steps)
	}
}
