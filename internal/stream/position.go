package stream

import (
	"errors"
	"strconv"
	"strings"
)

// Known is what a client has been told of a watch: everything up to one version, and some of what happened up to
// another. The two differ within the burst of a relist, where the second is the list's version, while a modification
// is held back, and behind a deletion, of whose revision there may be more.
//
// The second matters to a client that is cut off there, and comes back to a replica that made its lists at other
// versions. An object that came and went between two lists is in no difference between them. A client that never
// heard of it misses nothing, but one that was told of it would keep it for ever.
type Known struct {
	All  uint64 // everything up to here; 0: nothing
	Some uint64 // some of what lies up to here; not less than All
}

// UpTo is what a client knows that has been told everything up to a version, and nothing after it.
func UpTo(version uint64) Known { return Known{All: version, Some: version} }

// isNext reports whether a version is the only one of which the client was told some, but may not have been told all.
func (k Known) isNext(version uint64) bool { return k.Some == version && k.All+1 == version }

// Claim is what an event id says of one source: how far its client has been told, in which history, and under which
// visibility.
type Claim struct {
	Known
	// Epoch is the epoch in which the position counts: lower-case letters and digits. A position
	// says nothing in another one.
	Epoch string
	// Visibility names the visibility, the part of the resource that the client was permitted to see: a letter, then
	// letters and digits. The empty name means all that it asked for. A position made under one visibility says
	// nothing under another.
	Visibility string
	// Own is a position in a form of the source's own, where no version says it: the letter p, then letters, digits and
	// hyphens. Then the other fields are zero.
	Own string
}

// IsPlaced reports whether it says anything.
func (c Claim) IsPlaced() bool { return c.All > 0 || c.Own != "" }

// Position is what an event id says: how far a client has been told of each watch of its stream.
//
// On the wire it is EPOCH.VERSION for a stream of one watch, which has no name, and EPOCH.NAME-VERSION.NAME-VERSION…
// for several. VERSION is Known.All. If Known.Some differs, it follows after a hyphen; then the name of the
// visibility, if it has one, after another. A watch whose snapshot was not complete has no version: if it has a name
// it is left out, else its version is 0. Claim.Own stands in the place of all that.
//
// EPOCH is that of the first watch that is named. Each other one with another epoch has it behind a tilde:
// EPOCH.NAME-VERSION.NAME-VERSION~EPOCH.
type Position struct {
	Epoch  string           // with which it begins
	Claims map[string]Claim // by the watch's name; "" for the watch of a single stream
}

// ErrPosition means that a text is not a position.
var ErrPosition = errors.New("stream: unreadable position")

// maxPosition bounds a position's length, in bytes. It leaves room for the most watches that a
// stream may have, with the longest names, each in an epoch of its own, all of them histories whose
// positions are sealed, and a position of logs.
const maxPosition = 8 << 10

// ParsePosition reads an event id. Its error is ErrPosition.
func ParsePosition(s string) (Position, error) {
	if len(s) > maxPosition {
		return Position{}, ErrPosition
	}
	epoch, rest, more := strings.Cut(s, ".")
	if epoch == "" || !all(epoch, letterOrDigit) {
		return Position{}, ErrPosition
	}
	p := Position{Epoch: epoch, Claims: map[string]Claim{}}
	for first := true; more; first = false {
		var part string
		part, rest, more = strings.Cut(rest, ".")
		name, versions, _ := strings.Cut(part, "-")
		if !ValidName(name) {
			if name, versions = "", part; !first || more {
				return Position{}, ErrPosition // only a single stream's watch has no name
			}
		}
		versions, own, apart := strings.Cut(versions, "~")
		claim, ok := parseClaim(versions)
		if _, twice := p.Claims[name]; !ok || twice || name != "" && !claim.IsPlaced() {
			return Position{}, ErrPosition
		}
		claim.Epoch = epoch
		if apart { // each position has exactly one form
			if claim.Epoch = own; first || own == epoch || own == "" || !all(own, letterOrDigit) {
				return Position{}, ErrPosition
			}
		}
		if claim.IsPlaced() {
			p.Claims[name] = claim
		}
	}
	return p, nil
}

func parseClaim(s string) (claim Claim, ok bool) {
	if len(s) > 1 && s[0] == 'p' {
		return Claim{Own: s}, all(s, func(c byte) bool { return letterOrDigit(c) || c == '-' })
	}
	if i := strings.LastIndexByte(s, '-'); i >= 0 && ValidName(s[i+1:]) {
		s, claim.Visibility = s[:i], s[i+1:]
	}
	claim.Known, ok = parseKnown(s)
	return claim, ok && (claim.Visibility == "" || claim.All > 0)
}

func parseKnown(s string) (Known, bool) {
	digits, more, some := strings.Cut(s, "-")
	all, ok := parseDigits(digits)
	if !some || !ok {
		return UpTo(all), ok
	}
	known := Known{All: all}
	known.Some, ok = parseDigits(more)
	return known, ok && all > 0 && known.Some > all
}

// AppendID appends the event id of a stream to dst. The watches keep the order in which they are
// given. It appends nothing if no watch has an epoch: then nothing is known of any.
func AppendID(dst []byte, names []string, claims []Claim) []byte {
	epoch := headOf(claims)
	if epoch == "" {
		return dst
	}
	dst = append(dst, epoch...)
	for i, name := range names {
		switch {
		case name == "":
			dst = append(dst, '.')
		case !claims[i].IsPlaced():
			continue
		default:
			dst = append(dst, '.')
			dst = append(dst, name...)
			dst = append(dst, '-')
		}
		dst = appendClaim(dst, claims[i])
		if claims[i].IsPlaced() && claims[i].Epoch != epoch {
			dst = append(dst, '~')
			dst = append(dst, claims[i].Epoch...)
		}
	}
	return dst
}

// headOf is the epoch with which an id begins: that of the first watch that it names, or if it
// names none, of the first that has one.
func headOf(claims []Claim) (epoch string) {
	for i := range claims {
		switch {
		case claims[i].IsPlaced():
			return claims[i].Epoch
		case epoch == "":
			epoch = claims[i].Epoch
		}
	}
	return epoch
}

func appendClaim(dst []byte, claim Claim) []byte {
	if claim.Own != "" {
		return append(dst, claim.Own...)
	}
	dst = strconv.AppendUint(dst, claim.All, 10)
	if claim.All == 0 {
		return dst
	}
	if claim.Some > claim.All {
		dst = append(dst, '-')
		dst = strconv.AppendUint(dst, claim.Some, 10)
	}
	if claim.Visibility != "" {
		dst = append(dst, '-')
		dst = append(dst, claim.Visibility...)
	}
	return dst
}

// ValidName reports whether a text may name a watch or a visibility: a lower-case letter, then lower-case letters and
// digits, 63 characters at most.
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

// parseDigits refuses leading zeros, which strconv accepts: each position has exactly one form.
func parseDigits(s string) (uint64, bool) {
	if s == "" || s[0] == '0' && s != "0" || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}
