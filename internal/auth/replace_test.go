package auth

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/kubecast/kubecast/internal/auth/authtest"
)

// TestIssuersAreReplacedWhileItRuns: one that stays keeps its keys and is not asked again, one that
// goes is refused at once, and one that comes is let in. What cannot be used changes nothing.
func TestIssuersAreReplacedWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newIDP()
		provider.answer(keysURL, 200, jwks(jwk(t, "", ecKey, nil)))
		remote := Issuer{Issuer: "https://other.example.org", Audiences: []string{"kubecast"}, JWKSURL: keysURL, Claims: usual}
		file := Issuer{Issuer: testIssuer, Audiences: []string{"kubecast"}, PublicKeyFile: authtest.PublicFile(t, rsaKey), Claims: usual}
		a, err := New(Options{Issuers: []Issuer{remote}, Transport: provider}, nil)
		if err != nil {
			t.Fatal(err)
		}
		authtest.Run(t, a.Run)
		claims := goodClaims()
		claims["iss"] = remote.Issuer
		ofRemote := sign(t, jwt.SigningMethodES256, ecKey, claims, nil)
		ofFile := sign(t, jwt.SigningMethodRS256, rsaKey, goodClaims(), nil)
		expect := func(when string, remoteIn, fileIn, anonymousIn bool) {
			t.Helper()
			for _, one := range []struct {
				what, token string
				in          bool
			}{{"remote", ofRemote, remoteIn}, {"file", ofFile, fileIn}, {"anonymous", "", anonymousIn}} {
				_, err := a.Authenticate(t.Context(), one.token)
				if (err == nil) != one.in || !one.in && one.token != "" && !errors.Is(err, ErrBadToken) {
					t.Errorf("%s, %s: %v", when, one.what, err)
				}
			}
		}
		replace := func(anonymous bool, issuers ...Issuer) {
			t.Helper()
			use, err := a.Replace(anonymous, issuers)
			if err != nil {
				t.Fatal(err)
			}
			use()
		}
		expect("at first", true, false, false)
		replace(true, remote, file)
		expect("with one more", true, true, true)
		if n := provider.count(keysURL); n != 1 {
			t.Errorf("the keys of the issuer that stayed were fetched %d times", n)
		}
		bad := file
		bad.PublicKeyFile += ".not"
		if _, err := a.Replace(false, []Issuer{bad}); err == nil {
			t.Error("a file that is not there was taken")
		}
		if _, err := a.Replace(false, []Issuer{file, file}); err == nil {
			t.Error("an issuer was taken twice")
		}
		expect("after what cannot be used", true, true, true)
		replace(false, file)
		expect("without the remote one", false, true, false)
		time.Sleep(24 * time.Hour)
		if n := provider.count(keysURL); n != 1 {
			t.Errorf("an issuer that is gone is asked: %d times", n)
		}
		other := remote
		other.Audiences = []string{"somebody else"}
		claims["exp"] = time.Now().Add(time.Hour).Unix()
		ofRemote = sign(t, jwt.SigningMethodES256, ecKey, claims, nil)
		replace(false, other)
		expect("with another audience", false, false, false)
		replace(false, remote)
		expect("as at first", true, false, false)
	})
}
