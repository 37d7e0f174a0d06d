package config

import (
	"fmt"
	"strings"
	"testing"
)

// That "alice" of one issuer has the permissions of "alice" of another must be intended, and not just have been
// overlooked.
func TestSameNameAtTwoIssuersIsNoAccident(t *testing.T) {
	issuer := func(name, more string) string {
		return fmt.Sprintf("{issuer: 'https://%s.example', audiences: [kubecast]%s}", name, more)
	}
	claims := func(users, groups string) string {
		return fmt.Sprintf(", claims: {usernamePrefix: '%s', groupsPrefix: '%s'}", users, groups)
	}
	const same = ", trusted: same"
	for name, c := range map[string]struct {
		issuers []string
		keys    []string // the keys at fault
	}{
		"one":                        {[]string{issuer("a", "")}, nil},
		"two without prefixes":       {[]string{issuer("a", ""), issuer("b", "")}, []string{"auth.jwt[0].claims.usernamePrefix", "auth.jwt[0].claims.groupsPrefix", "auth.jwt[1].claims.usernamePrefix", "auth.jwt[1].claims.groupsPrefix"}},
		"both meant":                 {[]string{issuer("a", same), issuer("b", same)}, nil},
		"only one meant":             {[]string{issuer("a", same), issuer("b", "")}, []string{"auth.jwt[1].claims.usernamePrefix", "auth.jwt[1].claims.groupsPrefix"}},
		"prefixes":                   {[]string{issuer("a", claims("a:", "a:")), issuer("b", claims("b:", "b:"))}, nil},
		"the same prefix":            {[]string{issuer("a", claims("a:", "a:")), issuer("b", claims("a:", "b:"))}, []string{"auth.jwt[0].claims.usernamePrefix", "auth.jwt[1].claims.usernamePrefix"}},
		"one without":                {[]string{issuer("a", ""), issuer("b", claims("b:", "b:"))}, []string{"auth.jwt[0].claims.usernamePrefix", "auth.jwt[0].claims.groupsPrefix"}},
		"one without, and meant":     {[]string{issuer("a", same), issuer("b", claims("b:", "b:"))}, nil},
		"one begins the other":       {[]string{issuer("a", claims("corp", "a:")), issuer("b", claims("corporate:", "b:"))}, []string{"auth.jwt[0].claims.usernamePrefix"}},
		"users apart, groups not":    {[]string{issuer("a", claims("a:", "")), issuer("b", claims("b:", ""))}, []string{"auth.jwt[0].claims.groupsPrefix", "auth.jwt[1].claims.groupsPrefix"}},
		"no groups at one":           {[]string{issuer("a", ", claims: {usernamePrefix: 'a:', groups: ''}"), issuer("b", claims("b:", ""))}, nil},
		"something else":             {[]string{issuer("a", ", trusted: yes")}, []string{"auth.jwt[0].trusted"}},
		"the third names the others": {[]string{issuer("a", claims("a:", "a:")), issuer("b", claims("b:", "b:")), issuer("c", claims("", "c:"))}, []string{"auth.jwt[2].claims.usernamePrefix"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte("auth: {jwt: [" + strings.Join(c.issuers, ", ") + "]}"))
			if (err == nil) != (len(c.keys) == 0) {
				t.Fatal(err)
			}
			if err == nil {
				return
			}
			if told := strings.Count(err.Error(), "\n") + 1; told != len(c.keys) {
				t.Errorf("%d faults, not %d: %v", told, len(c.keys), err)
			}
			for _, key := range c.keys {
				if !strings.Contains(err.Error(), key+":") {
					t.Errorf("%s is not told: %v", key, err)
				}
			}
		})
	}
}

// An attacker on the way of plain HTTP can write the pages of such an origin, and those may use the users' sessions.
func TestPlainOriginsAreWarnedOf(t *testing.T) {
	c, err := Parse([]byte("auth: {anonymous: true}\ncors: {origins: ['http://portal.example.org', 'https://portal.example.org', 'http://localhost:5173', 'http://127.0.0.1:5173']}"))
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "http://portal.example.org") || !strings.Contains(w[0], "cors.origins") {
		t.Errorf("%q", w)
	}
}
