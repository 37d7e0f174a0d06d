package cache

import (
	"errors"
	"testing"
)

// TestStoreIsLiveBehindWhatWasMissed: not when its watch stands, but when what proves that has come
// through the queue, behind what was missed; and not if the watch was lost meanwhile.
func TestStoreIsLiveBehindWhatWasMissed(t *testing.T) {
	u := newUpstream()
	live := func(want bool, when string) {
		t.Helper()
		if u.get().Live != want {
			t.Errorf("%s: %+v", when, u.get())
		}
	}
	u.proved(1)
	live(false, "a watch stands")
	u.stands(1)
	live(true, "its proof has come")
	u.fails(errors.New("cut"))
	u.stands(1)
	live(false, "a proof comes twice, and late")
	u.proved(2)
	u.fails(errors.New("cut"))
	u.stands(2)
	live(false, "the proof of a watch that is lost")
	u.proved(3)
	u.stands(0)
	live(false, "a marker that proves nothing")
	u.stands(3)
	live(true, "the next one")
}
