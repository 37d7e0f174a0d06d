package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// signer is one secret: it makes one signature of the webhook-signature header.
type signer func(content []byte) string

// readSecrets reads the text of a secret file. The errors name the line, and show nothing of it.
func readSecrets(text string) ([]signer, error) {
	var signers []signer
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		number := i + 1
		line := strings.TrimSpace(lines[i])
		if strings.HasPrefix(line, "-----BEGIN ") {
			for i+1 < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[i]), "-----END ") {
				i++
				line += "\n" + strings.TrimSpace(lines[i])
			}
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := readSecret(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		signers = append(signers, s)
	}
	if len(signers) == 0 {
		return nil, errors.New("has no secret")
	}
	return signers, nil
}

// readSecret reads one secret: whsec_… is the key of an HMAC-SHA256, whsk_… and PEM are private ed25519 keys.
func readSecret(text string) (signer, error) {
	if encoded, ok := strings.CutPrefix(text, "whsec_"); ok {
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) < 24 || len(key) > 64 {
			return nil, errors.New("whsec_ must be followed by the base64 of 24 to 64 bytes")
		}
		return func(content []byte) string {
			mac := hmac.New(sha256.New, key)
			mac.Write(content)
			return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		}, nil
	}
	var private ed25519.PrivateKey
	if encoded, ok := strings.CutPrefix(text, "whsk_"); ok {
		key, err := base64.StdEncoding.DecodeString(encoded)
		switch {
		case err == nil && len(key) == ed25519.SeedSize:
			private = ed25519.NewKeyFromSeed(key)
		case err == nil && len(key) == ed25519.PrivateKeySize && string(ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])) == string(key):
			private = key
		default:
			return nil, errors.New("whsk_ must be followed by the base64 of an ed25519 key: its seed, alone or with the public key behind it")
		}
	} else {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, errors.New("is none of whsec_…, whsk_… and a private key in PEM")
		}
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if private, ok = key.(ed25519.PrivateKey); err != nil || !ok {
			return nil, errors.New("is no private ed25519 key in PKCS #8")
		}
	}
	return func(content []byte) string {
		return "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(private, content))
	}, nil
}

// secrets are those of a file, which is read again when it may have changed.
type secrets struct {
	file string
	log  *slog.Logger

	mu      sync.Mutex
	read    time.Time // when the file was last read
	text    string    // what was in it then
	signers []signer  // of the last text that could be read
}

// rereadAfter is for how long a secret file is taken for unchanged.
const rereadAfter = time.Second

// newSecrets reads a file; "" has none.
func newSecrets(file string, log *slog.Logger) (*secrets, error) {
	s := &secrets{file: file, log: log}
	if file == "" {
		return s, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if s.signers, err = readSecrets(string(text)); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s.text, s.read = string(text), time.Now()
	return s, nil
}

// sign returns the signatures of a message. If the file cannot be read any more, the secrets are those that it had.
func (s *secrets) sign(id, timestamp string, body []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == "" {
		return ""
	}
	if now := time.Now(); now.Sub(s.read) >= rereadAfter {
		s.read = now
		s.reread()
	}
	content := append([]byte(id+"."+timestamp+"."), body...)
	var signatures []string
	for _, sign := range s.signers {
		signatures = append(signatures, sign(content))
	}
	return strings.Join(signatures, " ")
}

func (s *secrets) reread() {
	bytes, err := os.ReadFile(s.file)
	text := string(bytes)
	if err != nil {
		text = "\x00" + err.Error() // told once, as each text is
	}
	if text == s.text {
		return
	}
	s.text = text
	signers := s.signers
	if err == nil {
		signers, err = readSecrets(text)
	}
	if err != nil {
		s.log.Warn("the secrets of a webhook stay as they were", "file", s.file, "error", err)
		return
	}
	s.signers = signers
	s.log.Info("the secrets of a webhook have changed", "file", s.file, "secrets", len(signers))
}
