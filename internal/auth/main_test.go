package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"maps"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/auth/authtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The keys are made once, since making an RSA key takes a while.
var (
	rsaKey   = must(rsa.GenerateKey(rand.Reader, 2048))
	ecKey    = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	ec384Key = must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	ec521Key = must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	edKey    = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	otherKey = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

const testIssuer = "https://id.example.org"

// goodClaims returns the claims of a token that is accepted. Changes replace claims; a nil value removes one.
func goodClaims(changes ...map[string]any) jwt.MapClaims {
	claims := jwt.MapClaims{
		"iss":    testIssuer,
		"aud":    "kubecast",
		"sub":    "jane",
		"groups": []string{"team-a", "team-b"},
		"exp":    time.Now().Add(time.Hour).Unix(),
	}
	for _, c := range changes {
		maps.Copy(claims, c)
	}
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

// sign makes a token. Header replaces members of the usual header; a nil value removes one.
func sign(t testing.TB, method jwt.SigningMethod, key any, claims jwt.MapClaims, header map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	maps.Copy(token.Header, header)
	maps.DeleteFunc(token.Header, func(_ string, v any) bool { return v == nil })
	s, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fromFile returns an Authenticator for tokens of testIssuer that are signed with one of the keys.
func fromFile(t testing.TB, claims Claims, keys ...crypto.Signer) *Authenticator {
	t.Helper()
	a, err := New(Options{Issuers: []Issuer{{
		Issuer: testIssuer, Audiences: []string{"kubecast", "portal"}, PublicKeyFile: authtest.PublicFile(t, keys...), Claims: claims,
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var usual = Claims{Username: "sub", Groups: "groups"}
