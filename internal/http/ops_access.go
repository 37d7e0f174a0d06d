package http

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/balance"
)

var (
	errNoOpsToken  = errors.New("a bearer token of ops.tokenFile is needed")
	errForeignHost = errors.New("this listener is asked by its address, or as localhost: a page elsewhere can give it a name of its own")
	errNoOpsTokens = errors.New("this listener is not on loopback, so this is shown to holders of a token only, and ops.tokenFile names none")
)

// refuses says why a request may not see everything; nil: it may.
func (o OpsOptions) refuses(r *http.Request) error {
	if o.Tokens == nil {
		switch {
		case !o.Open:
			return errNoOpsTokens
		case !isAddress(r.Host):
			return errForeignHost
		}
		return nil
	}
	tokens, err := o.Tokens()
	if err != nil {
		return err
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return errNoOpsToken
	}
	sum, good := sha256.Sum256([]byte(strings.TrimSpace(given))), 0
	for _, token := range tokens {
		want := sha256.Sum256([]byte(token))
		good |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	if good == 0 {
		return errNoOpsToken
	}
	return nil
}

// guard passes on the requests that may see everything.
func (o OpsOptions) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch err := o.refuses(r); {
		case err == nil:
			next.ServeHTTP(w, r)
		case errors.Is(err, errNoOpsToken):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, err.Error(), http.StatusUnauthorized)
		case errors.Is(err, errNoOpsTokens), errors.Is(err, errForeignHost):
			http.Error(w, err.Error(), http.StatusForbidden)
		default: // the file's path and fault are not for callers
			http.Error(w, "ops.tokenFile cannot be read", http.StatusServiceUnavailable)
		}
	})
}

// load has a question for the load answered that is a replica's, or from who may see everything.
func (o OpsOptions) load(answer func(http.ResponseWriter, balance.Asker)) http.HandlerFunc {
	others := o.guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, balance.Asker{}) }))
	return func(w http.ResponseWriter, r *http.Request) {
		if o.Tokens != nil {
			tokens, err := o.Tokens()
			if by, is := balance.AskerOf(r, tokens, time.Now()); err == nil && is {
				answer(w, by)
				return
			}
		}
		others.ServeHTTP(w, r)
	}
}

// isAddress reports whether a host is an address, or localhost. Any other name may be an attacker's: a page whose
// name leads to loopback could read this listener by its visitor's browser (DNS rebinding).
func isAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")) != nil
}

// minOpsToken is the least length of a token, since attempts to guess one are not counted.
const minOpsToken = 16

// ReadOpsTokens reads tokens from a file, one a line.
func ReadOpsTokens(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	tokens := strings.Fields(string(data))
	for i, token := range tokens {
		if len(token) < minOpsToken {
			return nil, fmt.Errorf("%s: token %d: allowed: %d characters or more, as from openssl rand -hex 32", path, i+1, minOpsToken)
		}
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: no token; allowed: one a line, as from openssl rand -hex 32", path)
	}
	return tokens, nil
}
