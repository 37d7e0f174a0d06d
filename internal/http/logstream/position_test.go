package logstream

import (
	"fmt"
	"math"
	"testing"

	"github.com/kubecast/kubecast/internal/logs"
	"github.com/kubecast/kubecast/internal/stream"
)

// FuzzPositionOfLogs: what a stranger sends is read without harm, and what was read is written as it was read.
func FuzzPositionOfLogs(f *testing.F) {
	f.Add("p0")
	f.Add(header(true, false) + containerPosition{restart: 3, ended: true, told: &logs.LinePosition{Since: -5, Count: 7, Sum: 1 << 39}}.text(keyOf("u", "main")))
	f.Add("p1-a-0-0-0-0-b-1-2-3-4")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := parsePosition(text)
		if !ok {
			return
		}
		again := header(p.synced, p.over)
		for key, at := range p.containers {
			again += at.text(key)
		}
		q, ok := parsePosition(again)
		if !ok || q.synced != p.synced || q.over != p.over || len(q.containers) != len(p.containers) {
			t.Fatalf("%q is read as %+v, and written as %q", text, p, again)
		}
		for key, at := range p.containers {
			other := q.containers[key]
			if at.restart != other.restart || at.ended != other.ended || (at.told == nil) != (other.told == nil) || at.told != nil && *at.told != *other.told {
				t.Errorf("%q: %+v in place of %+v", text, other, at)
			}
		}
	})
}

// The id of the most containers that a stream may have is one that comes back.
func TestLargestPositionIsReadable(t *testing.T) {
	text := header(true, true)
	for i := range maxContainers {
		text += containerPosition{restart: 1 << 20, ended: true, told: &logs.LinePosition{Since: 1 << 33, Count: 1 << 30, Sum: 1 << 60}}.text(keyOf(string(rune(i)), "main"))
	}
	// Beside the most watches that a stream may have, with the longest names and versions, each in an epoch of its own.
	names, claims := []string{"l"}, []stream.Claim{{Own: text, Epoch: "epoch"}}
	for i := range 31 {
		names = append(names, fmt.Sprintf("w%062d", i))
		claims = append(claims, stream.Claim{
			Known: stream.Known{All: math.MaxUint64 - 1, Some: math.MaxUint64}, Epoch: fmt.Sprintf("epoch%03d", i), Visibility: "s12345678",
		})
	}
	id := stream.AppendID(nil, names, claims)
	if p, err := stream.ParsePosition(string(id)); err != nil || p.Claims["l"].Own != text {
		t.Fatalf("%d bytes: %v", len(id), err)
	}
	if p, ok := parsePosition(text); !ok || len(p.containers) != maxContainers {
		t.Errorf("%d containers", len(p.containers))
	}
}
