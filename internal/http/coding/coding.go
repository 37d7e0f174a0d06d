package coding

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/http/reply"
)

// Names are the codings that can be offered.
var Names = []string{"zstd", "gzip"}

// PieceSize is how many bytes of a long answer are encoded as one piece: with less, what repeats is
// seen less often, and with more, the first rows come later.
const PieceSize = 128 << 10

// Codings are those that a gateway offers.
type Codings struct {
	offered []string // the best first
	byName  map[string]*Coding
}

// New returns the codings of these names, the best first. It fails if a name is not one of Names.
func New(names []string, registerer prometheus.Registerer) (*Codings, error) {
	m := newMetrics(registerer)
	kept := newShared()
	m.keep(registerer, kept.memory)
	c := &Codings{offered: names, byName: map[string]*Coding{}}
	for _, name := range names {
		var encode func(dst, piece []byte) []byte
		var err error
		switch name {
		case "zstd":
			encode, err = zstdFrames()
		case "gzip":
			encode = deflateBlocks
		default:
			err = fmt.Errorf("there is no %q; there are %s", name, strings.Join(Names, ", "))
		}
		if err != nil {
			return nil, fmt.Errorf("coding.New: %w", err)
		}
		c.byName[name] = &Coding{Name: name, encode: encode, shared: kept, number: slices.Index(Names, name), own: m.of(name, "own"), alike: m.of(name, "shared")}
	}
	return c, nil
}

// For returns the coding in which a request wants its answer; nil means none. A nil Codings offers none.
func (c *Codings) For(h http.Header) *Coding {
	if c == nil {
		return nil
	}
	return c.byName[reply.Encoding(h, c.offered)]
}

// Coding is one content coding.
type Coding struct {
	Name   string // as in Content-Encoding
	number int
	encode func(dst, piece []byte) []byte
	shared *shared
	own    counts // of pieces that were encoded
	alike  counts // of pieces that had been
}

// Body is what has to be known of an answer between its pieces. The zero value is one that has not begun.
type Body struct {
	QuotaOwner string // to whom the memory is charged of what others may get, too
	begun      bool
	sum        uint32 // of what was encoded, for gzip
	size       uint64 // likewise
}

// Begun is an answer of which something was sent, of which nothing is known. It serves to see what
// is added: see Follow.
func Begun() Body { return Body{begun: true} }

// Follow says that an answer was sent what another was sent between two moments.
func (b *Body) Follow(since, until Body) {
	size := until.size - since.size
	b.sum, b.size = joinedSum(b.sum, until.sum^shiftedSum(since.sum, size), size), b.size+size
}

// Append appends a piece, encoded, to dst. A piece that is empty adds nothing.
func (c *Coding) Append(b *Body, dst, piece []byte) []byte {
	if len(piece) == 0 {
		return dst
	}
	if c.Name == "gzip" {
		if !b.begun {
			dst = append(dst, gzipHeader...)
		}
		b.sum, b.size = crc32.Update(b.sum, crc32.IEEETable, piece), b.size+uint64(len(piece))
	}
	b.begun = true
	for part := range slices.Chunk(piece, maxPart) {
		dst = c.part(b.QuotaOwner, dst, part)
	}
	return dst
}

// Again counts a piece that was sent so many times more as it was encoded once. Before and after are its bytes.
func (c *Coding) Again(times, before, after int) { c.alike.add(times*before, times*after) }

// maxPart bounds what is encoded at once, in bytes, and so for how long nothing else is done.
const maxPart = 256 << 10

func (c *Coding) part(quotaOwner string, dst, part []byte) []byte {
	before := len(dst)
	if len(part) < minShared {
		dst = c.encode(dst, part)
		c.own.add(len(part), len(dst)-before)
		return dst
	}
	key := keyOf(c.number, part)
	if coded := c.shared.get(key); coded != nil {
		c.alike.add(len(part), len(coded))
		return append(dst, coded...)
	}
	dst = c.encode(dst, part)
	c.shared.offer(key, quotaOwner, dst[before:])
	c.own.add(len(part), len(dst)-before)
	return dst
}

// End appends what stands behind the last piece of an answer that is complete.
func (c *Coding) End(b *Body, dst []byte) []byte {
	if c.Name != "gzip" || !b.begun {
		return dst
	}
	dst = append(dst, 1, 0, 0, 0xff, 0xff) // an empty block, the last one
	dst = binary.LittleEndian.AppendUint32(dst, b.sum)
	return binary.LittleEndian.AppendUint32(dst, uint32(b.size))
}

// gzipHeader says that nothing is said of the file: no name, no time, an unknown system.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// smallest is how many bytes are stored as they are: an encoder would find nothing in them.
const smallest = 64

// deflateBlocks encodes a piece as blocks that refer to nothing before them, with an empty block at
// the end. Without that, Go's decoder keeps what it has for itself until more comes.
func deflateBlocks(dst, piece []byte) []byte {
	if len(piece) < smallest {
		dst = append(dst, 0, byte(len(piece)), 0, ^byte(len(piece)), 0xff)
		dst = append(dst, piece...)
		return append(dst, 0, 0, 0, 0xff, 0xff)
	}
	w := deflaters.Get().(*deflater)
	defer deflaters.Put(w)
	w.to = dst
	w.Reset(w.sink())
	_, _ = w.Write(piece) // cannot fail: it writes to memory
	_ = w.Flush()         // likewise
	dst, w.to = w.to, nil
	return dst
}

// deflater is an encoder that appends to a buffer.
type deflater struct {
	*flate.Writer
	to []byte
}

type deflaterSink deflater

func (s *deflaterSink) Write(p []byte) (int, error) {
	s.to = append(s.to, p...)
	return len(p), nil
}

func (d *deflater) sink() io.Writer { return (*deflaterSink)(d) }

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // there is this level
	}
	return &deflater{Writer: w}
}}

// zstdFrames returns what encodes a piece as one frame. Its encoders are as many as processors,
// whatever the number of answers.
func zstdFrames() (func(dst, piece []byte) []byte, error) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(maxPart), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return func(dst, piece []byte) []byte { return w.EncodeAll(piece, dst) }, nil
}
