package clients

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certificate is a self-signed certificate for loopback, in files.
type certificate struct {
	certFile, keyFile string
	bothFile          string // both in one file, as HAProxy wants them
	pool              *x509.CertPool
}

func newCertificate(t *testing.T, dir string) certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "ingress"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	c := certificate{
		certFile: filepath.Join(dir, "cert.pem"),
		keyFile:  filepath.Join(dir, "key.pem"),
		bothFile: filepath.Join(dir, "both.pem"),
		pool:     x509.NewCertPool(),
	}
	c.pool.AppendCertsFromPEM(certPEM)
	for file, content := range map[string][]byte{c.certFile: certPEM, c.keyFile: keyPEM, c.bothFile: append(certPEM, keyPEM...)} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// client returns a client that speaks HTTP/2 over TLS, or only HTTP/1.1.
func (c certificate) client(http2 bool) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: c.pool},
		Protocols:       protocols,
	}}
}

// ingress is a proxy in front of the gateway.
type ingress struct {
	plain  string // URL without TLS
	secure string // URL with TLS, HTTP/1.1 and HTTP/2
}

// route is a way to the gateway.
type route struct {
	name   string
	url    string
	client *http.Client
	proto  string
}

// routesThrough returns the ways through an ingress.
func (i ingress) routesThrough(name string, c certificate) []route {
	return []route{
		{name + ", HTTP/1.1", i.secure, c.client(false), "HTTP/1.1"},
		{name + ", HTTP/2", i.secure, c.client(true), "HTTP/2.0"},
	}
}

func (g *gateway) direct() route { return route{"direct", g.url(), &http.Client{}, "HTTP/1.1"} }

// waitListening waits until a server listens at an address.
func waitListening(t *testing.T, address string) {
	t.Helper()
	eventually(t, fmt.Sprintf("somebody listens at %s", address), func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}
