//go:build linux

package load

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/kubecast/kubecast/bench/internal/mark"
)

// stream reads one answer: an HTTP/1.1 head, then a body of server-sent events, or of Kubernetes watch events with a
// line of JSON each. It calls the functions with what it finds; they must not keep a slice.
type stream struct {
	state   int
	raw     bool // the body is not read
	chunked bool
	left    int    // of the chunk
	part    []byte // the beginning of a line, or of the head, that is not complete yet
	name    eventName
	id      []byte // the newest

	onHead  func()
	onEvent func(name eventName, m mark.Mark, marked bool)
}

// States of a stream.
const (
	inHead = iota
	inSize
	inSizeEnd // behind the digits
	inData
	inDataEnd
	atEnd
)

type eventName int

// What an event means to the client, by its name. Events with other names carry objects.
const (
	nameObject eventName = iota
	nameSynced
	nameReset
	nameGoodbye
	namePage // of live pages: all of the page has been told
	nameOther
)

var (
	headEnd    = []byte("\r\n\r\n")
	headOK     = []byte("HTTP/1.1 200")
	chunkedSet = []byte("transfer-encoding: chunked")
	fieldEvent = []byte("event: ")
	fieldID    = []byte("id: ")
	fieldData  = []byte("data: ")
)

var errFraming = errors.New("the body is not chunked as it should be")

// feed reads the next bytes.
func (s *stream) feed(p []byte) error {
	for len(p) > 0 {
		switch s.state {
		case inHead:
			s.part = append(s.part, p...)
			end := bytes.Index(s.part, headEnd)
			if end < 0 {
				return nil
			}
			head := s.part[:end]
			if !bytes.HasPrefix(head, headOK) {
				return fmt.Errorf("answered with %q", s.part)
			}
			s.chunked = bytes.Contains(bytes.ToLower(head), chunkedSet)
			p = bytes.Clone(s.part[end+len(headEnd):])
			s.part, s.state = nil, inData
			if s.chunked {
				s.state = inSize
			}
			s.onHead()
			if s.raw {
				s.state = atEnd
			}
		case inSize:
			digit := hex(p[0])
			if digit >= 0 {
				s.left = s.left<<4 | digit
				p = p[1:]
				continue
			}
			s.state = inSizeEnd
		case inSizeEnd:
			if p[0] == '\n' {
				s.state = inData
				if s.left == 0 {
					s.state = atEnd
				}
			}
			p = p[1:]
		case inData:
			n := len(p)
			if s.chunked {
				n = min(n, s.left)
				s.left -= n
				if s.left == 0 {
					s.state = inDataEnd
				}
			}
			s.text(p[:n])
			p = p[n:]
		case inDataEnd:
			switch p[0] {
			case '\r':
			case '\n':
				s.state = inSize
			default:
				return errFraming
			}
			p = p[1:]
		case atEnd:
			return nil
		}
	}
	return nil
}

func hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// text splits the body into lines.
func (s *stream) text(p []byte) {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			s.part = append(s.part, p...)
			return
		}
		line := p[:i]
		if len(s.part) > 0 {
			s.part = append(s.part, line...)
			line = s.part
			s.part = s.part[:0]
		}
		s.line(line)
		p = p[i+1:]
	}
}

func (s *stream) line(line []byte) {
	switch {
	case len(line) == 0:
		s.name = nameObject
	case bytes.HasPrefix(line, fieldData), line[0] == '{':
		m, marked := mark.Find(line)
		s.onEvent(s.name, m, marked)
	case bytes.HasPrefix(line, fieldEvent):
		s.name = nameOf(line[len(fieldEvent):])
	case bytes.HasPrefix(line, fieldID):
		s.id = append(s.id[:0], line[len(fieldID):]...)
	}
}

func nameOf(name []byte) eventName {
	switch string(name) {
	case "added", "modified", "deleted", "patched", "line", "queue":
		return nameObject
	case "synced":
		return nameSynced
	case "reset":
		return nameReset
	case "goodbye":
		return nameGoodbye
	case "page":
		return namePage
	}
	return nameOther
}
