package config

import (
	"fmt"
	"strings"
)

// TrustedSame means that the names of an issuer are meant to be the same users and groups as those of other issuers.
const TrustedSame = "same"

// issuers refuses an issuer that can give the name of another issuer's user or group, unless it is trusted to do so:
// "alice" of both would be one user, with the same permissions. With an empty prefix an issuer can give any name, and
// with the prefix "a" also names that begin with "ab". So the fault is reported for the issuer whose prefix is the
// beginning of the other's.
func (f *faults) issuers(issuers []JWT) {
	for i, j := range issuers {
		key := fmt.Sprintf("auth.jwt[%d]", i)
		switch j.Trusted {
		case TrustedSame:
			continue
		case "":
		default:
			f.refuse(key+".trusted", j.Trusted, TrustedSame+", or nothing")
		}
		users, groups := false, false // each is reported once, however many other issuers there are
		for n, other := range issuers {
			if n == i || other.Issuer == j.Issuer { // two of the same issuer are another fault
				continue
			}
			if !users && covers(j.Claims.UsernamePrefix, other.Claims.UsernamePrefix) {
				users = true
				f.overlap(key, "usernamePrefix", j.Claims.UsernamePrefix, other)
			}
			if !groups && j.Claims.Groups != "" && other.Claims.Groups != "" && covers(j.Claims.GroupsPrefix, other.Claims.GroupsPrefix) {
				groups = true
				f.overlap(key, "groupsPrefix", j.Claims.GroupsPrefix, other)
			}
		}
	}
}

func covers(prefix, other string) bool { return strings.HasPrefix(other, prefix) }

func (f *faults) overlap(key, name, prefix string, other JWT) {
	f.add(0, key+".claims."+name, "%s given: this issuer can name those of %s; allowed: a prefix that the other's does not begin with, such as \"corp:\", "+
		"or trusted: %s in this entry if the same name at either is meant to be the same one", quoted(prefix), quoted(other.Issuer), TrustedSame)
}
