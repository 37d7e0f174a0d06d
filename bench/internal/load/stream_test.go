//go:build linux

package load

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/bench/internal/mark"
)

type seen struct {
	name eventName
	seq  uint64
}

// An answer is read alike, however the network splits it.
func TestStreamIsReadInPiecesOfAnySize(t *testing.T) {
	event := func(name string, seq uint64) string {
		return fmt.Sprintf("event: %s\nid: e.%d\ndata: {\"at\":\"%s\"}\n\n", name, seq, mark.Mark{Seq: seq, At: 5}.Append(nil))
	}
	body := ": hello\n\nretry: 2000\n\n" + event("added", 1) + event("synced", 2) + event("modified", 3) + event("reset", 4) +
		event("bookmark", 5) + event("goodbye", 6)
	want := []seen{{nameObject, 1}, {nameSynced, 2}, {nameObject, 3}, {nameReset, 4}, {nameOther, 5}, {nameGoodbye, 6}}
	var chunked strings.Builder
	for i := 0; i < len(body); i += 50 {
		piece := body[i:min(i+50, len(body))]
		fmt.Fprintf(&chunked, "%x\r\n%s\r\n", len(piece), piece)
	}
	chunked.WriteString("0\r\n\r\n")
	for name, answer := range map[string]string{
		"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked.String(),
		"plain":   "HTTP/1.1 200 OK\r\n\r\n" + body,
	} {
		for size := 1; size < 200; size++ {
			var got []seen
			heads := 0
			s := stream{
				onHead:  func() { heads++ },
				onEvent: func(name eventName, m mark.Mark, marked bool) { got = append(got, seen{name, m.Seq}) },
			}
			for rest := []byte(answer); len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if err := s.feed(rest[:min(size, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) || heads != 1 || string(s.id) != "e.6" {
				t.Fatalf("%s in pieces of %d: %v, %d heads, id %s", name, size, got, heads, s.id)
			}
		}
	}
}

func TestRefusalIsAnError(t *testing.T) {
	s := stream{onHead: func() { t.Error("taken for an answer") }}
	if err := s.feed([]byte("HTTP/1.1 401 Unauthorized\r\n\r\n")); err == nil {
		t.Error("no error")
	}
}

func TestWatchLines(t *testing.T) {
	var got []seen
	s := stream{state: inData, onEvent: func(name eventName, m mark.Mark, marked bool) { got = append(got, seen{name, m.Seq}) }}
	line := fmt.Sprintf(`{"type":"MODIFIED","object":{"at":"%s"}}`, mark.Mark{Seq: 9, At: 1}.Append(nil))
	if err := s.feed([]byte(line + "\n")); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint([]seen{{nameObject, 9}}) {
		t.Error(got)
	}
}

func BenchmarkStream(b *testing.B) {
	data := fmt.Sprintf("event: modified\nid: aaaabbbb.1000\ndata: {\"at\":\"%s\",\"payload\":\"%s\"}\n\n",
		mark.Mark{Seq: 9, At: 1}.Append(nil), strings.Repeat("x", 2000))
	chunk := fmt.Appendf(nil, "%x\r\n%s\r\n", len(data), data)
	s := stream{state: inSize, chunked: true, onEvent: func(eventName, mark.Mark, bool) {}}
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		if err := s.feed(chunk); err != nil {
			b.Fatal(err)
		}
	}
}
