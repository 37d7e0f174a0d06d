package auth

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// verified remembers good tokens, since checking a signature costs more than answering most requests. An entry counts
// until the token expires, and only while its issuer's keys are the very same. So a key that is withdrawn ends its
// tokens as if nothing were remembered. Tokens themselves are not kept, only their digests.
type verified struct {
	mu         sync.Mutex
	young, old map[tokenDigest]verifiedToken
}

type tokenDigest [sha256.Size]byte

type verifiedToken struct {
	identity Identity
	issuer   *issuer
	keys     keySet // with which it was checked
}

// maxVerified is how many tokens are remembered at least; at most it is twice as many.
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

// add remembers a token. If there are too many, it forgets the older half.
func (v *verified) add(digest tokenDigest, token verifiedToken) {
	if v.young == nil || len(v.young) >= maxVerified {
		v.young, v.old = map[tokenDigest]verifiedToken{}, v.young
	}
	v.young[digest] = token
}
