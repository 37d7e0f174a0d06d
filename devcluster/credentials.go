package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"time"
)

// credentials are made anew by each "up". They stay the same when the API server is restarted, so that a client that
// has read the kubeconfig can come back.
type credentials struct {
	caPEM []byte
	token string // the cluster-admin's
}

// writeCredentials makes a certificate authority, the API server's certificate, the key that signs ServiceAccount
// tokens, and the token file, and writes them to the directory. The keys are on elliptic curves, because making an
// RSA key takes a noticeable part of a second.
func writeCredentials(d directory) (*credentials, error) {
	ca := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "devcluster-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	caKey, caDER, err := issue(ca, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making the certificate authority: %w", err)
	}
	serving := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
	}
	servingKey, servingDER, err := issue(serving, ca, caKey)
	if err != nil {
		return nil, fmt.Errorf("making the API server's certificate: %w", err)
	}
	signingKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the ServiceAccount key: %w", err)
	}
	c := &credentials{
		caPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		token: strings.ToLower(rand.Text()),
	}
	for name, content := range map[string][]byte{
		"ca.crt":              c.caPEM,
		"apiserver.crt":       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: servingDER}),
		"apiserver.key":       keyPEM(servingKey),
		"service-account.key": keyPEM(signingKey),
		"tokens.csv":          fmt.Appendf(nil, "%s,admin,admin,system:masters\n", c.token),
	} {
		if err := writeFile(d.pki(name), content); err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return c, nil
}

// issue makes a key and a certificate for it. The parent signs it; without a parent it is self-signed. It fills in
// the serial number and the time of validity.
func issue(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(1, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	return key, der, err
}

func keyPEM(key *ecdsa.PrivateKey) []byte {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		panic(err) // cannot be: it is a P-256 key made above
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// kubeconfig returns the text of a kubeconfig for the cluster-admin.
func (c *credentials) kubeconfig(port int) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: devcluster
  cluster:
    server: https://127.0.0.1:%d
    certificate-authority-data: %s
users:
- name: admin
  user:
    token: %s
contexts:
- name: devcluster
  context: {cluster: devcluster, user: admin}
current-context: devcluster
`, port, base64.StdEncoding.EncodeToString(c.caPEM), c.token)
}
