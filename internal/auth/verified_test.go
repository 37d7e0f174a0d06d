package auth

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Remembering tokens must not change which ones are accepted.
func TestVerifiedTokenIsNotBelievedLongerThanItsKeyOrItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fromFile(t, usual, ecKey)
		claims := goodClaims(map[string]any{"exp": time.Now().Add(time.Hour).Unix()})
		token := sign(t, jwt.SigningMethodES256, ecKey, claims, nil)
		for range 3 {
			if id, err := a.Authenticate(t.Context(), token); err != nil || id.Username != "jane" {
				t.Fatalf("%v, %v", id, err)
			}
		}
		if n := len(a.verified.tokens.Keys()); n != 1 {
			t.Errorf("%d tokens are remembered", n)
		}
		// One changed bit makes it another token.
		other := token[:len(token)-2] + "AA"
		if _, err := a.Authenticate(t.Context(), other); !errors.Is(err, ErrBadToken) {
			t.Errorf("a forged token: %v", err)
		}
		time.Sleep(time.Hour)
		if _, err := a.Authenticate(t.Context(), token); !errors.Is(err, ErrTokenExpired) {
			t.Errorf("an expired token: %v", err)
		}
	})
}

func TestVerifiedTokenEndsWithItsKey(t *testing.T) {
	a := fromFile(t, usual, ecKey)
	token := sign(t, jwt.SigningMethodES256, ecKey, goodClaims(), nil)
	if _, err := a.Authenticate(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	keys := a.issuer(testIssuer).keys.(*fileKeys)
	other, err := os.ReadFile(fromFile(t, usual, rsaKey).issuer(testIssuer).keys.(*fileKeys).path)
	if err != nil {
		t.Fatal(err)
	}
	set, err := parsePEM(other)
	if err != nil {
		t.Fatal(err)
	}
	keys.keys.Store(&set)
	if _, err := a.Authenticate(t.Context(), token); !errors.Is(err, ErrBadToken) {
		t.Errorf("the key is gone: %v", err)
	}
}

func TestMemoryOfVerifiedTokensIsBounded(t *testing.T) {
	v := newVerified()
	used := tokenDigest(sha256.Sum256([]byte("used")))
	iss := &issuer{keys: &fileKeys{}}
	set := keySet{{}}
	iss.keys.(*fileKeys).keys.Store(&set)
	token := verifiedToken{identity: Identity{Username: "jane", ExpiresAt: time.Now().Add(time.Hour)}, issuer: iss, keys: set}
	v.keep(used, token)
	for i := range 5 * maxVerified {
		v.keep(sha256.Sum256(fmt.Append(nil, i)), token)
		if _, ok := v.find(t.Context(), used, func(string) *issuer { return iss }); i%1000 == 0 && !ok {
			t.Fatalf("after %d others, one that is in use is forgotten", i)
		}
	}
	if n := len(v.tokens.Keys()); n > maxVerified {
		t.Errorf("%d are remembered", n)
	}
}
