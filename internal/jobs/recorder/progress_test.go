package recorder

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
)

// A job of many completions costs few writes, and what is written is never long behind; its end has
// all of it; and a recorder that was killed before it wrote the last of it loses nothing.
func TestProgressIsWrittenSeldomAndWithTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		r := start(t, world.api, db, "r", ring)
		settle()
		uid := ""
		put := func(done int, more ...string) {
			world.api.Put("jobs", "n/a", append([]string{"spec.completions:=10000", "status.active:=1", "status.ready:=1", fmt.Sprintf("status.succeeded:=%d", done)}, more...)...)
			uid = world.api.UID("jobs", "n/a")
		}
		known := func() (p jobs.Progress) {
			synctest.Wait()
			db.set(func() { p = db.jobs[uid].Progress })
			return p
		}
		put(0)
		time.Sleep(time.Minute)
		if p := known(); p != (jobs.Progress{Done: 0, Of: 10_000}) {
			t.Errorf("at first %+v", p)
		}
		_, before := db.stands()
		idle := int(time.Minute / renewal * 2) // leases and positions
		for i := range 600 {
			put(i + 1)
			time.Sleep(100 * time.Millisecond)
			if p := known(); i > 20 && int64(i)-p.Done > int64((progressPause+2*look)/(100*time.Millisecond)) {
				t.Fatalf("%d are done, of which %d are known", i+1, p.Done)
			}
		}
		if _, calls := db.stands(); calls-before-idle > 14 {
			t.Errorf("600 completions in a minute take %d calls", calls-before-idle)
		}
		put(701)
		put(9_999)
		put(10_000, `status.conditions:=[{"type":"Complete","status":"True"}]`)
		time.Sleep(50 * time.Millisecond) // before the next look
		if p, told := known(), db.told(); p.Done != 10_000 || told[len(told)-1].To != jobs.Succeeded {
			t.Errorf("at the end %+v", p)
		}
		put(3)
		time.Sleep(time.Minute)
		put(4)
		r.stop()
		world.api.Delete("jobs", "n/a")
		time.Sleep(time.Second)
		world.api.Put("jobs", "n/b")
		r = start(t, world.api, db, "s", ring)
		defer r.stop()
		settle()
		if p := known(); p.Done < 3 {
			t.Errorf("of what was deleted %+v is known", p)
		}
		put(5)
		settle()
		r.stop()
		put(6)
		put(7)
		r = start(t, world.api, db, "r", ring)
		defer r.stop()
		settle()
		if p := known(); p.Done != 7 {
			t.Errorf("after a restart %+v", p)
		}
	})
}
