package auth

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// verified remembers which tokens were found good, since to check a signature costs more than to answer most requests.
// What is remembered holds only while its issuer's keys are the very same, and until the token ends: a key that is
// withdrawn ends its tokens as if nothing were remembered. Tokens themselves are not kept.
type verified struct {
	mu         sync.Mutex
	young, old map[tokenDigest]verifiedToken
}

type tokenDigest [sha256.Size]byte

type verifiedToken struct {
	identity Identity
	issuer   *issuer
	keys     keySet // that it was checked with
}

// maxVerified is how many are remembered at least, and half of how many at most.
const maxVerified = 4096

// find returns the identity of a token that was verified before.
func (v *verified) find(ctx context.Context, digest tokenDigest) (Identity, bool) {
	v.mu.Lock()
	known, ok := v.young[digest]
	if !ok {
		if known, ok = v.old[digest]; ok {
			v.add(digest, known)
		}
	}
	v.mu.Unlock()
	if !ok || !time.Now().Before(known.identity.ExpiresAt) {
		return Identity{}, false
	}
	keys, err := known.issuer.keys.current(ctx)
	if err != nil || len(keys) == 0 || len(known.keys) == 0 || &keys[0] != &known.keys[0] {
		return Identity{}, false
	}
	return known.identity, true
}

func (v *verified) keep(digest tokenDigest, token verifiedToken) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.add(digest, token)
}

// add forgets the older half when there are too many.
func (v *verified) add(digest tokenDigest, token verifiedToken) {
	if v.young == nil || len(v.young) >= maxVerified {
		v.young, v.old = map[tokenDigest]verifiedToken{}, v.young
	}
	v.young[digest] = token
}
