package eventstream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/http/conn"
)

// nowhere is a connection whose client takes everything at once.
type nowhere struct{ bytes int }

func (n *nowhere) Frame(p []byte) []byte { return p }
func (n *nowhere) Close(bool)            {}
func (n *nowhere) Send(p []byte, _ time.Duration, _ func() bool) (int, error) {
	n.bytes += len(p)
	return len(p), nil
}

// BenchmarkFrames is the writer alone: a batch of events of 2 KiB, and its flush.
func BenchmarkFrames(b *testing.B) {
	data := `{"metadata":{"name":"web"},"spec":"` + strings.Repeat("x", 2<<10) + `"}`
	for _, batch := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			b.ReportAllocs()
			to := &nowhere{}
			f, form := frames{to: to, patience: time.Second}, &serverSentEvents{}
			position := []byte("mzx7ntfk.123456")
			for b.Loop() {
				for range batch {
					f.add(form, Event{Kind: KindNamed, Prefix: "pods.", Name: "modified", id: position, Data: data})
					if !f.full() {
						continue
					}
					if err := f.flush(); err != nil {
						b.Fatal(err)
					}
				}
				if err := f.flush(); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(to.bytes / b.N))
		})
	}
}

// served is a connection that needs no chunks, such as HTTP/2's.
type served struct{ nowhere }

func (*served) Frame(p []byte) []byte { return p[conn.ChunkRoom:] }

// TestBuffersAreAsLargeAsBefore however often they were used: each use would take the room for a
// chunk's head from them, until there is none left.
func TestBuffersAreAsLargeAsBefore(t *testing.T) {
	f := frames{to: &served{}, patience: time.Second}
	for range 2000 {
		f.add(&serverSentEvents{}, Event{Kind: kindHeartbeat})
		if err := f.flush(); err != nil {
			t.Fatal(err)
		}
	}
}
