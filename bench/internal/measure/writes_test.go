//go:build linux

package measure

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/pprof/profile"
)

// What is below write(2) counts, whoever called it, also where it was inlined; what only has such a name does not.
func TestTheShareOfWritesIsOfAllThatRan(t *testing.T) {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}}
	location := func(names ...string) *profile.Location {
		l := &profile.Location{ID: uint64(len(p.Location) + 1)}
		for _, name := range names {
			f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
			p.Function, l.Line = append(p.Function, f), append(l.Line, profile.Line{Function: f})
		}
		p.Location = append(p.Location, l)
		return l
	}
	sample := func(ms int64, stack ...*profile.Location) {
		p.Sample = append(p.Sample, &profile.Sample{Location: stack, Value: []int64{1, ms * 1e6}})
	}
	system := location("internal/runtime/syscall/linux.Syscall6")
	worker := location("eventstream.(*worker).run")
	sample(60, system, location("syscall.write", "syscall.Write"), worker)
	sample(10, location("net.(*conn).Write"), worker)
	sample(30, system, location("syscall.read"), worker)
	var encoded bytes.Buffer
	if err := p.Write(&encoded); err != nil {
		t.Fatal(err)
	}
	if share, err := WriteShare(encoded.Bytes()); math.Abs(share-0.6) > 1e-9 || err != nil {
		t.Error(share, err)
	}
	if _, err := WriteShare([]byte("no profile")); err == nil {
		t.Error("what is no profile was read")
	}
}
