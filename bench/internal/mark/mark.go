//go:build linux

// Package mark lets a benchmark recognise its own events. Each carries a number and the time at which it was
// committed, as a text that can be found without parsing the event.
package mark

import (
	"bytes"
	"strconv"
)

// Mark identifies one event of a run.
type Mark struct {
	Seq uint64 // counted from 1
	At  int64  // when it was committed, in nanoseconds since 1970
}

// delimiter encloses a mark, and appears nowhere else in an event, so that a search for one byte finds the mark.
const delimiter = '~'

// Append appends the text of a mark, which needs no quoting in JSON.
func (m Mark) Append(to []byte) []byte {
	to = append(to, delimiter)
	to = strconv.AppendUint(to, m.Seq, 10)
	to = append(to, '@')
	to = strconv.AppendInt(to, m.At, 10)
	return append(to, delimiter)
}

// Find finds the first mark in a text.
func Find(text []byte) (m Mark, ok bool) {
	i := bytes.IndexByte(text, delimiter)
	if i < 0 {
		return m, false
	}
	text = text[i+1:]
	seq, n := digits(text)
	if n == 0 || n == len(text) || text[n] != '@' {
		return m, false
	}
	text = text[n+1:]
	at, n := digits(text)
	if n == 0 || n == len(text) || text[n] != delimiter {
		return m, false
	}
	return Mark{Seq: seq, At: int64(at)}, true
}

func digits(text []byte) (value uint64, n int) {
	for n < len(text) && text[n]-'0' <= 9 {
		value = value*10 + uint64(text[n]-'0')
		n++
	}
	return value, n
}
