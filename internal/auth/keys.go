package auth

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

// algorithms are the signature algorithms with public keys (RFC 7518, RFC 8037).
var algorithms = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512",
	"ES256", "ES384", "ES512", "EdDSA",
}

// hmacAlgorithms are the signature algorithms with a shared secret, with the least size of the secret in bytes (RFC
// 7518, section 3.2). They are accepted only for a file that the configuration names as a secret, and for no key that
// is fetched or public.
var hmacAlgorithms = []struct {
	name string
	size int
}{{"HS256", 32}, {"HS384", 48}, {"HS512", 64}}

const (
	// maxKeys bounds a key set; issuers publish a few keys.
	maxKeys = 100
	// maxTries bounds the signature checks for one token, which need not name its key.
	maxTries = 16
)

// verificationKey is a key with the algorithms for which it may be used.
type verificationKey struct {
	id         string           // empty: its source does not name it
	public     crypto.PublicKey // or a []byte: a shared secret
	algorithms []string
}

// keySet is the set of one issuer's keys. It never changes.
type keySet []verificationKey

// has reports whether a key has that id. If so, it is not worth while to fetch the keys again.
func (s keySet) has(kid string) bool {
	return kid != "" && slices.ContainsFunc(s, func(k verificationKey) bool { return k.id == kid })
}

// fitting returns the keys that may have made a signature: they fit the algorithm, and have either that id or none.
// If the token names no key, any id will do.
func (s keySet) fitting(kid, alg string) (jwt.VerificationKeySet, error) {
	var set jwt.VerificationKeySet
	for _, k := range s {
		if (kid == "" || k.id == "" || k.id == kid) && slices.Contains(k.algorithms, alg) && len(set.Keys) < maxTries {
			set.Keys = append(set.Keys, k.public)
		}
	}
	if len(set.Keys) == 0 {
		return set, fmt.Errorf("no key of the issuer's fits kid %.100q and alg %s", kid, alg)
	}
	return set, nil
}

// newVerificationKey fixes the algorithms by the type of the key. The library checks a signature with whichever key
// it is given. It does not care, for example, that ES256 requires P-256.
func newVerificationKey(id string, public crypto.PublicKey) (verificationKey, error) {
	k := verificationKey{id: id, public: public}
	switch public := public.(type) {
	case *rsa.PublicKey:
		if n := public.N.BitLen(); n < 2048 || n > 8192 {
			return k, fmt.Errorf("RSA key of %d bits; allowed: 2048 to 8192", n)
		}
		if public.E < 3 || public.E%2 == 0 {
			return k, fmt.Errorf("RSA key with exponent %d", public.E)
		}
		k.algorithms = algorithms[:6]
	case *ecdsa.PublicKey:
		switch public.Curve {
		case elliptic.P256():
			k.algorithms = []string{"ES256"}
		case elliptic.P384():
			k.algorithms = []string{"ES384"}
		case elliptic.P521():
			k.algorithms = []string{"ES512"}
		default:
			return k, errors.New("EC key on a curve other than P-256, P-384 and P-521")
		}
	case ed25519.PublicKey:
		k.algorithms = []string{"EdDSA"}
	default:
		return k, fmt.Errorf("a %T; allowed: RSA, EC and Ed25519 public keys", public)
	}
	return k, nil
}

// parseJWKS reads a key set (RFC 7517). It skips keys that are not for verifying signatures, or that it does not
// understand, and names them in skipped. If none is left, that is an error.
func parseJWKS(data []byte) (keys keySet, skipped []error, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, nil, fmt.Errorf("read key set: %w", err)
	}
	for i, raw := range set.Keys {
		key, err := parseJWK(raw)
		if err == nil && len(keys) == maxKeys {
			err = fmt.Errorf("more than %d keys", maxKeys)
		}
		if err != nil {
			skipped = append(skipped, fmt.Errorf("key %d (kid %.100q): %w", i, key.id, err))
			continue
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, skipped, fmt.Errorf("key set of %d keys: none can be used: %w", len(set.Keys), errors.Join(skipped...))
	}
	return keys, skipped, nil
}

func parseJWK(raw []byte) (verificationKey, error) {
	var m jwkset.JWKMarshal
	if err := json.Unmarshal(raw, &m); err != nil {
		return verificationKey{}, err
	}
	bad := verificationKey{id: m.KID}
	switch {
	case m.D != "":
		return bad, errors.New("its private half is published: whoever reads it can sign")
	case m.USE != "" && m.USE != jwkset.UseSig:
		return bad, fmt.Errorf("use is %.20q, not sig", m.USE)
	case len(m.KEYOPS) > 0 && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify):
		return bad, errors.New("key_ops does not have verify")
	}
	// Only the key itself is read. It is trusted because of its source, and not because of a certificate beside it.
	material := jwkset.JWKMarshal{KTY: m.KTY, CRV: m.CRV, X: m.X, Y: m.Y, N: m.N, E: m.E}
	jwk, err := jwkset.NewJWKFromMarshal(material, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return bad, err
	}
	key, err := newVerificationKey(m.KID, jwk.Key())
	if err != nil || m.ALG == "" {
		return key, err
	}
	alg := string(m.ALG)
	if alg == "Ed25519" { // RFC 9864's name for EdDSA with Ed25519
		alg = "EdDSA"
	}
	if !slices.Contains(key.algorithms, alg) {
		return bad, fmt.Errorf("alg %.20q does not go with the key", m.ALG)
	}
	key.algorithms = []string{alg}
	return key, nil
}

// parsePEM reads public keys and certificates. Of a certificate only the key counts, and neither dates nor issuer.
// Anything else in the file is an error, since somebody meant it to be used.
func parsePEM(data []byte) (keySet, error) {
	var keys keySet
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		var public crypto.PublicKey
		var err error
		switch block.Type {
		case "PUBLIC KEY":
			public, err = x509.ParsePKIXPublicKey(block.Bytes)
		case "RSA PUBLIC KEY":
			public, err = x509.ParsePKCS1PublicKey(block.Bytes)
		case "CERTIFICATE":
			var cert *x509.Certificate
			if cert, err = x509.ParseCertificate(block.Bytes); err == nil {
				public = cert.PublicKey
			}
		case "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY":
			err = errors.New("a private key; give its public half")
		default:
			err = errors.New("allowed: PUBLIC KEY, CERTIFICATE")
		}
		var key verificationKey
		if err == nil {
			key, err = newVerificationKey("", public)
		}
		if err != nil {
			return nil, fmt.Errorf("PEM block %d (%s): %w", len(keys)+1, block.Type, err)
		}
		keys = append(keys, key)
	}
	switch {
	case len(keys) == 0:
		return nil, errors.New("no PEM block; allowed: PUBLIC KEY, CERTIFICATE")
	case len(keys) > maxTries:
		return nil, fmt.Errorf("%d keys; allowed: %d", len(keys), maxTries)
	}
	return keys, nil
}

// parseSecret reads a shared secret: the whole file, without line breaks at its end.
func parseSecret(data []byte) (keySet, error) {
	secret := bytes.Clone(bytes.TrimRight(data, "\r\n"))
	key := verificationKey{public: secret}
	for _, alg := range hmacAlgorithms {
		if len(secret) >= alg.size {
			key.algorithms = append(key.algorithms, alg.name)
		}
	}
	if len(key.algorithms) == 0 {
		return nil, fmt.Errorf("a secret of %d bytes; allowed: %d or more, chosen at random", len(secret), hmacAlgorithms[0].size)
	}
	if bytes.Contains(secret, []byte("-----BEGIN")) {
		// A public key is known to others, and anyone who knows the secret can sign.
		return nil, errors.New("PEM; allowed: a secret, which is no key's public half")
	}
	return keySet{key}, nil
}

// ParsePublicKeys reads a PublicKeyFile as an Authenticator does.
func ParsePublicKeys(pem []byte) (keys []crypto.PublicKey, err error) {
	known, err := parsePEM(pem)
	for _, key := range known {
		keys = append(keys, key.public)
	}
	return keys, err
}

// Algorithm is one that an Authenticator accepts with a key. An error says that it accepts none.
func Algorithm(public crypto.PublicKey) (string, error) {
	key, err := newVerificationKey("", public)
	if err != nil {
		return "", err
	}
	return key.algorithms[0], nil
}
