package auth

import (
	"context"
	"crypto/sha256"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

// verified remembers good tokens, since checking a signature costs more than answering most requests. An entry counts
// until the token expires, and only while its issuer's keys are the very same. So a key that is withdrawn ends its
// tokens as if nothing were remembered. Tokens themselves are not kept, only their digests.
type verified struct {
	tokens *cache.LRUExpireCache // verifiedToken by tokenDigest
}

type tokenDigest [sha256.Size]byte

type verifiedToken struct {
	identity Identity
	issuer   *issuer
	keys     keySet // with which it was checked
}

// maxVerified is how many tokens are remembered.
const maxVerified = 8192

func newVerified() verified { return verified{cache.NewLRUExpireCache(maxVerified)} }

// find returns the identity of a token that was verified before, if its issuer is still the very same, too.
func (v verified) find(ctx context.Context, digest tokenDigest, issuerOf func(name string) *issuer) (Identity, bool) {
	found, ok := v.tokens.Get(digest)
	if !ok {
		return Identity{}, false
	}
	known := found.(verifiedToken)
	if !time.Now().Before(known.identity.ExpiresAt) || issuerOf(known.issuer.Issuer.Issuer) != known.issuer {
		return Identity{}, false
	}
	keys, err := known.issuer.keys.current(ctx)
	if err != nil || len(keys) == 0 || len(known.keys) == 0 || &keys[0] != &known.keys[0] {
		return Identity{}, false
	}
	return known.identity, true
}

func (v verified) keep(digest tokenDigest, token verifiedToken) {
	v.tokens.Add(digest, token, time.Until(token.identity.ExpiresAt))
}
