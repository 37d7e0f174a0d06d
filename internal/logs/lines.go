package logs

import (
	"bufio"
	"bytes"
	"errors"
	"hash/fnv"
	"io"
	"strings"
	"time"
)

// MaxText is how much is kept of a line, in bytes.
const MaxText = 64 << 10

// timeRoom is more than a line's time takes.
const timeRoom = 64

// lineReader reads the lines of an answer.
type lineReader struct {
	from *bufio.Reader
	last time.Time // of the line before, for one whose time cannot be read
	kept []byte    // scratch
}

func newLineReader(from io.Reader) *lineReader {
	return &lineReader{from: bufio.NewReaderSize(from, 16<<10)}
}

// maxSum is the greatest hash of a line: positions are sent with every line, so they must be short, and forty bits are enough to
// tell that a file is another one.
const maxSum = 1<<40 - 1

// rawLine is a line as it was read.
type rawLine struct {
	at   time.Time
	text string
	cut  bool
	sum  uint64 // of all of it
}

// more reports whether a whole line can be read without waiting.
func (r *lineReader) more() bool {
	ready, _ := r.from.Peek(r.from.Buffered()) // what is buffered can be peeked at
	return bytes.IndexByte(ready, '\n') >= 0
}

// next returns the next line. At the end of the answer, what has no end comes with the error.
func (r *lineReader) next() (line rawLine, any bool, err error) {
	hash := fnv.New64a()
	r.kept = r.kept[:0]
	for {
		piece, err := r.from.ReadSlice('\n')
		any = any || len(piece) > 0
		ended := err == nil
		piece = bytes.TrimSuffix(piece, []byte("\n"))
		_, _ = hash.Write(piece) // a hash never fails
		if room := MaxText + timeRoom - len(r.kept); len(piece) > room {
			piece, line.cut = piece[:room], true
		}
		r.kept = append(r.kept, piece...)
		switch {
		case ended:
			r.parse(&line, hash.Sum64()&maxSum)
			return line, true, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if any {
				r.parse(&line, hash.Sum64()&maxSum)
			}
			return line, any, err
		}
	}
}

func (r *lineReader) parse(line *rawLine, sum uint64) {
	line.sum = sum
	text := r.kept
	if stamp, rest, ok := bytes.Cut(text[:min(len(text), timeRoom)], []byte(" ")); ok || len(rest) == 0 {
		if at, err := time.Parse(time.RFC3339Nano, string(stamp)); err == nil {
			r.last = at
			text = text[min(len(stamp)+1, len(text)):]
		}
	}
	if line.at = r.last; len(text) > MaxText {
		text, line.cut = text[:MaxText], true
	}
	line.text = strings.ToValidUTF8(string(text), "\uFFFD")
}
