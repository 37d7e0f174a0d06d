package eventstream

import "testing"

// A client that has left must not be counted any more, or in the end no quota would be left.
func TestPlacesThatAreLeftAreForgotten(t *testing.T) {
	p := newQuota(Limits{PerUser: 1, PerAddress: 1, Total: 1})
	if !p.take("u", "a", 1) || p.take("v", "b", 1) {
		t.Error("the limit of all does not hold")
	}
	p.leave("u", "a", 1)
	if p.total != 0 || len(p.users) != 0 || len(p.watches) != 0 || len(p.addresses) != 0 {
		t.Errorf("what is left: %+v", p)
	}
}
