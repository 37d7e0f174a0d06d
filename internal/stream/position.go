package stream

import (
	"errors"
	"strconv"
	"strings"
)

// Position is what an event id says: how far a client has been told each watch of its stream.
//
// On the wire it is EPOCH.VERSION for a stream of one watch, which has no name, and EPOCH.NAME-VERSION.NAME-VERSION…
// for several. A watch whose snapshot was not complete has no version; it is left out, and 0 stands in its place for
// the one without a name.
type Position struct {
	Epoch    string
	Versions map[string]uint64 // by the watch's name; "" for the watch of a single stream
}

// ErrPosition means that a text is no position.
var ErrPosition = errors.New("stream: unreadable position")

// maxPosition bounds a position's length, in bytes; a stream has at most a few dozen watches.
const maxPosition = 4096

// ParsePosition reads an event id. Its error is ErrPosition.
func ParsePosition(s string) (Position, error) {
	if len(s) > maxPosition {
		return Position{}, ErrPosition
	}
	epoch, rest, more := strings.Cut(s, ".")
	if epoch == "" || !all(epoch, letterOrDigit) {
		return Position{}, ErrPosition
	}
	p := Position{Epoch: epoch, Versions: map[string]uint64{}}
	for first := true; more; first = false {
		var part string
		part, rest, more = strings.Cut(rest, ".")
		name, digits, named := strings.Cut(part, "-")
		if !named {
			name, digits = "", part
			if !first || more {
				return Position{}, ErrPosition // only a single stream's watch has no name
			}
		} else if !ValidName(name) {
			return Position{}, ErrPosition
		}
		version, ok := parseDigits(digits)
		_, twice := p.Versions[name]
		if !ok || twice || named && version == 0 {
			return Position{}, ErrPosition
		}
		if version > 0 {
			p.Versions[name] = version
		}
	}
	return p, nil
}

// AppendID appends the event id for watches in their order; a version of 0 means that the watch has none.
func AppendID(dst []byte, epoch string, names []string, versions []uint64) []byte {
	dst = append(dst, epoch...)
	for i, name := range names {
		switch {
		case name == "":
			dst = append(dst, '.')
		case versions[i] == 0:
			continue
		default:
			dst = append(dst, '.')
			dst = append(dst, name...)
			dst = append(dst, '-')
		}
		dst = strconv.AppendUint(dst, versions[i], 10)
	}
	return dst
}

// ValidName reports whether a text may name a watch: a lower-case letter, then lower-case letters and digits.
func ValidName(s string) bool {
	return s != "" && len(s) <= 63 && s[0] >= 'a' && s[0] <= 'z' && all(s, letterOrDigit)
}

func letterOrDigit(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func all(s string, is func(byte) bool) bool {
	for i := range len(s) {
		if !is(s[i]) {
			return false
		}
	}
	return true
}

// parseDigits is strict where strconv is not, so that each position has one form.
func parseDigits(s string) (uint64, bool) {
	if s == "" || s[0] == '0' && s != "0" || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}
