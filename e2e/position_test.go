package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// position is an event id, read as docs/wire.md, "Event ids" describes it, independently of the gateway's own reader.
type position struct {
	epoch    string            // with which it begins
	epochs   map[string]string // by watch that has a version, and of a single stream always; "" for the one of a single stream
	versions map[string]uint64 // likewise
	some     map[string]uint64 // where it is more, the version of which some is known
}

var (
	epochForm = regexp.MustCompile(`^[a-z0-9]{1,16}$`)
	watchForm = regexp.MustCompile(`^([a-z][a-z0-9]*)-([1-9][0-9]*)(?:-([1-9][0-9]*))?(?:-(?:s[0-9a-v]+|x))?(?:~([a-z0-9]{1,16}))?$`) // until when more is known, what may be seen, and the epoch
)

// parsePosition reads the id of an event on a stream with these watches.
func parsePosition(id string, watches []string) (position, error) {
	parts := strings.Split(id, ".")
	p := position{epoch: parts[0], epochs: map[string]string{}, versions: map[string]uint64{}, some: map[string]uint64{}}
	if !epochForm.MatchString(p.epoch) {
		return p, fmt.Errorf("id %q begins with no epoch", id)
	}
	if len(watches) == 1 && watches[0] == "" {
		if len(parts) != 2 {
			return p, fmt.Errorf("id %q of a single stream has %d parts", id, len(parts))
		}
		p.epochs[""] = p.epoch
		digits, more, _ := strings.Cut(parts[1], "-") // within a relist the list's version follows
		version, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || strconv.FormatUint(version, 10) != digits {
			return p, fmt.Errorf("id %q has no version", id)
		}
		if version > 0 {
			p.versions[""] = version
		}
		more, _, _ = strings.Cut(more, "-")
		if some, err := strconv.ParseUint(more, 10, 64); err == nil {
			p.some[""] = some
		}
		return p, nil
	}
	for _, part := range parts[1:] {
		match := watchForm.FindStringSubmatch(part)
		if match == nil {
			return p, fmt.Errorf("id %q: %q is no NAME-VERSION", id, part)
		}
		version, err := strconv.ParseUint(match[2], 10, 64)
		if err != nil {
			return p, fmt.Errorf("id %q: %w", id, err)
		}
		if _, twice := p.versions[match[1]]; twice {
			return p, fmt.Errorf("id %q names %s twice", id, match[1])
		}
		p.versions[match[1]], p.epochs[match[1]] = version, p.epoch
		if own := match[4]; own != "" {
			if own == p.epoch || len(p.versions) == 1 {
				return p, fmt.Errorf("id %q names the epoch of %s, which it has already", id, match[1])
			}
			p.epochs[match[1]] = own
		}
		if some, err := strconv.ParseUint(match[3], 10, 64); err == nil {
			p.some[match[1]] = some
		}
	}
	return p, nil
}
