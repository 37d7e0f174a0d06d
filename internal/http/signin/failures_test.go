package signin

import (
	"fmt"
	"testing"
	"time"
)

func TestFailuresAreCountedWithinBounds(t *testing.T) {
	var f failures
	for i := range maxFailures + 1 {
		wait, first := f.add(fmt.Sprintf("2001:db8::%x", i))
		if over := i == maxFailures; (wait > 0) != over || first != over {
			t.Fatalf("%d: %v, %t: the addresses of one network are counted apart", i, wait, first)
		}
	}
	if wait, _ := f.add("2001:db8:0:1::1"); wait != 0 {
		t.Error("another network")
	}
	for i := range maxFailing + 10 {
		f.add(fmt.Sprint(i))
	}
	if len(f.counts) > maxFailing {
		t.Errorf("%d addresses", len(f.counts))
	}
	if wait, _ := f.add("2001:db8::1"); wait <= 0 || wait > time.Minute {
		t.Errorf("a known one: %v", wait)
	}
}
