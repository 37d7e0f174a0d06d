package historyapi

import (
	"strconv"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/jobs/seal"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// part is what a caller sees who sees one namespace.
func part(t testing.TB) *visibility.Visibility {
	t.Helper()
	visible, ok := visibility.Of(auth.Scope{Namespaces: []string{"a"}}, visibility.Target{}, cluster.Kind{Namespaced: true})
	if !ok {
		t.Fatal("nothing can be seen")
	}
	return visible
}

// A client that comes back with an id goes on where it was, whichever source's event had the id.
func TestPlacesComeBackThroughEventIDs(t *testing.T) {
	numbers := seal.New(seal.NewKey(), "c", "jobs.batch")
	for name, visible := range map[string]*visibility.Visibility{"all": nil, "a part": part(t), "nothing": visibility.Nothing()} {
		for _, seq := range []uint64{0, 1, 1 << 40} {
			for how, move := range map[string]func(*place){"told": func(p *place) { p.tell(seq) }, "marked": func(p *place) { p.placed, p.seq = true, seq; p.mark() }} {
				p := &place{numbers: numbers, visible: visible}
				move(p)
				claim := p.claim()
				claim.Epoch = "e"
				position, err := stream.ParsePosition(string(stream.AppendID(nil, []string{"h"}, []stream.Claim{claim})))
				if err != nil {
					t.Fatal(err)
				}
				back := &place{numbers: numbers, visible: visible}
				if reset := back.take(position.Claims["h"]); reset != "" || back.seq != seq || back.text() != p.text() {
					t.Errorf("%s, %s at %d: it comes back to %d as %q: %s", name, how, seq, back.seq, back.text(), reset)
				}
			}
		}
	}
}

// A stream of as many histories as there may be, with the longest names, has an id that can be
// read, also beside the longest position that a source may have.
func TestTheIDOfTheMostHistoriesIsReadable(t *testing.T) {
	p := &place{numbers: seal.New(seal.NewKey(), "c", "jobs.batch"), visible: part(t), placed: true}
	p.mark()
	const sources, longest = 32, 2800 // eventstream's bound, and a position of logs with 64 containers
	names, claims := []string{"logs"}, []stream.Claim{{Own: "p" + strings.Repeat("0", longest), Epoch: "epoch000"}}
	for i := 1; i < sources; i++ {
		claim := p.claim()
		claim.Epoch = "epoch" + strconv.Itoa(100+i)
		names, claims = append(names, strings.Repeat("a", 61)+strconv.Itoa(9+i)), append(claims, claim)
	}
	id := stream.AppendID(nil, names, claims)
	if position, err := stream.ParsePosition(string(id)); err != nil || len(position.Claims) != sources {
		t.Errorf("%d bytes: %v", len(id), err)
	}
}

// Hidden transitions move no position that a client can see, until it is told something or it is time to.
func TestAPlaceThatPassesWhatIsHiddenLooksTheSame(t *testing.T) {
	p := &place{numbers: seal.New(seal.NewKey(), "c", "jobs.batch"), visible: part(t)}
	p.tell(5)
	before, claim := p.text(), p.claim()
	if p.pass(9); p.text() != before || p.claim() != claim {
		t.Errorf("%s becomes %s", claim.Own, p.claim().Own)
	}
	if p.mark(); p.text() == before || len(p.text()) != seal.PositionLength {
		t.Errorf("%s is marked as %s", before, p.text())
	}
	again := &place{numbers: p.numbers, visible: p.visible}
	if reset := again.take(p.claim()); reset != "" || again.seq != 9 {
		t.Errorf("it comes back to %d, %s", again.seq, reset)
	}
}

// Whatever a stranger claims: who may not see all goes on only from what was sealed here.
func FuzzPlace(f *testing.F) {
	numbers := seal.New([seal.KeySize]byte{}, "c", "jobs.batch")
	visible := part(f)
	for _, place := range []string{"p0", "7", "7-" + visible.Name(), "p" + numbers.Row(7) + "-" + visible.Name(), "p" + numbers.Position(7) + "-", "p-" + visible.Name(), "7-8", "0"} {
		f.Add("e.h-" + place)
	}
	f.Fuzz(func(t *testing.T, id string) {
		position, err := stream.ParsePosition(id)
		if err != nil {
			return
		}
		claim := position.Claims["h"]
		for _, visible := range []*visibility.Visibility{nil, visible} {
			p := &place{numbers: numbers, visible: visible}
			switch reset := p.take(claim); reset {
			case "":
				if seq, ok := numbers.Open(p.sealed); visible != nil && (!ok || seq != p.seq || visibilityOf(claim) != visible.Name()) {
					t.Errorf("%q is taken for %d", id, p.seq)
				}
			case eventstream.ResetUnreadable, eventstream.ResetEpoch, eventstream.ResetExpired:
			default:
				t.Errorf("%q is reset for %q", id, reset)
			}
		}
	})
}
