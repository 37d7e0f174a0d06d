// Package session lets browsers keep identities, sealed so that only the gateway can read or make them: sessions in
// cookies, and tickets in URLs, each for one request. The gateway remembers only the tickets that were used, until
// they expire.
//
// A session or ticket is worth no more than the token with which it began. That is checked each time that it is
// opened (Confirmer). The package serves no HTTP: its callers choose the names of cookies, and when they are sent.
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
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// Purpose separates sealed texts: one that is sealed for a purpose cannot be opened for another.
type Purpose string

// The purposes. This package seals sessions and tickets. Package oidc seals what a browser keeps of a login, and for
// the renewal of a session.
const (
	purposeSession Purpose = "kubecast session v1"
	purposeTicket  Purpose = "kubecast ticket v1"

	PurposeLogin   Purpose = "kubecast login v1"
	PurposeRenewal Purpose = "kubecast renewal v1"
)

// KeySize is the size of a Sealer's key.
const KeySize = 32

// maxSealed bounds the texts that are opened, in bytes: more than a browser's cookie takes.
const maxSealed = 8 << 10

// Sealer encrypts values that the gateway gives to browsers and gets back, so that only gateways can read or make
// them. It uses AES-256-GCM, with a key for each purpose that HKDF derives. Replicas that share a key can open each
// other's texts. Its methods may be called concurrently.
type Sealer struct {
	keys atomic.Pointer[[]*sealingKey] // the first one seals, all open
}

// sealingKey is a key for all purposes.
type sealingKey struct {
	key   []byte
	seals map[Purpose]cipher.AEAD
	// retired is a key that Replace has replaced. It opens as long as anybody comes with something that it has sealed.
	retired bool
	opened  atomic.Int64 // when it was retired, or opened something after that, in seconds since 1970
}

// retiredFor is for how long a retired key opens since it was of use last. By then who has a session has one that
// another key has sealed, or has to sign in anew.
const retiredFor = auth.RenewalTime

func (k *sealingKey) isOver(now time.Time) bool {
	return k.retired && now.Sub(time.Unix(k.opened.Load(), 0)) > retiredFor
}

// NewSealer returns a Sealer for keys of KeySize. The first key seals. The others only open, so that a key can be
// replaced.
func NewSealer(keys ...[]byte) (*Sealer, error) {
	made, err := sealingKeys(keys)
	if err != nil {
		return nil, err
	}
	s := &Sealer{}
	s.keys.Store(&made)
	return s, nil
}

// Replace makes ready to seal with other keys, for use to put them to use. Those of before that are not among them
// then still open what they have sealed, until a day has passed without. Only one Replace may be under way.
func (s *Sealer) Replace(keys ...[]byte) (use func(), err error) {
	made, err := sealingKeys(keys)
	if err != nil {
		return nil, err
	}
	return func() {
		now := time.Now()
		for _, k := range *s.keys.Load() {
			if k.isOver(now) || slices.ContainsFunc(made, func(other *sealingKey) bool { return bytes.Equal(other.key, k.key) }) {
				continue
			}
			old := &sealingKey{key: k.key, seals: k.seals, retired: true}
			if old.opened.Store(now.Unix()); k.retired {
				old.opened.Store(k.opened.Load())
			}
			made = append(made, old)
		}
		s.keys.Store(&made)
	}, nil
}

func sealingKeys(keys [][]byte) (made []*sealingKey, err error) {
	if len(keys) == 0 {
		return nil, errors.New("no key")
	}
	for i, key := range keys {
		if len(key) != KeySize {
			return nil, fmt.Errorf("key %d has %d bytes; allowed: %d", i+1, len(key), KeySize)
		}
		k := &sealingKey{key: key, seals: map[Purpose]cipher.AEAD{}}
		for _, p := range []Purpose{purposeSession, purposeTicket, PurposeLogin, PurposeRenewal} {
			derived, err := hkdf.Key(sha256.New, key, nil, string(p), KeySize)
			if err != nil {
				return nil, err
			}
			block, err := aes.NewCipher(derived)
			if err != nil {
				return nil, err
			}
			if k.seals[p], err = cipher.NewGCMWithRandomNonce(block); err != nil {
				return nil, err
			}
		}
		made = append(made, k)
	}
	return made, nil
}

// RandomKey returns a key for a single gateway: what is sealed with it cannot be opened by other replicas, nor after
// a restart.
func RandomKey() []byte {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // never fails
	return key
}

// ReadKeys reads keys from a file, one a line, in base64.
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

// Seal returns a text that needs no escapes in cookies and queries.
func (s *Sealer) Seal(p Purpose, value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	packed, err := pack(data)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString((*s.keys.Load())[0].seals[p].Seal(nil, nil, packed, nil)), nil
}

// packFrom is the size from which on data is compressed, in bytes, so that more fits into a cookie. Smaller data is
// left as it is, since decompression costs each request more than decryption.
const packFrom = 2 << 10

// pack compresses data from packFrom on. A byte before the result says whether it is compressed.
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
	// Only data that the gateway itself sealed is unpacked, so its size needs no bound.
	return io.ReadAll(flate.NewReader(bytes.NewReader(packed[1:])))
}

// errNotSealed means that a text was not sealed for this purpose with a known key.
var errNotSealed = errors.New("not sealed by this gateway, or with a key that it does not know any more")

// Open decrypts a text that was sealed for the same purpose into value. The text may come from anyone.
func (s *Sealer) Open(p Purpose, text string, value any) error {
	if len(text) > maxSealed {
		return fmt.Errorf("%d bytes, more than %d", len(text), maxSealed)
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return errNotSealed
	}
	now := time.Now()
	for _, k := range *s.keys.Load() {
		if k.isOver(now) {
			continue
		}
		packed, err := k.seals[p].Open(nil, nil, sealed, nil)
		if err != nil {
			continue
		}
		if k.retired {
			k.opened.Store(now.Unix())
		}
		data, err := unpack(packed)
		if err != nil {
			return err
		}
		return json.Unmarshal(data, value)
	}
	return errNotSealed
}
