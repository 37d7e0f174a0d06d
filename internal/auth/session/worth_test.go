package session

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/authtest"
)

const (
	testIssuer = "https://id.example.org"
	bot        = "system:serviceaccount:team-a:bot"
)

var signer = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))

// issuer returns the issuer whose tokens signer signs.
func issuer(t *testing.T) auth.Issuer {
	t.Helper()
	return auth.Issuer{
		Issuer: testIssuer, Audiences: []string{"kubecast"}, Claims: auth.Claims{Username: "sub", Groups: "groups"},
		PublicKeyFile: authtest.PublicFile(t, signer),
	}
}

// token returns a token that lasts an hour, with changes.
func token(t *testing.T, issuer, subject string, changes map[string]any) string {
	t.Helper()
	claims := jwt.MapClaims{"iss": issuer, "aud": "kubecast", "sub": subject, "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(claims, changes)
	return must(jwt.NewWithClaims(jwt.SigningMethodES256, claims).SignedString(signer))
}

// followed runs a replica's revocations in a synctest bubble.
func followed(t *testing.T, f *authtest.ConfigMaps) *auth.Revocations {
	t.Helper()
	r := auth.NewRevocations(auth.RevocationOptions{ConfigMap: "revoked", Keep: 48 * time.Hour})
	r.SetHome(f, f.Answers)
	authtest.Run(t, r.Run)
	synctest.Wait()
	return r
}

// A ServiceAccount's session is worth as much as its token: nothing once the cluster says so, and nothing in another
// cluster.
func TestServiceAccountsSessionIsWorthItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &authtest.TokenReviewer{Status: authenticationv1.TokenReviewStatus{
			Authenticated: true, Audiences: []string{"kubecast"},
			User: authenticationv1.UserInfo{Username: bot, UID: "u", Groups: []string{"system:serviceaccounts", "system:authenticated"}},
		}}
		accounts := auth.NewServiceAccounts([]string{"kubecast"})
		accounts.SetHome("main", f)
		a, err := auth.New(auth.Options{Issuers: []auth.Issuer{issuer(t)}, ServiceAccounts: accounts}, nil)
		if err != nil {
			t.Fatal(err)
		}
		sessions := NewSessions(mustSealer(t, keyA), a)
		tickets := NewTickets(sessions)
		bearer := token(t, "https://kubernetes.default.svc", bot, map[string]any{"exp": time.Now().Add(365 * 24 * time.Hour).Unix()})
		id, err := a.Authenticate(t.Context(), bearer)
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprintf("%v %+v %#v", id, id, id); strings.Contains(text, bearer[:40]) {
			t.Errorf("the token is printed: %s", text)
		}
		cookie := must(sessions.Seal(id))
		issue := func() string {
			text, _, err := tickets.Issue(id, "/")
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		again, err := sessions.Open(t.Context(), cookie)
		if err != nil || again.Username != id.Username || again.Cluster != "main" || !again.ExpiresAt.Equal(id.ExpiresAt) || f.Count() != 1 {
			t.Errorf("%+v, %v, %d questions", again, err, f.Count())
		}
		// Earlier versions sealed what the cluster had said.
		kept := id
		kept.Token = ""
		if id, err := sessions.Open(t.Context(), must(sessions.Seal(kept))); !errors.Is(err, auth.ErrBadToken) {
			t.Errorf("without its token: %+v, %v", id, err)
		}
		// What the cluster says now counts, the groups included.
		f.Set(func(f *authtest.TokenReviewer) { f.Status.User.Groups = []string{"system:serviceaccounts", "new"} })
		time.Sleep(11 * time.Second)
		if again, err := sessions.Open(t.Context(), cookie); err != nil || again.Groups[0] != "new" {
			t.Errorf("%+v, %v", again, err)
		}
		// While the cluster is away, it is not known.
		f.Set(func(f *authtest.TokenReviewer) { f.Err = errors.New("away") })
		time.Sleep(11 * time.Second)
		if _, err := sessions.Open(t.Context(), cookie); !errors.Is(err, auth.ErrUnavailable) || errors.Is(err, auth.ErrBadToken) {
			t.Error(err)
		}
		// The ServiceAccount is deleted.
		f.Set(func(f *authtest.TokenReviewer) { f.Err, f.Status.Authenticated = nil, false })
		if _, err := sessions.Open(t.Context(), cookie); !errors.Is(err, auth.ErrBadToken) {
			t.Error(err)
		}
		if _, err := tickets.Redeem(t.Context(), issue(), "/"); !errors.Is(err, auth.ErrBadToken) {
			t.Error(err)
		}
		// Another cluster takes the name, and does not know the token.
		f.Set(func(f *authtest.TokenReviewer) { f.Status.Authenticated = true })
		time.Sleep(11 * time.Second)
		if _, err := sessions.Open(t.Context(), cookie); err != nil {
			t.Error(err)
		}
		accounts.SetHome("main", &authtest.TokenReviewer{})
		if id, err := sessions.Open(t.Context(), cookie); !errors.Is(err, auth.ErrBadToken) {
			t.Errorf("in another cluster of the name: %+v, %v", id, err)
		}
		if id, err := tickets.Redeem(t.Context(), issue(), "/"); !errors.Is(err, auth.ErrBadToken) {
			t.Errorf("in another cluster of the name: %+v, %v", id, err)
		}
	})
}

// An operator writes an entry with kubectl. Each replica refuses the user's tokens and sessions until the entry is
// removed.
func TestWhatAnOperatorRevokesIsRefusedEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &authtest.ConfigMaps{Data: map[string]string{}}
		replicas := []*auth.Revocations{followed(t, f), followed(t, f)}
		told := 0
		stop := replicas[0].Changes(func() { told++ })
		for _, r := range replicas {
			a, err := auth.New(auth.Options{Issuers: []auth.Issuer{issuer(t)}, Revocations: r}, nil)
			if err != nil {
				t.Fatal(err)
			}
			sessions := NewSessions(mustSealer(t, keyA), a)
			tickets := NewTickets(sessions)
			bearer := token(t, testIssuer, "jane", map[string]any{"iat": time.Now().Unix()})
			id, err := a.Authenticate(t.Context(), bearer)
			if err != nil {
				t.Fatal(err)
			}
			cookie := must(sessions.Seal(id))
			ticket, _, err := tickets.Issue(id, "/")
			if err != nil {
				t.Fatal(err)
			}
			f.Put("jane-lost-a-laptop", `{"username":"jane","before":"`+time.Now().UTC().Format(time.RFC3339)+`"}`)
			synctest.Wait() // no time passes
			if _, err := a.Authenticate(t.Context(), bearer); !errors.Is(err, auth.ErrBadToken) || !errors.Is(err, auth.ErrRevoked) {
				t.Errorf("the token: %v", err)
			}
			if _, err := sessions.Open(t.Context(), cookie); !errors.Is(err, auth.ErrBadToken) {
				t.Errorf("the session: %v", err)
			}
			if _, err := tickets.Redeem(t.Context(), ticket, "/"); !errors.Is(err, auth.ErrBadToken) {
				t.Errorf("the ticket: %v", err)
			}
			time.Sleep(time.Second)
			if _, err := a.Authenticate(t.Context(), token(t, testIssuer, "jane", map[string]any{"iat": time.Now().Unix()})); err != nil {
				t.Errorf("a new token: %v", err)
			}
			f.Put("jane-lost-a-laptop", `{"username":"joe"}`)
			synctest.Wait()
			if _, err := sessions.Open(t.Context(), cookie); err != nil {
				t.Errorf("the entry was taken out: %v", err)
			}
		}
		if told != 4 {
			t.Errorf("told %d times", told)
		}
		stop()
		// Entries that cannot be understood have no effect on the others.
		f.Put("nonsense", "jane")
		f.Put("more", `{"username":"jane"}`)
		synctest.Wait()
		if err := replicas[1].Check(auth.Identity{Username: "jane"}); !errors.Is(err, auth.ErrRevoked) {
			t.Error(err)
		}
	})
}
