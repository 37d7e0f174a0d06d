package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/kubecast/kubecast/internal/auth/authtest"
)

var _ TokenReviewer = authenticationclient.TokenReviewInterface(nil)

const serviceAccount = "system:serviceaccount:team-a:bot"

// withServiceAccounts returns an Authenticator for tokens of testIssuer signed with ecKey, and for those of
// ServiceAccounts.
func withServiceAccounts(t testing.TB) (*Authenticator, *authtest.TokenReviewer) {
	t.Helper()
	f := &authtest.TokenReviewer{Status: authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{"kubecast"},
		User: authenticationv1.UserInfo{Username: serviceAccount, UID: "u", Groups: []string{"system:serviceaccounts", "system:authenticated"}},
	}}
	accounts := NewServiceAccounts([]string{"kubecast", "portal"})
	accounts.SetHome("main", f)
	a, err := New(Options{
		Issuers:         []Issuer{{Issuer: testIssuer, Audiences: []string{"kubecast"}, PublicKeyFile: authtest.PublicFile(t, ecKey), Claims: usual}},
		ServiceAccounts: accounts,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a, f
}

// What one cluster has said of a token does not count for another one that replaces it under the same name.
func TestServiceAccountsMoveWithTheDefaultCluster(t *testing.T) {
	accounts := NewServiceAccounts([]string{"kubecast"})
	token := accountToken(t)
	if _, err := accounts.review(t.Context(), token); !errors.Is(err, ErrUnavailable) {
		t.Errorf("before there is a cluster: %v", err)
	}
	_, good := withServiceAccounts(t)
	accounts.SetHome("main", good)
	if id, err := accounts.review(t.Context(), token); err != nil || id.Cluster != "main" {
		t.Errorf("%+v %v", id, err)
	}
	accounts.SetHome("main", &authtest.TokenReviewer{})
	if id, err := accounts.review(t.Context(), token); err == nil {
		t.Errorf("%+v", id)
	}
}

// accountToken is signed by a key that only the cluster knows.
func accountToken(t testing.TB, changes ...map[string]any) string {
	return sign(t, jwt.SigningMethodES256, otherKey, goodClaims(append([]map[string]any{
		{"iss": "https://kubernetes.default.svc", "sub": serviceAccount, "groups": nil},
	}, changes...)...), nil)
}

func TestServiceAccountIsWhomItsClusterSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f := withServiceAccounts(t)
		expires := time.Now().Add(time.Hour)
		token := accountToken(t, map[string]any{"exp": expires.Unix()})
		id, err := a.Authenticate(t.Context(), token)
		want := Identity{Username: serviceAccount, Groups: []string{"system:authenticated", "system:serviceaccounts"}, ExpiresAt: expires, Cluster: "main", Token: Secret(token)}
		if diff := cmp.Diff(want, id, cmpopts.IgnoreFields(Identity{}, "Claims")); err != nil || diff != "" || id.Claims["sub"] != serviceAccount {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff([]authenticationv1.TokenReviewSpec{{Token: token, Audiences: []string{"kubecast", "portal"}}}, f.Asked); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		// A good answer counts for a while, and not longer than the token.
		f.Set(func(f *authtest.TokenReviewer) { f.Status = authenticationv1.TokenReviewStatus{Error: "deleted"} })
		time.Sleep(9 * time.Second)
		if _, err := a.Authenticate(t.Context(), token); err != nil || f.Count() != 1 {
			t.Errorf("%v after %d questions", err, f.Count())
		}
		time.Sleep(time.Second + 1)
		for range 3 {
			if _, err := a.Authenticate(t.Context(), token); !errors.Is(err, ErrBadToken) || f.Count() != 2 {
				t.Errorf("%v after %d questions", err, f.Count())
			}
		}
		brief := accountToken(t, map[string]any{"exp": time.Now().Add(3 * time.Second).Unix()})
		_, _ = a.Authenticate(t.Context(), brief)
		time.Sleep(3 * time.Second)
		if _, err := a.Authenticate(t.Context(), brief); !errors.Is(err, ErrTokenExpired) || f.Count() != 3 {
			t.Errorf("%v after %d questions", err, f.Count())
		}
	})
}

// A token that does not look like a ServiceAccount's for the gateway costs the API server nothing.
func TestForeignTokensAreNotReviewed(t *testing.T) {
	a, f := withServiceAccounts(t)
	for name, token := range map[string]string{
		"another's":       accountToken(t, map[string]any{"sub": "jane"}),
		"a node's":        accountToken(t, map[string]any{"sub": "system:node:one"}),
		"for others":      accountToken(t, map[string]any{"aud": "https://kubernetes.default.svc"}),
		"for nobody":      accountToken(t, map[string]any{"aud": nil}),
		"without an end":  accountToken(t, map[string]any{"exp": nil}),
		"past":            accountToken(t, map[string]any{"exp": time.Now().Add(-time.Second).Unix()}),
		"our issuer's":    accountToken(t, map[string]any{"iss": testIssuer}),
		"no issuer's":     accountToken(t, map[string]any{"iss": nil}),
		"alg none":        sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, goodClaims(map[string]any{"iss": "x", "sub": serviceAccount}), nil),
		"garbage":         "garbage",
		"oversized":       accountToken(t, map[string]any{"pad": strings.Repeat("x", maxToken)}),
		"an end too late": accountToken(t, map[string]any{"exp": 1e300}),
	} {
		if id, err := a.Authenticate(t.Context(), token); !errors.Is(err, ErrBadToken) {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
	if f.Count() != 0 {
		t.Errorf("%d questions", f.Count())
	}
}

func TestDoubtfulReviewsLetNobodyIn(t *testing.T) {
	for name, change := range map[string]func(*authenticationv1.TokenReviewStatus){
		"not authenticated":  func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false },
		"without audiences":  func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil },
		"other audiences":    func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"api"} },
		"a user":             func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "admin" },
		"a controller":       func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:kube-scheduler" },
		"nobody":             func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "" },
		"only a like prefix": func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:serviceaccounts" },
	} {
		a, f := withServiceAccounts(t)
		change(&f.Status)
		if id, err := a.Authenticate(t.Context(), accountToken(t)); !errors.Is(err, ErrBadToken) || id.Username != "" {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
}

// If the API server does not answer, a token is not called bad, and nothing is remembered.
func TestReviewsThatFailAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f := withServiceAccounts(t)
		token := accountToken(t)
		for _, err := range []error{errors.New("away"), apierrors.NewForbidden(schema.GroupResource{Resource: "tokenreviews"}, "", errors.New("no"))} {
			f.Set(func(f *authtest.TokenReviewer) { f.Err = err })
			if id, got := a.Authenticate(t.Context(), token); !errors.Is(got, ErrUnavailable) || errors.Is(got, ErrBadToken) || id.Username != "" || !errors.Is(got, err) {
				t.Errorf("%v, %v", id, got)
			}
		}
		f.Set(func(f *authtest.TokenReviewer) { f.Err, f.Takes = nil, time.Hour })
		began := time.Now()
		if _, err := a.Authenticate(t.Context(), token); !errors.Is(err, ErrUnavailable) || time.Since(began) != reviewTimeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		f.Set(func(f *authtest.TokenReviewer) { f.Takes = 0 })
		if _, err := a.Authenticate(t.Context(), token); err != nil {
			t.Error(err)
		}
	})
}

// Forged tokens that look like ServiceAccounts' must not burden the API server. The same token several times at once
// is one question.
func TestReviewsAreBoundedAndShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f := withServiceAccounts(t)
		f.Takes = time.Second
		same := accountToken(t)
		var wg sync.WaitGroup
		for i := range 100 {
			forged := accountToken(t, map[string]any{"jti": fmt.Sprint(i)})
			wg.Go(func() { _, _ = a.Authenticate(t.Context(), forged) })
			wg.Go(func() { _, _ = a.Authenticate(t.Context(), same) })
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		wg.Go(func() {
			if _, err := a.Authenticate(gone, accountToken(t, map[string]any{"jti": "impatient"})); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		wg.Wait()
		time.Sleep(time.Minute)
		n := 0
		for _, spec := range f.Asked {
			if spec.Token == same {
				n++
			}
		}
		if f.Most > reviewTurns || n > 1 {
			t.Errorf("%d at once; the same %d times", f.Most, n)
		}
	})
}

// Strangers' tokens that look like a ServiceAccount's wait for each other. Good tokens do not wait for them.
func TestForgedAccountsDoNotKeepGoodOnesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f := withServiceAccounts(t)
		f.Takes = 100 * time.Millisecond
		old := accountToken(t, map[string]any{"jti": "used lately"})
		if _, err := a.Authenticate(From(t.Context(), named("stranger")), old); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * reviewedFor) // its answer is forgotten
		template := accountToken(t)
		var wg sync.WaitGroup
		for i := range 5000 {
			forged := template[:len(template)-7] + fmt.Sprintf("%06dA", i) // it could be a signature
			wg.Go(func() { _, _ = a.Authenticate(From(context.Background(), named("stranger")), forged) })
		}
		time.Sleep(time.Millisecond) // all of them wait, or were refused
		for name, c := range map[string]struct{ from, token string }{
			"new, from elsewhere":              {"office", template},
			"used lately, from the very place": {"stranger", old},
		} {
			began := time.Now()
			if _, err := a.Authenticate(From(t.Context(), named(c.from)), c.token); err != nil || time.Since(began) > 3*f.Takes {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
		}
		wg.Wait()
		if f.Most > reviewTurns {
			t.Errorf("%d at once", f.Most)
		}
		if most := 2 + int(reviewTimeout/f.Takes)*reviewTurns; f.Count() > most {
			t.Errorf("the API server was asked %d times", f.Count())
		}
	})
}

func named(network string) func() string { return func() string { return network } }
