package auth

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/kubecast/kubecast/internal/auth/authtest"
)

// Whoever may make service accounts in a namespace (Kubernetes' role edit) would be as many users as they like.
func TestServiceAccountsOfANamespacePayTogether(t *testing.T) {
	account := func(name, cluster string) string {
		return Identity{Username: "system:serviceaccount:" + name, Cluster: cluster}.QuotaOwner()
	}
	one := account("team-a:one", "east")
	if two := account("team-a:two", "east"); one != two {
		t.Errorf("%q and %q pay each for themselves", one, two)
	}
	others := map[string]string{
		"another namespace":   account("team-b:one", "east"),
		"a longer name":       account("team-a-b:one", "east"),
		"another cluster":     account("team-a:one", "west"),
		"a user":              Identity{Username: "team-a"}.QuotaOwner(),
		"a stranger":          Identity{Username: anonymousUser, Anonymous: true, From: "team-a of east"}.QuotaOwner(),
		"another cluster's":   Identity{Username: "system:serviceaccount:team-a"}.QuotaOwner(),
		"a user of the group": Identity{Username: "mara", Groups: []string{"system:serviceaccounts:team-a"}}.QuotaOwner(),
	}
	for who, quotaOwner := range others {
		if quotaOwner == one {
			t.Errorf("%s pays as %q", who, quotaOwner)
		}
	}
}

// Tokens that were good before are reviewed in turns. Those of many accounts of one namespace hold up no other's.
func TestAccountsOfANamespaceDoNotHoldUpAnothersReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f := withServiceAccounts(t)
		f.Takes = 100 * time.Millisecond
		good := func(namespace string, n int) string {
			f.Set(func(f *authtest.TokenReviewer) {
				f.Status.User = authenticationv1.UserInfo{Username: fmt.Sprintf("system:serviceaccount:%s:a%d", namespace, n)}
			})
			token := accountToken(t, map[string]any{"jti": fmt.Sprint(namespace, n)})
			if _, err := a.Authenticate(From(t.Context(), named("inside")), token); err != nil {
				t.Fatal(err)
			}
			return token
		}
		var many []string
		for n := range 20 {
			many = append(many, good("many", n))
		}
		other := good("other", 0)
		time.Sleep(2 * reviewedFor) // the answers are forgotten
		var wg sync.WaitGroup
		for _, token := range many {
			wg.Go(func() { _, _ = a.Authenticate(From(context.Background(), named("inside")), token) })
		}
		time.Sleep(time.Millisecond) // all of them wait
		began := time.Now()
		if _, err := a.Authenticate(From(t.Context(), named("inside")), other); err != nil || time.Since(began) > f.Takes+f.Takes/2 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		wg.Wait()
	})
}
