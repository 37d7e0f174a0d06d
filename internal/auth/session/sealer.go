// Package session keeps identities in the hands of browsers, sealed so that nobody else can read or make them: sessions in cookies,
// and tickets in addresses, each for one request. The gateway remembers none of them but the tickets that were used, until they end.
//
// What a session or ticket is worth is asked each time that it is opened (Confirmer): no more than the token that it began with. The
// package serves no HTTP: how a cookie is called, and when it is sent, is its caller's business.
package session

import (
	"bytes"
	"compress/flate"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Purpose separates what is sealed: a text sealed for one cannot be opened as the other.
type Purpose string

// What is sealed: sessions and tickets by this package, and by package oidc what a browser keeps of a login, and to renew a session.
const (
	purposeSession Purpose = "kubecast session v1"
	purposeTicket  Purpose = "kubecast ticket v1"

	PurposeLogin   Purpose = "kubecast login v1"
	PurposeRenewal Purpose = "kubecast renewal v1"
)

// KeySize is the size of a Sealer's key.
const KeySize = 32

// maxSealed bounds what is opened: a browser's cookie, with room to spare.
const maxSealed = 8 << 10

// Sealer makes texts of what the gateway gives to browsers and gets back, which nobody else can read or make (AES-256-GCM, with
// a key for each purpose that HKDF derives). Replicas that share a key open each other's. Safe for concurrent use.
type Sealer struct {
	seals map[Purpose][]cipher.AEAD // the first seals, all open
}

// NewSealer is for keys of KeySize; the first seals, the others only open, so that a key can be replaced.
func NewSealer(keys ...[]byte) (*Sealer, error) {
	if len(keys) == 0 {
		return nil, errors.New("no key")
	}
	s := &Sealer{seals: map[Purpose][]cipher.AEAD{}}
	for i, key := range keys {
		if len(key) != KeySize {
			return nil, fmt.Errorf("key %d has %d bytes; allowed: %d", i+1, len(key), KeySize)
		}
		for _, p := range []Purpose{purposeSession, purposeTicket, PurposeLogin, PurposeRenewal} {
			derived, err := hkdf.Key(sha256.New, key, nil, string(p), KeySize)
			if err != nil {
				return nil, err
			}
			block, err := aes.NewCipher(derived)
			if err != nil {
				return nil, err
			}
			aead, err := cipher.NewGCMWithRandomNonce(block)
			if err != nil {
				return nil, err
			}
			s.seals[p] = append(s.seals[p], aead)
		}
	}
	return s, nil
}

// RandomKey is for a gateway alone: nobody else opens what it seals, nor does it itself after a restart.
func RandomKey() []byte {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // never fails
	return key
}

// ReadKeys reads keys from a file: each on a line of its own, in base64.
func ReadKeys(path string) (keys [][]byte, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Fields(string(data)) {
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != KeySize {
			return nil, fmt.Errorf("%s: key %d: allowed: %d random bytes in base64, as from openssl rand -base64 %d", path, i+1, KeySize, KeySize)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: no key; allowed: %d random bytes in base64", path, KeySize)
	}
	return keys, nil
}

// Seal makes a text of characters that stand in cookies and queries as they are.
func (s *Sealer) Seal(p Purpose, value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	packed, err := pack(data)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.seals[p][0].Seal(nil, nil, packed, nil)), nil
}

// packFrom is the size from which on data is compressed, so that more fits into a cookie. To unpack costs each request
// more than to decrypt, so what is small is left as it is.
const packFrom = 2 << 10

// pack puts a byte before the data that says whether it is compressed.
func pack(data []byte) ([]byte, error) {
	if len(data) < packFrom {
		return append([]byte{0}, data...), nil
	}
	packed := bytes.NewBuffer([]byte{1})
	w, err := flate.NewWriter(packed, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func unpack(packed []byte) ([]byte, error) {
	switch {
	case len(packed) == 0:
		return nil, errNotSealed
	case packed[0] == 0:
		return packed[1:], nil
	}
	// What was sealed here is what is unpacked, so its size needs no bound.
	return io.ReadAll(flate.NewReader(bytes.NewReader(packed[1:])))
}

// errNotSealed: the text was not sealed for this purpose with a key that is known.
var errNotSealed = errors.New("not sealed by this gateway, or with a key that it does not know any more")

// Open reads what was sealed for the same purpose into value, which may be anybody's text.
func (s *Sealer) Open(p Purpose, text string, value any) error {
	if len(text) > maxSealed {
		return fmt.Errorf("%d bytes, more than %d", len(text), maxSealed)
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return errNotSealed
	}
	for _, aead := range s.seals[p] {
		packed, err := aead.Open(nil, nil, sealed, nil)
		if err != nil {
			continue
		}
		data, err := unpack(packed)
		if err != nil {
			return err
		}
		return json.Unmarshal(data, value)
	}
	return errNotSealed
}
