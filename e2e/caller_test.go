package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/e2e/process"
)

// tokens remembers signed tokens, since each costs the start of a process.
type tokens struct {
	mu     sync.Mutex
	signed map[string]string
}

// token signs a token with the development key.
func (s *stage) token(user string, groups ...string) (string, error) {
	return s.tokens.get(user+"/"+strings.Join(groups, "/"), func() (string, error) {
		return s.sign(user, groups, "--ttl", "6h") // `make soak` lasts long
	})
}

func (ts *tokens) get(name string, sign func() (string, error)) (string, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if token := ts.signed[name]; token != "" {
		return token, nil
	}
	token, err := sign()
	if err == nil {
		ts.signed[name] = token
	}
	return token, err
}

func (s *stage) sign(user string, groups []string, more ...string) (string, error) {
	args := append([]string{"token", "--key", s.key, "--user", user}, more...)
	for _, group := range groups {
		args = append(args, "--group", group)
	}
	p, err := process.Start(process.Options{Path: s.gateway, Args: args})
	if err != nil {
		return "", err
	}
	if p.ExitCode() != 0 {
		return "", fmt.Errorf("gateway token: %s", p.Stderr)
	}
	return strings.TrimSpace(p.Stdout.String()), nil
}

// viewer is the token of a user in the group that may see the whole cluster except Secrets.
func (s *stage) viewer(t *testing.T) string {
	t.Helper()
	// Each test has its own user, so that no test uses up the limits of another.
	token, err := s.token(strings.ToLower(t.Name()), "platform")
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// answer is the answer to a request.
type answer struct {
	code   int
	header http.Header
	body   string
}

// fetch makes one request.
func fetch(method, url string, header http.Header) (answer, error) {
	return fetchBy(http.DefaultClient, method, url, header)
}

func fetchBy(client *http.Client, method, url string, header http.Header) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return answer{}, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, errors.Join(err, response.Body.Close())
}

// get sends a GET to the gateway with a token.
func (g *gateway) get(t *testing.T, token, path string) answer {
	t.Helper()
	a, err := fetchBy(g.client, http.MethodGet, g.url+path, bearer(token))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func bearer(token string) http.Header {
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return header
}

// eventuallyWithin is how long a step may take that takes a second on an idle machine.
const eventuallyWithin = 60 * time.Second

// loadWithin is how long all of a load may take, while one step comes after the other.
const loadWithin = 5 * eventuallyWithin

// advancing waits until the check of a load succeeds, while what is counted of it grows.
func advancing(t *testing.T, what string, count func() (int, error), check func() error) {
	t.Helper()
	harness.Advancing(t, what, eventuallyWithin, loadWithin, count, check)
}

// eventually waits until the check succeeds.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	harness.Eventually(t, what, eventuallyWithin, check)
}
