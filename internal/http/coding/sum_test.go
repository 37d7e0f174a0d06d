package coding

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestSumOfPartsIsThatOfTheWhole, for what an answer was sent while another was encoded in its place.
func TestSumOfPartsIsThatOfTheWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	sum := func(part []byte) Body { return Body{sum: crc32.ChecksumIEEE(part), size: uint64(len(part))} }
	for range 200 {
		at := random.IntN(len(text))
		length := random.IntN(len(text) - at)
		if random.IntN(3) == 0 {
			length = min(length, random.IntN(4))
		}
		before, own := text[:random.IntN(at+1)], text[at/2:at]
		added := text[at : at+length]
		b := sum(own)
		b.Follow(sum(before), sum(append(append([]byte(nil), before...), added...)))
		if want := sum(append(append([]byte(nil), own...), added...)); b != want {
			t.Fatalf("%d bytes behind %d: %+v, not %+v", len(added), len(own), b, want)
		}
	}
}
