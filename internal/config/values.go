package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration, written as in "10m", "1h30m" or "250ms"; zero may be written "0".
type Duration time.Duration

var errDuration = errors.New("a duration such as 15s, 10m or 1h30m")

// UnmarshalText reads a duration that is not negative. The error says what is allowed.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return errDuration
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes what UnmarshalText reads, without trailing zero units: 10m, not 10m0s.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String is the text of MarshalText.
func (d Duration) String() string {
	if d == 0 {
		return "0"
	}
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Std is the duration as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// ByteSize is a number of bytes, written as in "64Mi", "1Gi", "500k" or "1000".
type ByteSize int64

var errByteSize = errors.New("a number of bytes such as 64Mi, 1Gi or 1000")

var byteUnits = []struct {
	suffix string
	bytes  int64
}{
	{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10},
	{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3},
}

// UnmarshalText reads a whole number of bytes with one of Kubernetes' suffixes, or none.
// The error says what is allowed.
func (b *ByteSize) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for _, u := range byteUnits {
		if n, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = n, u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return errByteSize
	}
	*b = ByteSize(int64(n) * unit)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (b ByteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// String uses the largest binary unit that leaves a whole number.
func (b ByteSize) String() string {
	for _, u := range byteUnits[:4] {
		if b >= ByteSize(u.bytes) && int64(b)%u.bytes == 0 {
			return strconv.FormatInt(int64(b)/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Kind names a kind by its resource: "pods", "jobs.batch", or with a version "jobs.v1.batch". Without a version, the
// one that the API server prefers is meant.
type Kind struct {
	Resource string
	Version  string // usually empty
	Group    string // empty: the core group
}

var (
	errKind = errors.New("a resource with its group, such as pods, jobs.batch or jobs.v1.batch")

	dnsLabel    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	apiVersion  = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	maxKindText = 63 + 1 + 63 + 1 + 253
)

// ParseKind reads resource[.group] or resource.version.group. A second part that looks like an API version (v1,
// v2beta1) is taken for one, since no group has such a name.
func ParseKind(s string) (Kind, error) {
	if len(s) > maxKindText {
		return Kind{}, errKind
	}
	parts := strings.Split(s, ".")
	for _, p := range parts {
		if !dnsLabel.MatchString(p) {
			return Kind{}, errKind
		}
	}
	k := Kind{Resource: parts[0]}
	rest := parts[1:]
	if len(rest) > 0 && apiVersion.MatchString(rest[0]) {
		k.Version, rest = rest[0], rest[1:]
	}
	k.Group = strings.Join(rest, ".")
	return k, nil
}

// String is what ParseKind reads.
func (k Kind) String() string {
	s := k.Resource
	if k.Version != "" {
		s += "." + k.Version
	}
	if k.Group != "" {
		s += "." + k.Group
	}
	return s
}

// UnmarshalText is ParseKind. The error says what is allowed.
func (k *Kind) UnmarshalText(text []byte) error {
	v, err := ParseKind(string(text))
	if err != nil {
		return err
	}
	*k = v
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (k Kind) MarshalText() ([]byte, error) {
	if k.Resource == "" {
		return nil, fmt.Errorf("a kind without resource")
	}
	return []byte(k.String()), nil
}

// KindPattern names kinds in all of their versions: "pods", "jobs.batch", "*.batch" for all kinds of a group, "*" for
// all.
type KindPattern struct {
	Resource string // "*": all
	Group    string // "*": all; empty: the core group
}

var (
	errKindPattern = errors.New("a resource with its group, such as pods or jobs.batch, *.batch for all of a group, or * for all")
	everyKind      = KindPattern{"*", "*"}
)

// Matches reports whether the pattern names a kind.
func (p KindPattern) Matches(group, resource string) bool {
	return (p.Resource == "*" || p.Resource == resource) && (p.Group == "*" || p.Group == group)
}

// String is what UnmarshalText reads.
func (p KindPattern) String() string {
	if p == everyKind {
		return "*"
	}
	return Kind{Resource: p.Resource, Group: p.Group}.String()
}

// UnmarshalText reads a pattern. The error says what is allowed.
func (p *KindPattern) UnmarshalText(text []byte) error {
	if string(text) == "*" {
		*p = everyKind
		return nil
	}
	name, all := string(text), false
	if group, ok := strings.CutPrefix(name, "*."); ok {
		name, all = "all."+group, true
	}
	k, err := ParseKind(name)
	if err != nil || k.Version != "" {
		return errKindPattern
	}
	if all {
		k.Resource = "*"
	}
	*p = KindPattern{k.Resource, k.Group}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (p KindPattern) MarshalText() ([]byte, error) {
	if p.Resource == "" {
		return nil, fmt.Errorf("a pattern without resource")
	}
	return []byte(p.String()), nil
}
