package oidc

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/authtest"
)

// Strangers who open /auth/login, however often, cause no request to the provider that was just made.
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
		// If the first caller leaves, the others still get the answer. With known metadata nobody waits.
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
		if asked := slow.Asked("/.well-known/openid-configuration") - before; asked > 3 { // keys are fetched, too
			t.Errorf("of a provider that is away: %d questions", asked)
		}
	})
}

// Strangers who come back with invented codes share their network's turns. Users with a session, and users from
// elsewhere, do not wait for them.
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
			busy.Go(func() {
				_, _ = l.Finish(auth.From(t.Context(), func() string { return "stranger" }), begun.Pending, made)
			})
		}
		time.Sleep(time.Millisecond)
		began := time.Now()
		if _, err := l.Renew(auth.From(t.Context(), func() string { return "stranger" }), in.Session, in.Renewal); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("a renewal: %v after %v", err, time.Since(began))
		}
		began = time.Now()
		if _, err := l.Finish(auth.From(t.Context(), func() string { return "elsewhere" }), pending, answer); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("a login: %v after %v", err, time.Since(began))
		}
		busy.Wait()
		if asked := provider.Asked("/token") - before; asked > 2+exchangesWaiting+exchanges {
			t.Errorf("the provider was asked %d times", asked)
		}
	})
}
