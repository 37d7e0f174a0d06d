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
	kept []byte // scratch
}

func newLineReader(from io.Reader) *lineReader {
	return &lineReader{from: bufio.NewReaderSize(from, 16<<10)}
}

// maxSum is the greatest hash of a line: positions are sent with every line, so they must be short,
// and forty bits are enough to tell that a file is another one.
const maxSum = 1<<40 - 1

// rawLine is a line as it was read. One that does not begin with its time is not the container's
// own: it is what the kubelet or the runtime says, with the status of an answer that is well.
type rawLine struct {
	own  bool
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

// parse reads a line as a kubelet sends it: its time, a space, and what the container wrote, which may be nothing.
func (r *lineReader) parse(line *rawLine, sum uint64) {
	line.sum = sum
	text := r.kept
	if n := stampLength(text); n > 0 {
		at, err := time.Parse(time.RFC3339Nano, string(text[:n]))
		if line.own = err == nil; line.own {
			line.at, text = at, bytes.TrimPrefix(text[n:], []byte(" "))
		}
	}
	if len(text) > MaxText {
		text, line.cut = text[:MaxText], true
	}
	line.text = strings.ToValidUTF8(string(text), "\uFFFD")
}

// stamp is how a time is written, with 0 for each digit, up to its fraction.
const stamp = "0000-00-00T00:00:00"

// stampLength is how long the time is with which a text begins; 0 if it begins with none.
func stampLength(text []byte) int {
	text = text[:min(len(text), timeRoom)]
	if len(text) < len(stamp) || !isStampStart(text[:len(stamp)]) {
		return 0
	}
	n := len(stamp)
	if n < len(text) && (text[n] == '.' || text[n] == ',') {
		for n++; n < len(text) && isDigit(text[n]); n++ {
		}
	}
	const offset = len("+00:00")
	switch {
	case n < len(text) && text[n] == 'Z':
		return n + 1
	case n+offset <= len(text) && (text[n] == '+' || text[n] == '-'):
		return n + offset
	}
	return 0
}

// isStampStart reports whether a text may be the beginning of a time, as where an answer was cut.
func isStampStart(text []byte) bool {
	for i, c := range text {
		switch {
		case i >= len(stamp):
			if !isDigit(c) && !bytes.ContainsRune([]byte(".,Z+-:"), rune(c)) || len(text) > timeRoom {
				return false
			}
		case stamp[i] == '0' && !isDigit(c), stamp[i] != '0' && stamp[i] != c:
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// maxWords is how much is kept of what a node says, in bytes.
const maxWords = 1 << 10

// words are what a line says that is not the container's; "" if nothing.
func (l rawLine) words() string {
	words := strings.TrimSpace(l.text)
	return strings.ToValidUTF8(words[:min(len(words), maxWords)], "")
}
