//go:build linux

package main

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/internal/devtoken"
)

// files are those that the replicas read again when they change, as they were written last.
type files struct {
	dir, url string // of the API server
	turn     int    // counted from 1
	serial   *big.Int
	ops      string // the token of the ops listener
	user     string // a token of the issuer whose key is the newest
	cookies  string // the cookie keys, the newest first
}

func (f *files) path(name string) string { return filepath.Join(f.dir, name) }
func (f *files) signingKey() string      { return f.path(fmt.Sprintf("issuer-%d", f.turn)) }

// rotate writes all files anew.
func (f *files) rotate() (err error) {
	f.turn++
	if f.serial, err = gateway.WriteCertificate(f.path("tls.crt"), f.path("tls.key")); err != nil {
		return err
	}
	f.ops = fmt.Sprintf("0123456789abcdef-of-the-replicas-%d", f.turn)
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	f.cookies = base64.StdEncoding.EncodeToString(key) + "\n" + f.cookies
	f.user, err = devtoken.Sign(devtoken.Token{KeyFile: f.signingKey(), User: "jane", Issuer: "https://issuer.test", Audience: "kubecast", TTL: 24 * time.Hour})
	if err != nil {
		return err
	}
	public, err := os.ReadFile(f.signingKey() + ".pub")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"token": f.ops + "\n", "cookies": f.cookies, "issuer.pub": string(public)} {
		if err := os.WriteFile(f.path(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	// client-go takes no credentials to an API server without TLS, as the one here; that there are others is noticed all the same.
	return gateway.WriteKubeconfig(f.path("kubeconfig"), f.url, fmt.Sprintf("turn-%d", f.turn))
}

// anyCertificate asks a replica for itself, whose certificate is looked at afterwards.
var anyCertificate = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
}}

// applied makes sure that a replica uses what was written last.
func (f *files) applied(r *replica, since int64) error {
	response, err := ask(r.public, "/auth/me", f.user)
	switch {
	case err != nil:
		return err
	case response.code != http.StatusOK:
		return fmt.Errorf("a token of the issuer's new key: %d", response.code)
	case response.tls.PeerCertificates[0].SerialNumber.Cmp(f.serial) != 0:
		return fmt.Errorf("the certificate that is served has the number %s, not %s", response.tls.PeerCertificates[0].SerialNumber, f.serial)
	}
	metrics, err := ask(r.ops, "/metrics", f.ops)
	if err != nil || metrics.code != http.StatusOK {
		return fmt.Errorf("the new token of the ops listener: %d, %w", metrics.code, err)
	}
	for _, want := range []string{"kubecast_config_reload_successful 1", "kubecast_config_restart_needed 0", "kubecast_tls_certificate_reload_successful 1"} {
		if !bytes.Contains(metrics.body, []byte("\n"+want+"\n")) {
			return fmt.Errorf("its metrics do not say %s: %s", want, regexp.MustCompile(`(?m)^kubecast_(config|tls)_.*`).FindAll(metrics.body, -1))
		}
	}
	for what, line := range map[string]*regexp.Regexp{"the cookie keys": cookiesAreRead, "the kubeconfig": credentialsAreRead} {
		if said, err := r.says(since, line); err != nil || !said {
			return fmt.Errorf("its log does not say that %s was read again: %w", what, err)
		}
	}
	return nil
}

var cookiesAreRead = regexp.MustCompile(`msg="configuration was read again" changed=\S*auth\.cookieKeyFile`)

var credentialsAreRead = regexp.MustCompile(`msg="cluster has other credentials"`)

// logged is how long the log of a replica is.
func (r *replica) logged() (int64, error) {
	info, err := os.Stat(r.log)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// says reports whether a replica's log has a line since it was so long.
func (r *replica) says(since int64, line *regexp.Regexp) (bool, error) {
	text, err := os.ReadFile(r.log)
	if err != nil {
		return false, err
	}
	return line.Match(text[min(since, int64(len(text))):]), nil
}

// answer is what a replica answers.
type answer struct {
	code int
	tls  *tls.ConnectionState
	body []byte
}

// ask asks a replica at one of its addresses, with a token if one is given.
func ask(address, path, token string) (a answer, err error) {
	var failed error
	for _, scheme := range []string{"https", "http"} { // the ops listener has no TLS
		request, err := http.NewRequest(http.MethodGet, scheme+"://"+address+path, nil)
		if err != nil {
			return a, err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := anyCertificate.Do(request)
		if err != nil {
			failed = err
			continue
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		return answer{response.StatusCode, response.TLS, body}, err
	}
	return a, failed
}
