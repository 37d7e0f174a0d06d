package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth/authtest"
)

// A session of a ServiceAccount is worth what its token is: nothing, once the cluster says so, nor in another cluster.
func TestServiceAccountsSessionIsWorthItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f := withServiceAccounts(t)
		sessions := NewSessions(mustSealer(t, keyA), a)
		tickets := NewTickets(sessions)
		token := accountToken(t, map[string]any{"exp": time.Now().Add(365 * 24 * time.Hour).Unix()})
		id, err := a.Authenticate(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprintf("%v %+v %#v", id, id, id); strings.Contains(text, token[:40]) {
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
		if err != nil || again.Username != id.Username || again.Cluster != "main" || !again.ExpiresAt.Equal(id.ExpiresAt) || f.count() != 1 {
			t.Errorf("%+v, %v, %d questions", again, err, f.count())
		}
		// As versions sealed them that kept what the cluster had said.
		kept := id
		kept.Token = ""
		if id, err := sessions.Open(t.Context(), must(sessions.Seal(kept))); !errors.Is(err, ErrBadToken) {
			t.Errorf("without its token: %+v, %v", id, err)
		}
		// What the cluster says now counts: groups, too.
		f.set(func(f *fakeTokenReviewer) { f.status.User.Groups = []string{"system:serviceaccounts", "new"} })
		time.Sleep(reviewedFor + time.Second)
		if again, err := sessions.Open(t.Context(), cookie); err != nil || again.Groups[0] != "new" {
			t.Errorf("%+v, %v", again, err)
		}
		// The cluster is away: nobody can say.
		f.set(func(f *fakeTokenReviewer) { f.err = errors.New("away") })
		time.Sleep(reviewedFor + time.Second)
		if _, err := sessions.Open(t.Context(), cookie); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrBadToken) {
			t.Error(err)
		}
		// The ServiceAccount is deleted.
		f.set(func(f *fakeTokenReviewer) { f.err, f.status.Authenticated = nil, false })
		if _, err := sessions.Open(t.Context(), cookie); !errors.Is(err, ErrBadToken) {
			t.Error(err)
		}
		if _, err := tickets.Redeem(t.Context(), issue(), "/"); !errors.Is(err, ErrBadToken) {
			t.Error(err)
		}
		// Another cluster takes the name; it knows nothing of the token.
		f.set(func(f *fakeTokenReviewer) { f.status.Authenticated = true })
		time.Sleep(reviewedFor + time.Second)
		if _, err := sessions.Open(t.Context(), cookie); err != nil {
			t.Error(err)
		}
		a.serviceAccounts.Settle("main", &fakeTokenReviewer{})
		if id, err := sessions.Open(t.Context(), cookie); !errors.Is(err, ErrBadToken) {
			t.Errorf("in another cluster of the name: %+v, %v", id, err)
		}
		if id, err := tickets.Redeem(t.Context(), issue(), "/"); !errors.Is(err, ErrBadToken) {
			t.Errorf("in another cluster of the name: %+v, %v", id, err)
		}
	})
}

// Strangers' tokens that look like a ServiceAccount's wait for each other, not the good ones for them.
func TestForgedAccountsDoNotKeepGoodOnesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f := withServiceAccounts(t)
		f.takes = 100 * time.Millisecond
		old := accountToken(t, map[string]any{"jti": "used lately"})
		if _, err := a.Authenticate(From(t.Context(), "stranger"), old); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * reviewedFor) // its answer is forgotten
		template := accountToken(t)
		var wg sync.WaitGroup
		for i := range 5000 {
			forged := template[:len(template)-7] + fmt.Sprintf("%06dA", i) // which could be a signature
			wg.Go(func() { _, _ = a.Authenticate(From(context.Background(), "stranger"), forged) })
		}
		time.Sleep(time.Millisecond) // all of them wait, or were told to
		for name, c := range map[string]struct{ from, token string }{
			"new, from elsewhere":              {"office", template},
			"used lately, from the very place": {"stranger", old},
		} {
			began := time.Now()
			if _, err := a.Authenticate(From(t.Context(), c.from), c.token); err != nil || time.Since(began) > 3*f.takes {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
		}
		wg.Wait()
		if f.most > reviewTurns {
			t.Errorf("%d at once", f.most)
		}
		if most := 2 + int(reviewTimeout/f.takes)*reviewTurns; f.count() > most {
			t.Errorf("the API server was asked %d times", f.count())
		}
	})
}

// Whoever goes to /auth/login, however often, asks the provider nothing that it was not just asked.
func TestStrangersLoginsAskTheProviderOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := authtest.New()
		slow.See = func(r *http.Request) {
			if !strings.Contains(r.URL.Path, "openid-configuration") {
				return
			}
			time.Sleep(5 * time.Second)
		}
		l := loginAt(t, slow)
		time.Sleep(time.Minute) // the keys are known
		before := slow.Asked("/.well-known/openid-configuration")
		begin := func() {
			var wg sync.WaitGroup
			for range 2000 {
				wg.Go(func() {
					if _, err := l.Begin(t.Context(), "/"); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		begin()
		begin()
		if asked := slow.Asked("/.well-known/openid-configuration") - before; asked != 1 {
			t.Errorf("4000 logins are %d questions", asked)
		}
		// Who asks first and leaves leaves the answer to the others, and nobody waits for what is known already.
		time.Sleep(metadataFor + time.Second)
		began := time.Now()
		begin()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("they wait for %v", took)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = l.Begin(gone, "/")
		slow.Set(func(p *authtest.Provider) { p.Away = true })
		time.Sleep(2*metadataFor + time.Second)
		before = slow.Asked("/.well-known/openid-configuration")
		begin()
		if asked := slow.Asked("/.well-known/openid-configuration") - before; asked > 3 { // keys are asked for, too
			t.Errorf("of a provider that is away: %d questions", asked)
		}
	})
}

// Who comes back with made-up codes takes turns with others like that: those who have a session, or come from elsewhere, are
// not kept waiting.
func TestMadeUpCodesDoNotKeepLoginsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		l := loginAt(t, provider)
		in := signedIn(t, l, provider)
		pending, answer := comeBack(t, l, provider)
		time.Sleep(45 * time.Second)
		var busy sync.WaitGroup
		provider.Set(func(p *authtest.Provider) {
			p.See = func(r *http.Request) {
				if r.URL.Path == "/token" {
					time.Sleep(time.Second)
				}
			}
		})
		before := provider.Asked("/token")
		for range 2000 {
			begun, err := l.Begin(t.Context(), "/")
			if err != nil {
				t.Fatal(err)
			}
			u, _ := url.Parse(begun.Location)
			made := url.Values{"state": {u.Query().Get("state")}, "code": {"made up"}}
			busy.Go(func() { _, _ = l.Finish(From(t.Context(), "stranger"), begun.Pending, made) })
		}
		time.Sleep(time.Millisecond)
		began := time.Now()
		if _, err := l.Renew(From(t.Context(), "stranger"), in.Session, in.Renewal); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("a renewal: %v after %v", err, time.Since(began))
		}
		began = time.Now()
		if _, err := l.Finish(From(t.Context(), "elsewhere"), pending, answer); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("a login: %v after %v", err, time.Since(began))
		}
		busy.Wait()
		if asked := provider.Asked("/token") - before; asked > 2+exchangesWaiting+exchanges {
			t.Errorf("the provider was asked %d times", asked)
		}
	})
}
