package budget

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// keeper keeps things by name.
type keeper struct {
	memory *Memory
	mu     sync.Mutex
	kept   map[string]*Entry
}

func newKeeper(bound int64) *keeper {
	return &keeper{memory: NewMemory(bound), kept: map[string]*Entry{}}
}

func (k *keeper) keep(user, name string, bytes int64) *Entry {
	c := k.memory.Enter(user, time.Minute, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.kept, name)
	})
	k.mu.Lock()
	k.kept[name] = c
	k.mu.Unlock()
	c.Set(bytes)
	return c
}

func (k *keeper) has(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[name] != nil
}

func TestWhoHoldsMostForgetsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper(100)
		k.keep("few", "a", 10)
		for i := range 1000 {
			k.keep("many", fmt.Sprint(i), 10)
		}
		k.keep("other", "b", 10)
		if !k.has("a") || !k.has("b") || !k.has("999") || k.has("991") || len(k.kept) != 10 {
			t.Errorf("%d are kept: a %v, b %v, 999 %v, 991 %v", len(k.kept), k.has("a"), k.has("b"), k.has("999"), k.has("991"))
		}
		if k.keep("few", "c", 101); k.has("c") || k.has("a") {
			t.Error("what is larger than all may be is kept, or what else its user had")
		}
		time.Sleep(time.Minute + 2*tick)
		synctest.Wait()
		if bytes, users := k.memory.Held(); bytes != 0 || users != 0 || len(k.kept) != 0 || k.memory.ticking {
			t.Errorf("after its time: %d bytes of %d users, %d kept", bytes, users, len(k.kept))
		}
	})
}

func TestWhatIsUsedOutlastsWhatIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper(30)
		old := k.keep("u", "old", 10)
		k.keep("u", "unused", 10)
		k.keep("u", "young", 10)
		time.Sleep(2 * tick)
		old.Use()
		if k.keep("u", "new", 10); !k.has("old") || k.has("unused") {
			t.Errorf("old %v, unused %v", k.has("old"), k.has("unused"))
		}
		for range 3 {
			time.Sleep(time.Minute / 2)
			old.Use()
		}
		if !k.has("old") || k.has("new") {
			t.Errorf("by time: old %v, new %v", k.has("old"), k.has("new"))
		}
		old.Release()
		if bytes, _ := k.memory.Held(); bytes != 0 {
			t.Errorf("%d bytes are left", bytes)
		}
	})
}

func TestMeasuredChargesFollowWhatTheyMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(100)
		var dropped atomic.Bool
		var size atomic.Int64
		m.Enter("u", time.Minute, func() { dropped.Store(true) }).Measure(size.Load).Set(10)
		size.Store(90)
		time.Sleep(tick + time.Millisecond)
		if bytes, _ := m.Held(); bytes != 90 || dropped.Load() {
			t.Errorf("%d bytes", bytes)
		}
		size.Store(110)
		time.Sleep(tick + time.Millisecond)
		if bytes, _ := m.Held(); bytes != 0 || !dropped.Load() {
			t.Errorf("%d bytes beyond the bound", bytes)
		}
	})
}

func TestTextsAreMadeOnceAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(1 << 20)
		var texts Texts
		made := 0
		get := func(user, variant string) {
			if got := texts.Get(m, user, variant, func() string { made++; return "made " + variant }); got != "made "+variant {
				t.Errorf("%s: %q", variant, got)
			}
		}
		for range 5 { // longer than they are kept unused
			get("a", "x")
			get("b", "x")
			get("b", "y")
			time.Sleep(keepTexts / 2)
		}
		if made != 2 {
			t.Errorf("two texts were made %d times", made)
		}
		time.Sleep(2 * keepTexts)
		if bytes, users := m.Held(); bytes != 0 || users != 0 || texts.kept.Load() != nil {
			t.Errorf("%d bytes of %d users are left", bytes, users)
		}
	})
}

func TestVariantsOfOneUserDisplaceNobodyElses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(1 << 20)
		var texts Texts
		made := map[string]int{}
		get := func(user, variant string) {
			texts.Get(m, user, variant, func() string { made[user]++; return variant })
		}
		for i := range 10 * manyTexts { // these were made first
			get("many", fmt.Sprint(i))
		}
		for range 100 {
			get("few", "x")
			get("other", "y")
			for i := range 10 {
				get("many", fmt.Sprint("more", i))
			}
		}
		if made["few"] != 1 || made["other"] != 1 {
			t.Errorf("theirs was made %d and %d times", made["few"], made["other"])
		}
		if kept := len(*texts.kept.Load()); kept > manyTexts {
			t.Errorf("%d are kept of one thing", kept)
		}
	})
}

// A text does not keep the value alive that it was made of.
func TestTextsDoNotKeepTheirOwner(t *testing.T) {
	m := NewMemory(1 << 20)
	type owner struct {
		_     [1 << 20]byte
		texts Texts
	}
	collected := make(chan struct{})
	o := &owner{}
	runtime.AddCleanup(o, func(c chan struct{}) { close(c) }, collected)
	o.texts.Get(m, "u", "v", func() string { return "text" })
	o = nil
	deadline := time.After(2 * time.Minute)
	for {
		runtime.GC()
		select {
		case <-collected:
			return
		case <-deadline:
			t.Fatal("what a text was made of is never collected")
		case <-time.After(time.Millisecond):
		}
	}
}

// Whatever happens concurrently, the account matches what is kept, and stays within its bound.
func TestAccountsAreOfWhatIsKept(t *testing.T) {
	m := NewMemory(50 * (textsExtra + 8))
	owners := make([]Texts, 20)
	var working sync.WaitGroup
	for worker := range 8 {
		working.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(worker)))
			for range 2000 {
				variant := fmt.Sprintf("%08d", random.IntN(30))
				if got := owners[random.IntN(len(owners))].Get(m, fmt.Sprint(worker%5), variant, func() string { return variant }); got != variant {
					t.Errorf("%q, want %q", got, variant)
				}
			}
		})
	}
	working.Wait()
	kept := 0
	for i := range owners {
		if texts := owners[i].kept.Load(); texts != nil {
			kept += len(*texts)
		}
	}
	if bytes, _ := m.Held(); bytes > m.bound || bytes != int64(kept)*(textsExtra+8) {
		t.Errorf("%d bytes are charged, of %d; %d texts are kept", bytes, m.bound, kept)
	}
}
