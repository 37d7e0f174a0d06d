package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Revocation ends sessions and tokens before their time: those of a user, of a subject of an issuer, or of one
// session at an issuer. It is one entry in the ConfigMap that replicas share.
type Revocation struct {
	// Username is the name as in the cluster's bindings. In place of it, an entry may have Issuer with Subject, with
	// Session, or with both, which are the claims iss, sub and sid. With both, it ends that session, and also all
	// tokens of the subject that name no session.
	Username string `json:"username,omitzero"`
	Issuer   string `json:"issuer,omitzero"`
	Subject  string `json:"subject,omitzero"`
	Session  string `json:"session,omitzero"`
	// Before limits the entry to what began at that second or earlier. Zero means no limit, so that the user is
	// barred. Tokens that do not say when they began are revoked, too. A Session is revoked whenever it began.
	Before time.Time `json:"before,omitzero"`
	// Until is when the entry is forgotten; zero: some time after Before, or never without a Before.
	Until time.Time `json:"until,omitzero"`
}

// maxRevocation bounds the text of an entry, in bytes.
const maxRevocation = 4 << 10

// parseRevocation reads an entry. An unknown field is an error, since the entry would not end what was meant.
func parseRevocation(text string, keep time.Duration) (r Revocation, err error) {
	if len(text) > maxRevocation {
		return r, fmt.Errorf("%d bytes, more than %d", len(text), maxRevocation)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return r, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("more than one JSON object")
	}
	named := r.Issuer != "" && r.Subject+r.Session != ""
	switch {
	case r.Username != "" && r.Issuer+r.Subject+r.Session != "", r.Username == "" && !named:
		return r, errors.New("allowed: username; or issuer, with subject or session or both")
	case r.Until.IsZero() && !r.Before.IsZero():
		r.Until = r.Before.Add(keep)
	}
	return r, nil
}

func (r Revocation) String() string {
	text, _ := json.Marshal(r) // never fails
	return string(text)
}

func (r Revocation) over(now time.Time) bool { return !r.Until.IsZero() && !now.Before(r.Until) }

// covers reports whether the entry's Before includes something that began at a time.
func (r Revocation) covers(begun time.Time) bool {
	return r.Before.IsZero() || begun.IsZero() || !begun.After(r.Before)
}

// revocationIndex finds the entries that may concern an identity.
type revocationIndex map[revocationKey][]Revocation

// revocationKey is one way to name what is revoked.
type revocationKey struct{ issuer, subject, session, username string }

func (x revocationIndex) add(r Revocation) {
	put := func(k revocationKey) { x[k] = append(x[k], r) }
	if r.Username != "" {
		put(revocationKey{username: r.Username})
	}
	if r.Session != "" {
		put(revocationKey{issuer: r.Issuer, session: r.Session})
	}
	if r.Subject != "" {
		put(revocationKey{issuer: r.Issuer, subject: r.Subject})
	}
}

// find returns an entry that ends the token or session of an identity.
func (x revocationIndex) find(id Identity, now time.Time) (Revocation, bool) {
	if len(x) == 0 || id.Anonymous {
		return Revocation{}, false
	}
	issuer, subject := textOf(id.Claims["iss"]), textOf(id.Claims["sub"])
	first := func(k revocationKey, ends func(Revocation) bool) (Revocation, bool) {
		for _, r := range x[k] {
			if !r.over(now) && ends(r) {
				return r, true
			}
		}
		return Revocation{}, false
	}
	begun := func(r Revocation) bool { return r.covers(id.Begun) }
	if r, found := first(revocationKey{username: id.Username}, begun); found {
		return r, true
	}
	if id.Session != "" {
		if r, found := first(revocationKey{issuer: issuer, session: id.Session}, func(Revocation) bool { return true }); found {
			return r, true
		}
	}
	return first(revocationKey{issuer: issuer, subject: subject}, func(r Revocation) bool {
		return (r.Session == "" || id.Session == "") && r.covers(id.Begun)
	})
}
