// Package devtoken signs tokens for demonstrations and tests with a key of one's own, as an issuer
// would whose publicKeyFile is the public half of that key. It makes the key where there is none,
// and never overwrites a file.
package devtoken

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/kubecast/kubecast/internal/auth"
)

// Token describes a token that is signed with a local key. Every field but Groups is required.
type Token struct {
	KeyFile  string // made if it does not exist, with its public half as KeyFile.pub
	User     string
	Groups   []string
	Issuer   string
	Audience string
	TTL      time.Duration
}

// Sign signs a token for demos and tests, as an issuer whose publicKeyFile is
// KeyFile.pub would. Neither file is ever overwritten; a missing KeyFile.pub is written again.
func Sign(opts Token) (string, error) {
	for name, value := range map[string]string{"KeyFile": opts.KeyFile, "User": opts.User, "Issuer": opts.Issuer, "Audience": opts.Audience} {
		if value == "" {
			return "", fmt.Errorf("development token: %s: required", name)
		}
	}
	if opts.TTL <= 0 {
		return "", fmt.Errorf("development token: TTL: %v given; allowed: more than 0", opts.TTL)
	}
	// The gateway would refuse such a token, so it is refused here.
	for _, name := range append([]string{opts.User}, opts.Groups...) {
		if err := auth.CheckName(name); err != nil {
			return "", fmt.Errorf("development token: %w", err)
		}
	}
	signer, public, err := developmentKey(opts.KeyFile)
	if err != nil {
		return "", fmt.Errorf("development token: %w", err)
	}
	algorithm, err := auth.Algorithm(signer.Public())
	if err != nil {
		return "", fmt.Errorf("development token: %s: %w", opts.KeyFile, err)
	}

	now := time.Now()
	claims := jwt.MapClaims{
		"iss": opts.Issuer,
		"sub": opts.User,
		"aud": opts.Audience,
		"iat": now.Unix(),
		"exp": now.Add(opts.TTL).Unix(),
	}
	if len(opts.Groups) > 0 {
		claims["groups"] = opts.Groups
	}
	token := jwt.NewWithClaims(jwt.GetSigningMethod(algorithm), claims)
	id := sha256.Sum256(public)
	token.Header["kid"] = base64.RawURLEncoding.EncodeToString(id[:12])
	signed, err := token.SignedString(signer)
	if err != nil {
		return "", fmt.Errorf("development token: %w", err)
	}
	return signed, nil
}

// developmentKey reads the key, or makes it, and makes sure that KeyFile.pub is its public half, which is also returned
// as DER.
func developmentKey(path string) (signer crypto.Signer, public []byte, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = makeDevelopmentKey(path)
	}
	if err != nil {
		return nil, nil, err
	}
	signer, err = parsePrivateKey(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is not overwritten: %w", path, err)
	}

	public, err = x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	pub := path + ".pub"
	err = writeNew(pub, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644)
	if !errors.Is(err, fs.ErrExist) {
		return signer, public, err
	}
	// A gateway with the public half of another key would refuse the token, and could not say why.
	if data, err = os.ReadFile(pub); err != nil {
		return nil, nil, err
	}
	keys, err := auth.ParsePublicKeys(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is not overwritten: %w", pub, err)
	}
	for _, k := range keys {
		if known, ok := k.(interface{ Equal(crypto.PublicKey) bool }); ok && known.Equal(signer.Public()) {
			return signer, public, nil
		}
	}
	return nil, nil, fmt.Errorf("%s is not overwritten: it is the public half of another key than %s", pub, path)
}

// makeDevelopmentKey makes the file, or reads one that another process made in the meantime.
func makeDevelopmentKey(path string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := writeNew(path, data, 0o600); errors.Is(err, fs.ErrExist) {
		return os.ReadFile(path)
	} else if err != nil {
		return nil, err
	}
	return data, nil
}

// writeNew makes a file that exists either completely or not at all, and never replaces one. It links the finished
// file, since renaming would replace an existing one.
func writeNew(path string, data []byte, mode fs.FileMode) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

func parsePrivateKey(data []byte) (crypto.Signer, error) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return nil, errors.New("it holds no private key in PEM")
		}
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		default: // such as openssl's EC PARAMETERS
			continue
		}
		if err != nil {
			return nil, err
		}
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
}
