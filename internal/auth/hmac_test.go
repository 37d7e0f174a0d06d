package auth

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kubecast/kubecast/internal/auth/authtest"
)

var secret = bytes.Repeat([]byte("0123456789abcdef"), 4)

func writeFile(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A shared secret verifies only the tokens of the issuer for which it was configured.
func TestSharedSecretIsItsIssuersOnly(t *testing.T) {
	a, err := New(Options{Issuers: []Issuer{
		{Issuer: testIssuer, Audiences: []string{"kubecast"}, PublicKeyFile: authtest.PublicFile(t, ecKey), Claims: usual},
		{Issuer: "legacy", Audiences: []string{"kubecast"}, HMACKeyFile: writeFile(t, append(bytes.Clone(secret), '\n')), Claims: usual},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	legacy := goodClaims(map[string]any{"iss": "legacy"})
	for name, c := range map[string]struct {
		token string
		good  bool
	}{
		"HS256":                     {sign(t, jwt.SigningMethodHS256, secret, legacy, nil), true},
		"HS384":                     {sign(t, jwt.SigningMethodHS384, secret, legacy, nil), true},
		"HS512":                     {sign(t, jwt.SigningMethodHS512, secret, legacy, nil), true},
		"with its line break":       {sign(t, jwt.SigningMethodHS256, append(bytes.Clone(secret), '\n'), legacy, nil), false},
		"another secret":            {sign(t, jwt.SigningMethodHS256, secret[1:], legacy, nil), false},
		"nothing":                   {sign(t, jwt.SigningMethodHS256, []byte{}, legacy, nil), false},
		"none":                      {sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, legacy, nil), false},
		"a key of another":          {sign(t, jwt.SigningMethodES256, ecKey, legacy, nil), false},
		"the secret for another":    {sign(t, jwt.SigningMethodHS256, secret, goodClaims(), nil), false},
		"the other's public half":   {sign(t, jwt.SigningMethodHS256, authtest.PublicPEM(t, ecKey), goodClaims(), nil), false},
		"a public half as a secret": {sign(t, jwt.SigningMethodHS256, authtest.PublicPEM(t, ecKey), legacy, nil), false},
	} {
		if id, err := a.Authenticate(t.Context(), c.token); (err == nil) != c.good || !c.good && !errors.Is(err, ErrBadToken) {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
}

func TestSecretsThatAreNoneAreRefused(t *testing.T) {
	for want, data := range map[string][]byte{
		"a secret of 31 bytes": secret[:31],
		"a secret of 0 bytes":  []byte("\n\n"),
		"PEM":                  authtest.PublicPEM(t, rsaKey),
	} {
		_, err := New(Options{Issuers: []Issuer{{Issuer: "x", Audiences: []string{"a"}, HMACKeyFile: writeFile(t, data), Claims: usual}}}, nil)
		if err == nil || !strings.Contains(err.Error(), "HMACKeyFile") || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	short, err := New(Options{Issuers: []Issuer{{Issuer: "x", Audiences: []string{"kubecast"}, HMACKeyFile: writeFile(t, secret[:32]), Claims: usual}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for method, good := range map[*jwt.SigningMethodHMAC]bool{jwt.SigningMethodHS256: true, jwt.SigningMethodHS384: false, jwt.SigningMethodHS512: false} {
		if _, err := short.Authenticate(t.Context(), sign(t, method, secret[:32], goodClaims(map[string]any{"iss": "x"}), nil)); (err == nil) != good {
			t.Errorf("%s with 32 bytes: %v", method.Name, err)
		}
	}
}

// An issuer whose certificate a private CA signed is accepted only with the CA's certificate.
func TestIssuerOfAPrivateAuthority(t *testing.T) {
	mux := http.NewServeMux()
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, server.URL, server.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(jwks(jwk(t, "a", ecKey, nil))) })
	ca := writeFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))

	token := sign(t, jwt.SigningMethodES256, ecKey, goodClaims(map[string]any{"iss": server.URL}), map[string]any{"kid": "a"})
	issuer := Issuer{Issuer: server.URL, Audiences: []string{"kubecast"}, CAFile: ca, Claims: usual}
	registry := prometheus.NewRegistry()
	a, err := New(Options{Issuers: []Issuer{issuer}, Registerer: registry}, nil)
	if err != nil {
		t.Fatal(err)
	}
	authtest.Run(t, a.Run)
	if _, err := a.Authenticate(t.Context(), token); err != nil {
		t.Error(err)
	}
	_, _ = a.Authenticate(t.Context(), "bad")
	_, _ = a.Authenticate(t.Context(), "")
	want := `# HELP kubecast_auth_issuer_keys Keys that are known of an issuer whose keys are fetched.
# TYPE kubecast_auth_issuer_keys gauge
kubecast_auth_issuer_keys{issuer="` + server.URL + `"} 1
# HELP kubecast_auth_requests_total Requests that were asked who sends them, by result: accepted, anonymous, none (no credentials), expired, revoked, invalid, unavailable (an issuer's keys were never fetched).
# TYPE kubecast_auth_requests_total counter
kubecast_auth_requests_total{result="accepted"} 1
kubecast_auth_requests_total{result="anonymous"} 0
kubecast_auth_requests_total{result="expired"} 0
kubecast_auth_requests_total{result="invalid"} 1
kubecast_auth_requests_total{result="none"} 1
kubecast_auth_requests_total{result="revoked"} 0
kubecast_auth_requests_total{result="unavailable"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "kubecast_auth_issuer_keys", "kubecast_auth_requests_total"); err != nil {
		t.Error(err)
	}

	issuer.CAFile = ""
	other, err := New(Options{Issuers: []Issuer{issuer}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	authtest.Run(t, other.Run)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := other.Authenticate(ctx, token); !errors.Is(err, ErrUnavailable) {
		t.Errorf("with the system's authorities: %v", err)
	}
	for want, bad := range map[string]string{"no such file": ca + ".not", "no certificate": authtest.PublicFile(t, ecKey)} {
		issuer.CAFile = bad
		if _, err := New(Options{Issuers: []Issuer{issuer}}, nil); err == nil || !strings.Contains(err.Error(), "CAFile") || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	issuer.CAFile, issuer.PublicKeyFile = ca, authtest.PublicFile(t, ecKey)
	if _, err := New(Options{Issuers: []Issuer{issuer}}, nil); err == nil || !strings.Contains(err.Error(), "nothing is fetched") {
		t.Error(err)
	}
}
