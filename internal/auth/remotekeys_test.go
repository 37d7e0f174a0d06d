package auth

import (
	"context"
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/kubecast/kubecast/internal/auth/authtest"
)

// idp is an issuer without a network, for synctest bubbles.
type idp struct {
	mu      sync.Mutex
	answers map[string]func() (*http.Response, error) // by URL
	asked   map[string]int
}

const keysURL = "https://id.example.org/keys"

func newIDP() *idp {
	return &idp{answers: map[string]func() (*http.Response, error){}, asked: map[string]int{}}
}

func (i *idp) RoundTrip(req *http.Request) (*http.Response, error) {
	i.mu.Lock()
	answer := i.answers[req.URL.String()]
	i.asked[req.URL.String()]++
	i.mu.Unlock()
	if answer == nil {
		return nil, errors.New("connection refused")
	}
	resp, err := answer()
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// answer sets the answer at a URL; without status and body the issuer is away.
func (i *idp) answer(url string, status int, body []byte, header ...string) {
	i.set(url, func() (*http.Response, error) {
		rec := httptest.NewRecorder()
		for n := 0; n+1 < len(header); n += 2 {
			rec.Header().Set(header[n], header[n+1])
		}
		rec.WriteHeader(status)
		rec.Write(body)
		return rec.Result(), nil
	})
}

func (i *idp) set(url string, answer func() (*http.Response, error)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answers[url] = answer
}

func (i *idp) away() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.answers)
}

func (i *idp) count(url string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[url]
}

func (i *idp) authenticator(t *testing.T, jwksURL string) *Authenticator {
	t.Helper()
	a, err := New(Options{Transport: i, Issuers: []Issuer{{Issuer: testIssuer, Audiences: []string{"kubecast"}, JWKSURL: jwksURL, Claims: usual}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func tokenOf(t *testing.T, kid any, key crypto.Signer) string {
	t.Helper()
	return sign(t, jwt.SigningMethodES256, key, goodClaims(map[string]any{"exp": time.Now().Add(1000 * time.Hour).Unix()}), map[string]any{"kid": kid})
}

func TestRotatedKeyIsFetchedWhenItsFirstTokenComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idp := newIDP()
		idp.answer(keysURL, 200, jwks(jwk(t, "old", ecKey, nil)))
		a := idp.authenticator(t, keysURL)
		authtest.Run(t, a.Run)
		if _, err := a.Authenticate(t.Context(), tokenOf(t, "old", ecKey)); err != nil {
			t.Fatalf("before Run has fetched, requests wait: %v", err)
		}
		time.Sleep(time.Minute)

		idp.answer(keysURL, 200, jwks(jwk(t, "old", ecKey, nil), jwk(t, "new", otherKey, nil)))
		start := time.Now()
		if _, err := a.Authenticate(t.Context(), tokenOf(t, "new", otherKey)); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Authenticate(t.Context(), tokenOf(t, "old", ecKey)); err != nil {
			t.Fatal(err)
		}
		if n := idp.count(keysURL); n != 2 || time.Since(start) > 0 {
			t.Errorf("%d fetches, waited %v", n, time.Since(start))
		}

		// A key that the issuer withdrew is refused at the latest after the next refresh.
		idp.answer(keysURL, 200, jwks(jwk(t, "new", otherKey, nil)))
		time.Sleep(refreshEvery)
		if _, err := a.Authenticate(t.Context(), tokenOf(t, "old", ecKey)); !errors.Is(err, ErrBadToken) {
			t.Errorf("a withdrawn key: %v", err)
		}
	})
}

func TestRotatedKeysWithoutIDAreFetchedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idp := newIDP()
		idp.answer(keysURL, 200, jwks(jwk(t, "", ecKey, nil)))
		a := idp.authenticator(t, keysURL)
		authtest.Run(t, a.Run)
		if _, err := a.Authenticate(t.Context(), tokenOf(t, nil, ecKey)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		idp.answer(keysURL, 200, jwks(jwk(t, "", otherKey, nil)))
		if _, err := a.Authenticate(t.Context(), tokenOf(t, nil, otherKey)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestKnownKeysOutliveTheIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idp := newIDP()
		idp.answer(keysURL, 200, jwks(jwk(t, "a", ecKey, nil)))
		a := idp.authenticator(t, keysURL)
		authtest.Run(t, a.Run)
		time.Sleep(time.Second)
		for name, broken := range map[string]func(){
			"away":       idp.away,
			"500":        func() { idp.answer(keysURL, 500, jwks(jwk(t, "evil", otherKey, nil))) },
			"empty":      func() { idp.answer(keysURL, 200, jwks()) },
			"a web page": func() { idp.answer(keysURL, 200, []byte("<html>")) },
			"endless": func() {
				idp.answer(keysURL, 200, append(jwks(jwk(t, "evil", otherKey, nil)), make([]byte, 1<<20)...))
			},
			"elsewhere":  func() { idp.answer(keysURL, 302, nil, "Location", "http://evil.example/keys") },
			"in circles": func() { idp.answer(keysURL, 302, nil, "Location", keysURL) },
		} {
			broken()
			time.Sleep(time.Hour)
			if _, err := a.Authenticate(t.Context(), tokenOf(t, "a", ecKey)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := a.Authenticate(t.Context(), tokenOf(t, "evil", otherKey)); !errors.Is(err, ErrBadToken) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := idp.count("http://evil.example/keys"); n > 0 {
			t.Errorf("keys asked for over http, %d times", n)
		}
	})
}

func TestIssuerThatIsAwayAtTheStartIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idp := newIDP()
		a := idp.authenticator(t, keysURL)

		start := time.Now()
		if _, err := a.Authenticate(t.Context(), tokenOf(t, "a", ecKey)); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrBadToken) {
			t.Errorf("before Run: %v", err)
		}
		if waited := time.Since(start); waited != waitAtMost {
			t.Errorf("waited %v for a Run that never came", waited)
		}

		authtest.Run(t, a.Run)
		time.Sleep(90 * time.Second)
		start = time.Now()
		for range 100 {
			if _, err := a.Authenticate(t.Context(), tokenOf(t, "a", ecKey)); !errors.Is(err, ErrUnavailable) {
				t.Errorf("while away: %v", err)
			}
		}
		if waited := time.Since(start); waited > waitAtMost {
			t.Errorf("requests are held up: %v", waited)
		}
		if n := idp.count(keysURL); n < 5 || n > 10 {
			t.Errorf("%d tries in 90 s", n)
		}
		idp.answer(keysURL, 200, jwks(jwk(t, "a", ecKey, nil)))
		time.Sleep(lastRetry)
		if _, err := a.Authenticate(t.Context(), tokenOf(t, "a", ecKey)); err != nil {
			t.Errorf("back again: %v", err)
		}
	})
}

func TestForgedKeyIDsNeitherFloodTheIssuerNorHoldOthersUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idp := newIDP()
		body := jwks(jwk(t, "a", ecKey, nil))
		slow := func() (*http.Response, error) {
			time.Sleep(2 * time.Second)
			rec := httptest.NewRecorder()
			rec.Write(body)
			return rec.Result(), nil
		}
		idp.set(keysURL, slow)
		a := idp.authenticator(t, keysURL)
		authtest.Run(t, a.Run)
		time.Sleep(time.Minute)
		before := idp.count(keysURL)

		good := tokenOf(t, "a", ecKey)
		forged := tokenOf(t, "x", otherKey)
		var wg sync.WaitGroup
		start := time.Now()
		for n := range 50 {
			wg.Go(func() {
				for i := 0; time.Since(start) < time.Minute; i++ {
					began := time.Now()
					header := fmt.Sprintf(`{"alg":"ES256","kid":"%d-%d"}`, n, i)
					_, err := a.Authenticate(t.Context(), base64.RawURLEncoding.EncodeToString([]byte(header))+forged[strings.IndexByte(forged, '.'):])
					if !errors.Is(err, ErrBadToken) {
						t.Errorf("forged: %v", err)
					}
					if d := time.Since(began); d > waitAtMost {
						t.Errorf("a forged token waited %v", d)
					}
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		for time.Since(start) < time.Minute {
			began := time.Now()
			if _, err := a.Authenticate(t.Context(), good); err != nil {
				t.Error(err)
			}
			if d := time.Since(began); d > 0 {
				t.Errorf("a good token waited %v", d)
			}
			time.Sleep(time.Second)
		}
		wg.Wait()
		if n := idp.count(keysURL) - before; n < 4 || n > 7 {
			t.Errorf("%d fetches in a minute of forged tokens", n)
		}
	})
}

func TestCallerWhoGoesAwayDoesNotWaitForKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newIDP().authenticator(t, keysURL)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := a.Authenticate(ctx, tokenOf(t, "a", ecKey)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrBadToken) {
			t.Error(err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("waited %v", d)
		}
	})
}

func TestDiscoveryIsBelievedAboutItsOwnIssuerOnly(t *testing.T) {
	const where = testIssuer + "/.well-known/openid-configuration"
	for name, c := range map[string]struct {
		doc string
		ok  bool
	}{
		"good":                  {`{"issuer":"` + testIssuer + `","jwks_uri":"` + keysURL + `"}`, true},
		"of another issuer":     {`{"issuer":"https://evil.example","jwks_uri":"` + keysURL + `"}`, false},
		"with a slash":          {`{"issuer":"` + testIssuer + `/","jwks_uri":"` + keysURL + `"}`, false},
		"keys over http":        {`{"issuer":"` + testIssuer + `","jwks_uri":"http://id.example.org/keys"}`, false},
		"keys in a file":        {`{"issuer":"` + testIssuer + `","jwks_uri":"file:///etc/keys"}`, false},
		"without keys":          {`{"issuer":"` + testIssuer + `"}`, false},
		"something else":        {`<html>`, false},
		"keys at another place": {`{"issuer":"` + testIssuer + `","jwks_uri":"https://cdn.example/keys"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				idp := newIDP()
				idp.answer(where, 200, []byte(c.doc))
				for _, url := range []string{keysURL, "http://id.example.org/keys", "https://cdn.example/keys"} {
					idp.answer(url, 200, jwks(jwk(t, "a", ecKey, nil)))
				}
				a := idp.authenticator(t, "")
				authtest.Run(t, a.Run)
				_, err := a.Authenticate(t.Context(), tokenOf(t, "a", ecKey))
				if c.ok != (err == nil) || !c.ok && !errors.Is(err, ErrUnavailable) {
					t.Error(err)
				}
			})
		})
	}
}

// Here the connections are real, so that goleak sees what they leave behind.
func TestKeysOverRealConnectionsLeaveNothingBehind(t *testing.T) {
	var mu sync.Mutex
	keys := jwks(jwk(t, "a", ecKey, nil))
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, server.URL, server.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Write(keys)
	})
	a, err := New(Options{Issuers: []Issuer{{Issuer: server.URL, Audiences: []string{"kubecast"}, Claims: usual}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	authtest.Run(t, a.Run)
	token := func(kid string, key crypto.Signer) string {
		return sign(t, jwt.SigningMethodES256, key, goodClaims(map[string]any{"iss": server.URL}), map[string]any{"kid": kid})
	}
	good, forged := token("a", ecKey), token("b", otherKey)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := a.Authenticate(t.Context(), good); err != nil {
					t.Error(err)
				}
				if _, err := a.Authenticate(t.Context(), forged); !errors.Is(err, ErrBadToken) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
