package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/kubecast/kubecast/internal/auth/authtest"
)

// jwk is the public half of a key in the form that issuers publish. Changes replace members; a nil value removes one.
func jwk(t testing.TB, kid string, key crypto.Signer, changes map[string]any) map[string]any {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	m := map[string]any{"kid": kid, "use": "sig"}
	switch public := key.Public().(type) {
	case *ecdsa.PublicKey:
		point, err := public.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		n := len(point) / 2
		m["kty"], m["crv"], m["x"], m["y"] = "EC", public.Curve.Params().Name, b64(point[1:n+1]), b64(point[n+1:])
	case *rsa.PublicKey:
		m["kty"], m["n"], m["e"] = "RSA", b64(public.N.Bytes()), b64(big.NewInt(int64(public.E)).Bytes())
	case ed25519.PublicKey:
		m["kty"], m["crv"], m["x"] = "OKP", "Ed25519", b64(public)
	}
	for name, v := range changes {
		m[name] = v
		if v == nil {
			delete(m, name)
		}
	}
	return m
}

func jwks(keys ...map[string]any) []byte {
	return must(json.Marshal(map[string]any{"keys": keys}))
}

func TestOnlyKeysThatVerifySignaturesAreUsed(t *testing.T) {
	weak := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: new(big.Int).Rsh(rsaKey.N, 1024), E: 65537}}
	cases := map[string]struct {
		key  map[string]any
		algs string // empty: refused
	}{
		"RSA":                    {jwk(t, "a", rsaKey, nil), "RS256 RS384 RS512 PS256 PS384 PS512"},
		"RSA pinned by the set":  {jwk(t, "a", rsaKey, map[string]any{"alg": "PS512"}), "PS512"},
		"P-256":                  {jwk(t, "a", ecKey, nil), "ES256"},
		"P-384":                  {jwk(t, "a", ec384Key, map[string]any{"use": nil}), "ES384"},
		"P-521":                  {jwk(t, "a", ec521Key, map[string]any{"key_ops": []string{"verify"}}), "ES512"},
		"Ed25519":                {jwk(t, "a", edKey, map[string]any{"alg": "EdDSA"}), "EdDSA"},
		"Ed25519's new name":     {jwk(t, "a", edKey, map[string]any{"alg": "Ed25519"}), "EdDSA"},
		"certificates unread":    {jwk(t, "a", ecKey, map[string]any{"x5u": "http://169.254.0.1/", "x5c": []string{"garbage"}, "x5t": "?"}), "ES256"},
		"symmetric":              {map[string]any{"kid": "a", "kty": "oct", "k": "c2VjcmV0", "use": "sig", "alg": "HS256"}, ""},
		"for encryption":         {jwk(t, "a", rsaKey, map[string]any{"use": "enc"}), ""},
		"for other operations":   {jwk(t, "a", ecKey, map[string]any{"key_ops": []string{"encrypt"}}), ""},
		"alg of another type":    {jwk(t, "a", ecKey, map[string]any{"alg": "RS256"}), ""},
		"alg of another curve":   {jwk(t, "a", ecKey, map[string]any{"alg": "ES384"}), ""},
		"alg HMAC":               {jwk(t, "a", rsaKey, map[string]any{"alg": "HS256"}), ""},
		"alg none":               {jwk(t, "a", rsaKey, map[string]any{"alg": "none"}), ""},
		"with its private half":  {jwk(t, "a", ecKey, map[string]any{"d": "c2VjcmV0"}), ""},
		"short RSA":              {jwk(t, "a", weak, nil), ""},
		"RSA with exponent 1":    {jwk(t, "a", rsaKey, map[string]any{"e": "AQ"}), ""},
		"point not on the curve": {jwk(t, "a", ecKey, map[string]any{"x": "AAAA"}), ""},
		"unknown type":           {map[string]any{"kid": "a", "kty": "AKP", "alg": "ML-DSA-44", "pub": "x"}, ""},
		"unknown curve":          {jwk(t, "a", ecKey, map[string]any{"crv": "secp256k1"}), ""},
		"X25519":                 {jwk(t, "a", edKey, map[string]any{"crv": "X25519"}), ""},
		"members of other types": {jwk(t, "a", ecKey, map[string]any{"x": 7}), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			// A bad key must not make the good ones unusable.
			keys, skipped, err := parseJWKS(jwks(c.key, jwk(t, "good", otherKey, nil)))
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(keys, func(k verificationKey) bool { return k.id == "a" })
			if c.algs == "" {
				if i >= 0 || len(skipped) != 1 {
					t.Fatalf("keys %v, skipped %v", keys, skipped)
				}
				return
			}
			if i < 0 || strings.Join(keys[i].algorithms, " ") != c.algs {
				t.Fatalf("keys %v, skipped %v", keys, skipped)
			}
		})
	}
}

func TestKeySetWithoutUsableKeyIsAnError(t *testing.T) {
	for _, data := range []string{``, `null`, `{}`, `[]`, `{"keys":[]}`, `{"keys":[null, 7, {}]}`, `{"keys":{"a":1}}`, `<html>`} {
		if keys, _, err := parseJWKS([]byte(data)); err == nil {
			t.Errorf("%s: %v", data, keys)
		}
	}
	many := make([]map[string]any, maxKeys+5)
	for i := range many {
		many[i] = jwk(t, "", ecKey, nil)
	}
	keys, skipped, err := parseJWKS(jwks(many...))
	if err != nil || len(keys) != maxKeys || len(skipped) != 5 {
		t.Errorf("%d keys, %d skipped, %v", len(keys), len(skipped), err)
	}
	if set, err := keys.fitting("", "ES256"); err != nil || len(set.Keys) != maxTries {
		t.Errorf("one token may cost %d signatures", len(set.Keys))
	}
}

func TestKeyFileHoldsPublicKeysAndCertificatesOnly(t *testing.T) {
	block := func(typ string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der}))
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1, 0)}
	certificate := block("CERTIFICATE", must(x509.CreateCertificate(rand.Reader, template, template, ecKey.Public(), ecKey)))
	pub := string(authtest.PublicPEM(t, ecKey))

	for name, data := range map[string]string{
		"two":            pub + string(authtest.PublicPEM(t, rsaKey)),
		"a certificate":  certificate,
		"both, and text": "# comment\n" + certificate + "\n" + pub,
		"PKCS1":          block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&rsaKey.PublicKey)),
	} {
		if _, err := parsePEM([]byte(data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, data := range map[string]string{
		"no PEM block":              "ssh-ed25519 AAAA",
		"a private key; give":       pub + block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(ecKey))),
		"allowed: PUBLIC KEY":       block("CERTIFICATE REQUEST", []byte("x")),
		"block 2 (PUBLIC KEY): asn": pub + block("PUBLIC KEY", []byte("x")),
		"17 keys; allowed: 16":      strings.Repeat(pub, 17),
		"on a curve other than":     string(authtest.PublicPEM(t, must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)))),
	} {
		if _, err := parsePEM([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

func TestChangedKeyFileIsReadAndABrokenOneIsNot(t *testing.T) {
	path := authtest.PublicFile(t, ecKey)
	write := func(data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		a, err := New(Options{Issuers: []Issuer{{Issuer: testIssuer, Audiences: []string{"kubecast"}, PublicKeyFile: path, Claims: usual}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		authtest.Run(t, a.Run)
		knows := func(key *ecdsa.PrivateKey) bool {
			_, err := a.Authenticate(t.Context(), sign(t, jwt.SigningMethodES256, key, goodClaims(), nil))
			if err != nil && !errors.Is(err, ErrBadToken) {
				t.Error(err)
			}
			return err == nil
		}
		write(authtest.PublicPEM(t, otherKey))
		time.Sleep(rereadEvery + time.Second)
		if knows(ecKey) || !knows(otherKey) {
			t.Error("the changed file is not in use")
		}
		write([]byte("half a fi"))
		time.Sleep(rereadEvery)
		if !knows(otherKey) {
			t.Error("a broken file took the keys away")
		}
		write(authtest.PublicPEM(t, ecKey, otherKey))
		time.Sleep(rereadEvery)
		if !knows(ecKey) || !knows(otherKey) {
			t.Error("the repaired file is not in use")
		}
	})
}
