package authtest

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

// PublicPEM returns the public halves of keys, as an issuer's publicKeyFile has them.
func PublicPEM(t testing.TB, keys ...crypto.Signer) []byte {
	t.Helper()
	var data []byte
	for _, k := range keys {
		der, err := x509.MarshalPKIXPublicKey(k.Public())
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})...)
	}
	return data
}

// PublicFile writes a file with the public halves of keys, and returns its path.
func PublicFile(t testing.TB, keys ...crypto.Signer) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.pem")
	if err := os.WriteFile(path, PublicPEM(t, keys...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
