package devtoken

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/authtest"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func developmentToken(path string) Token {
	return Token{KeyFile: path, User: "jane", Groups: []string{"team-a"}, Issuer: "https://kubecast.local", Audience: "kubecast", TTL: time.Hour}
}

func accepts(t *testing.T, pub, token string) bool {
	t.Helper()
	a, err := auth.New(auth.Options{Issuers: []auth.Issuer{{Issuer: "https://kubecast.local", Audiences: []string{"kubecast"}, PublicKeyFile: pub, Claims: auth.Claims{Username: "sub", Groups: "groups"}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := a.Authenticate(t.Context(), token)
	if err == nil && (id.Username != "jane" || !slices.Equal(id.Groups, []string{"team-a", "system:authenticated"}) || time.Until(id.ExpiresAt) > time.Hour) {
		t.Errorf("identity %+v", id)
	}
	return err == nil
}

func TestDevelopmentTokenIsAcceptedWithItsPublicHalf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dev.key")
	first, err := Sign(developmentToken(path))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	before, _ := os.ReadFile(path)
	second, err := Sign(developmentToken(path))
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("the key was made anew")
	}
	if !accepts(t, path+".pub", first) || !accepts(t, path+".pub", second) {
		t.Error("not accepted")
	}

	if err := os.Remove(path + ".pub"); err != nil {
		t.Fatal(err)
	}
	if _, err := Sign(developmentToken(path)); err != nil {
		t.Fatal(err)
	}
	if !accepts(t, path+".pub", first) {
		t.Error("the public half was not written again")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

func TestKeysOfOtherToolsSignToo(t *testing.T) {
	for name, data := range map[string][]byte{
		"openssl ecparam": append([]byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"),
			pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: must(x509.MarshalECPrivateKey(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))))})...),
		"openssl genrsa": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(must(rsa.GenerateKey(rand.Reader, 2048)))}),
		"ed25519":        pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))))}),
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		token, err := Sign(developmentToken(path))
		if err != nil || !accepts(t, path+".pub", token) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFilesThatAreSomethingElseAreNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	diary := filepath.Join(dir, "diary")
	if err := os.WriteFile(diary, []byte("dear diary"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Sign(developmentToken(diary))
	if err == nil || !strings.Contains(err.Error(), diary+" is not overwritten: it holds no private key") {
		t.Error(err)
	}
	if data, _ := os.ReadFile(diary); string(data) != "dear diary" {
		t.Errorf("now it says %q", data)
	}
	if _, err := os.Stat(diary + ".pub"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a public half of nothing")
	}

	key := filepath.Join(dir, "key")
	if _, err := Sign(developmentToken(key)); err != nil {
		t.Fatal(err)
	}
	for says, data := range map[string][]byte{
		"no PEM block":                   []byte("ssh-ed25519 AAAA"),
		"is the public half of another ": authtest.PublicPEM(t, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))),
	} {
		if err := os.WriteFile(key+".pub", data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Sign(developmentToken(key)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %s, got %v", says, err)
		}
		if after, _ := os.ReadFile(key + ".pub"); string(after) != string(data) {
			t.Error("the public file was overwritten")
		}
	}
	if _, err := Sign(developmentToken(filepath.Join(dir, "not", "there"))); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Sign(developmentToken(dir)); err == nil {
		t.Error("a directory is a key")
	}
}

func TestManyWhoNeedTheFirstKeyMakeOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dev.key")
	tokens := make([]string, 16)
	var wg sync.WaitGroup
	for i := range tokens {
		wg.Go(func() {
			var err error
			if tokens[i], err = Sign(developmentToken(path)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, token := range tokens {
		if !accepts(t, path+".pub", token) {
			t.Error("signed with a key that is gone")
		}
	}
}

func TestDevelopmentTokenThatWouldBeRefusedIsNotSigned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dev.key")
	for says, change := range map[string]func(*Token){
		"User: required":     func(d *Token) { d.User = "" },
		"KeyFile: required":  func(d *Token) { d.KeyFile = "" },
		"Issuer: required":   func(d *Token) { d.Issuer = "" },
		"Audience: required": func(d *Token) { d.Audience = "" },
		"TTL: 0s given":      func(d *Token) { d.TTL = 0 },
		`"system:masters"`:   func(d *Token) { d.Groups = []string{"a", "system:masters"} },
		`"system:admin"`:     func(d *Token) { d.User = "system:admin" },
	} {
		opts := developmentToken(path)
		change(&opts)
		if _, err := Sign(opts); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %s, got %v", says, err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a key was made for a token that is not signed")
	}
}
