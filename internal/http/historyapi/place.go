package historyapi

import (
	"strconv"
	"strings"

	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/jobs/seal"
	"github.com/kubecast/kubecast/internal/jobs/wire"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Numbers count the transitions of all callers. So they are told as they are to those only who may
// see all of the kind. Others are told them sealed (package seal), and their positions move only
// when they are told something, or a bookmark is due: else these would tell when something happens
// that they may not see.

// place is where a client stands in a log.
type place struct {
	numbers *seal.Numbers          // nil before Ready
	visible *visibility.Visibility // nil: the caller sees all, and so numbers
	shared  bool                   // numbers count also what is of other kinds, so nobody sees them

	placed bool   // seq is a position: all transitions up to it were told, or are not for this client
	seq    uint64 // of which the client is told only as much as claimed says, if that is not ""
	sealed string // the client's position as it was told it last
}

// seen says what the caller may see from now on.
func (p *place) seen(visible *visibility.Visibility) {
	if p.visible = visible; p.placed {
		p.mark()
	}
}

func (p *place) isSealed() bool { return p.shared || p.visible != nil }

// tell moves to a transition that the client is told now.
func (p *place) tell(seq uint64) {
	p.placed, p.seq = true, seq
	if p.isSealed() {
		p.sealed = p.numbers.Row(seq)
	}
}

// pass moves over what is not for this client.
func (p *place) pass(seq uint64) { p.seq = seq }

// mark lets the client have the place.
func (p *place) mark() {
	if p.sealed = ""; p.isSealed() {
		p.sealed = p.numbers.Position(p.seq)
	}
}

// leave gives up the place.
func (p *place) leave() { p.placed, p.seq, p.sealed = false, 0, "" }

// text is the place as the client may know it.
func (p *place) text() string {
	if p.isSealed() {
		return p.sealed
	}
	return strconv.FormatUint(p.seq, 10)
}

// number is a transition as the client is told it, whose number is this.
func (p *place) number(t wire.Transition, seq uint64) wire.Transition {
	if p.isSealed() {
		t.Seq = p.numbers.Row(seq)
	}
	return t
}

const (
	// nowhere is the position in front of the first transition, which has no number.
	nowhere = "p0"
	// beforeSealed begins a position that is sealed; the visibility follows behind a hyphen.
	beforeSealed = "p"
)

// claim is the place as event ids have it.
func (p *place) claim() stream.Claim {
	switch {
	case !p.placed:
		return stream.Claim{}
	case p.isSealed():
		return stream.Claim{Own: beforeSealed + p.sealed + "-" + p.visible.Name()}
	case p.seq == 0:
		return stream.Claim{Own: nowhere}
	}
	return stream.Claim{Known: stream.UpTo(p.seq)}
}

// visibilityOf is the name of the visibility under which a position was made; "" is all.
func visibilityOf(claim stream.Claim) string {
	if _, visibility, isSealed := strings.Cut(claim.Own, "-"); isSealed {
		return visibility
	}
	return claim.Visibility
}

// take goes to the place that a client claims, or says why that does not count. What is said of a
// number that a caller who may not see all cannot have depends on nothing that was recorded.
func (p *place) take(claim stream.Claim) (reset string) {
	sealed, _, isSealed := strings.Cut(strings.TrimPrefix(claim.Own, beforeSealed), "-")
	seq, ok := claim.All, claim.Some == claim.All
	switch {
	case isSealed:
		seq, ok = p.numbers.Open(sealed)
	case claim.Own != "":
		seq, ok = 0, claim.Own == nowhere
	}
	switch {
	case !ok:
		return eventstream.ResetUnreadable
	case visibilityOf(claim) != p.visible.Name() && claim.Own != nowhere:
		return eventstream.ResetEpoch
	case p.isSealed() && !isSealed: // it was made before numbers were sealed, or was made up
		return eventstream.ResetExpired
	}
	p.seq, p.sealed = seq, sealed
	return ""
}

// token is the place behind a transition that the client was told, as it stands in the token of a page.
func (p *place) token() token {
	if p.isSealed() {
		return token{Row: p.numbers.Row(p.seq)}
	}
	return token{Seq: p.seq}
}

// looked is a place that is behind none that the client was told: where looking for more ended. It has another text each
// time, so it does not tell which row, that the client may not see, it is.
func (p *place) looked(before uint64) token {
	if p.isSealed() {
		return token{Row: p.numbers.Position(before)}
	}
	return token{Seq: before}
}

// before is the number before which a page goes on, 0 of the first page. As in take, the answer to
// a number that a caller cannot have is always the same.
func (p *place) before(at token) (uint64, error) {
	seq, ok := at.Seq, at.Seq == 0 || !p.isSealed()
	if at.Row != "" {
		seq, ok = p.numbers.Open(at.Row)
	}
	if !ok {
		return 0, errGone()
	}
	return seq, nil
}
