package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"sync"

	"github.com/go-jose/go-jose/v4"
)

// keys sign the tokens that Dex issues. They are replaced when a test wants it, and not every six hours like Dex's
// own. The algorithm is RS256, since at a logout Dex accepts ID token hints of no other.
type keys struct {
	mu      sync.Mutex
	signing jose.JSONWebKey
	public  []*jose.JSONWebKey // the newest first; tokens of the older ones stay valid until they expire
	subject string             // the subject of the last token that was signed
}

func newKeys() (*keys, error) {
	k := &keys{}
	return k, k.rotate()
}

func (k *keys) rotate() error {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	id := rand.Text()[:8]
	k.mu.Lock()
	defer k.mu.Unlock()
	k.signing = jose.JSONWebKey{Key: private, KeyID: id, Algorithm: string(jose.RS256), Use: "sig"}
	k.public = append([]*jose.JSONWebKey{{Key: private.Public(), KeyID: id, Algorithm: string(jose.RS256), Use: "sig"}}, k.public...)
	return nil
}

// Sign implements signer.Signer, as do the methods that follow it.
func (k *keys) Sign(_ context.Context, payload []byte) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var claims struct {
		Subject string `json:"sub"`
	}
	if json.Unmarshal(payload, &claims) == nil && claims.Subject != "" {
		k.subject = claims.Subject
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: &k.signing}, &jose.SignerOptions{})
	if err != nil {
		return "", err
	}
	signed, err := s.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// lastSubject is the subject of the last token that was signed.
func (k *keys) lastSubject() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.subject
}

func (k *keys) ValidationKeys(context.Context) ([]*jose.JSONWebKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*jose.JSONWebKey{}, k.public...), nil
}

func (k *keys) Algorithm(context.Context) (jose.SignatureAlgorithm, error) { return jose.RS256, nil }

func (k *keys) Start(context.Context) {}
