package rbac

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kubecast/kubecast/internal/auth"
)

// TestAnAudienceIsThoseWhoHaveJoined, whoever has left in between, in whatever order: a listener that is lost keeps what its
// identity may see no more. The model is a list of the listeners.
func TestAnAudienceIsThoseWhoHaveJoined(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	type joined struct {
		id    auth.Identity
		heard int
		leave func()
	}
	a := newAudience()
	var all []*joined
	var left []func()
	for step := range 3000 {
		switch random.IntN(3) {
		case 0:
			j := &joined{id: auth.Identity{Username: fmt.Sprint("user-", random.IntN(4))}}
			for range random.IntN(3) {
				j.id.Groups = append(j.id.Groups, fmt.Sprint("group-", random.IntN(3))) // also one of them twice
			}
			j.leave = a.join(j.id, func() { j.heard++ })
			all = append(all, j)
		case 1:
			if len(all) > 0 {
				i := random.IntN(len(all))
				all[i].leave()
				left = append(left, all[i].leave)
				all = slices.Delete(all, i, i+1)
			}
		}
		if len(left) > 0 {
			left[random.IntN(len(left))]() // which has been called before
		}
		if len(all) > 20 {
			all[0].leave()
			all = all[1:]
		}
		var of []subject
		for range random.IntN(3) {
			if random.IntN(2) == 0 {
				of = append(of, subject{name: fmt.Sprint("user-", random.IntN(4))})
			} else {
				of = append(of, subject{group: true, name: fmt.Sprint("group-", random.IntN(3))})
			}
		}
		everybody := random.IntN(4) == 0
		if everybody {
			a.notifyAll()
		} else {
			a.notify(of)
		}
		for _, j := range all {
			want := 0
			if everybody || slices.ContainsFunc(of, func(s subject) bool {
				return s.group && slices.Contains(j.id.Groups, s.name) || !s.group && s.name == j.id.Username
			}) {
				want = 1
			}
			if j.heard != want {
				t.Fatalf("step %d: %s of %q hears %d times of %v, everybody: %v", step, j.id.Username, j.id.Groups, j.heard, of, everybody)
			}
			j.heard = 0
		}
	}
	for _, j := range all {
		j.leave()
	}
	if n := len(a.users) + len(a.groups); n != 0 {
		t.Errorf("%d names are left of nobody", n)
	}
}
