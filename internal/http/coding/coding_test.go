package coding

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func newCoding(t testing.TB, name string) *Coding {
	t.Helper()
	c, err := New(Names, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return c.For(http.Header{"Accept-Encoding": {name}})
}

// decode decodes with others' programs, each of which ends with an error if anything is amiss.
func decode(t *testing.T, name string, coded []byte) []byte {
	t.Helper()
	if name == "gzip" {
		r, err := gzip.NewReader(bytes.NewReader(coded))
		if err != nil {
			t.Fatal(err)
		}
		r.Multistream(false) // what browsers read is one member
		plain, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return plain
	}
	program, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("there is no zstd")
	}
	command := exec.Command(program, "-dc", "-M8MB")
	command.Stdin = bytes.NewReader(coded)
	plain, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestPiecesOfOthersFitIntoAnybodysAnswer(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := [][]byte{[]byte(": \n\n"), []byte("x"), nil, bytes.Repeat([]byte("ab"), 300_000), []byte(strings.Repeat("data", 15)), make([]byte, 70_000)}
	for i := range pieces[5] {
		pieces[5][i] = byte(random.Int())
	}
	for i := range 20 {
		pieces = append(pieces, []byte(strings.Repeat(fmt.Sprintf(`{"name":"pod-%d"}`, i), random.IntN(500))))
	}
	for _, name := range Names {
		t.Run(name, func(t *testing.T) {
			c := newCoding(t, name)
			var answers sync.WaitGroup
			coded, plain := make([][]byte, 8), make([][]byte, 8)
			for i := range coded {
				order := random.Perm(len(pieces))
				answers.Go(func() {
					var body Body
					for _, p := range order {
						coded[i] = c.Append(&body, coded[i], pieces[p])
						plain[i] = append(plain[i], pieces[p]...)
					}
					coded[i] = c.End(&body, coded[i])
				})
			}
			answers.Wait()
			for i := range coded {
				if !bytes.Equal(decode(t, name, coded[i]), plain[i]) {
					t.Errorf("answer %d is not what was encoded", i)
				}
			}
		})
	}
}

// What is not decoded until more comes is an event that nobody sees.
func TestEachPieceIsDecodedBeforeTheNextComes(t *testing.T) {
	c := newCoding(t, "gzip")
	from, to := io.Pipe()
	defer from.Close()
	pieces := []string{": kubecast\n\n", ": \n\n", strings.Repeat("event: added\n", 900), ": \n\n", strings.Repeat("z", 600_000)}
	next := make(chan bool)
	go func() {
		defer to.Close()
		var body Body
		for _, piece := range pieces {
			_, _ = to.Write(c.Append(&body, nil, []byte(piece)))
			<-next
		}
	}()
	r, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	for i, piece := range pieces {
		got := make([]byte, len(piece))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != piece {
			t.Fatalf("piece %d: %v", i, err)
		}
		next <- true
	}
}

func TestWhatManyGetIsEncodedOnceAndKeptWhileItIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoding(t, "zstd")
		piece := []byte(strings.Repeat("event: modified\n", 300))
		var body Body
		want := c.Append(&body, nil, piece)
		if bytes, _ := c.shared.memory.Held(); bytes != 0 {
			t.Errorf("%d bytes are kept of what was asked for once", bytes)
		}
		c.Append(&body, nil, piece)
		of := keyOf(c.number, piece)
		if got := c.shared.get(of); !bytes.Equal(got, want) {
			t.Error("it is not kept though it was asked for again")
		}
		if other := newCoding(t, "gzip"); c.shared.get(keyOf(other.number, piece)) != nil {
			t.Error("the piece of one coding is found for another")
		}
		for range 3 {
			time.Sleep(lifetime * 3 / 4)
			if !bytes.Equal(c.Append(&body, nil, piece), want) || c.shared.get(of) == nil {
				t.Error("it is forgotten though it is asked for")
			}
		}
		time.Sleep(lifetime + time.Second)
		synctest.Wait()
		c.shared.mu.Lock()
		defer c.shared.mu.Unlock()
		if held, _ := c.shared.memory.Held(); held != 0 || len(c.shared.kept) != 0 {
			t.Errorf("%d bytes and %d pieces are kept after the last has asked", held, len(c.shared.kept))
		}
	})
}

// A user who asks for much, each piece twice, must not make others' pieces be encoded for each of them.
func TestWhoAsksForMuchDisplacesOnlyTheirOwnPieces(t *testing.T) {
	c := newCoding(t, "zstd")
	many := []byte(strings.Repeat("event: modified\n", 300))
	good, greedy := Body{QuotaOwner: "ann"}, Body{QuotaOwner: "bob"}
	for range 2 {
		c.Append(&good, nil, many)
	}
	own := make([]byte, 200<<10)
	for j := range own {
		own[j] = byte(rand.Int())
	}
	for i := range 2 * keptBytes / len(own) {
		binary.BigEndian.PutUint32(own, uint32(i))
		for range 2 {
			c.Append(&greedy, nil, own)
		}
		if held, _ := c.shared.memory.Held(); held > keptBytes {
			t.Fatalf("%d bytes are held", held)
		}
	}
	if c.shared.get(keyOf(c.number, many)) == nil {
		t.Error("another's piece was displaced")
	}
	if len(c.shared.kept) < keptBytes/len(own)/2 || len(c.shared.kept) > keptBytes/len(own)+2 {
		t.Errorf("%d pieces are kept", len(c.shared.kept))
	}
	for i := range 3 * remembered {
		c.shared.offer(key{length: i}, "bob", nil)
	}
	if n := len(c.shared.now) + len(c.shared.old); n > 2*remembered {
		t.Errorf("%d pieces are remembered", n)
	}
}

func TestOnlyCodingsThatThereAreCanBeOffered(t *testing.T) {
	if _, err := New([]string{"gzip", "brotli"}, prometheus.NewRegistry()); err == nil || !strings.Contains(err.Error(), `"brotli"`) {
		t.Errorf("an unknown name: %v", err)
	}
}

func BenchmarkAppend(b *testing.B) {
	piece := []byte(strings.Repeat(`{"name":"pod","uid":"0123456789"}`, 100))
	for _, name := range Names {
		b.Run(name+"/shared", func(b *testing.B) {
			c := newCoding(b, name)
			var body Body
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst = c.Append(&body, dst[:0], piece)
			}
		})
	}
}
