package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/connectors"
	"github.com/dexidp/dex/server/session"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/server/tokens"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"golang.org/x/crypto/bcrypt"
)

// dexOptions configure Dex.
type dexOptions struct {
	Issuer    string
	Redirects []string
	Secret    string // the client's; empty: the client is public
	Lasts     time.Duration
	Keys      signer.Signer
	Log       *slog.Logger
}

// newDex returns Dex as its own command would run it. It has its own sessions, so that a user who signs out here must
// enter the password again. A refresh token can be used only once.
func newDex(ctx context.Context, opts dexOptions) (http.Handler, error) {
	hash, err := bcrypt.GenerateFromPassword([]byte("password"), bcrypt.DefaultCost)
	if err != nil {
		return nil, err
	}
	client := storage.Client{
		ID: "kubecast", Name: "Kubecast", Secret: opts.Secret, Public: opts.Secret == "", RedirectURIs: opts.Redirects,
		RefreshTokenLifetime: storage.RefreshTokenLifetimeSession,
	}
	for _, redirect := range opts.Redirects {
		if u, err := url.Parse(redirect); err == nil {
			client.PostLogoutRedirectURIs = append(client.PostLogoutRedirectURIs, u.ResolveReference(&url.URL{Path: "../"}).String())
		}
	}
	s := storage.WithStaticClients(memory.New(opts.Log), []storage.Client{client})
	s = storage.WithStaticPasswords(s, []storage.Password{{
		Email: "mara@example.org", Hash: hash, Username: "mara", UserID: "08a8684b-db88-4b73-90a9-3cd1661f5466",
		Groups: []string{"platform", "team-vision"},
	}, {
		Email: "bob@example.org", Hash: hash, Username: "bob", UserID: "5d3f5a3e-3d0c-4a55-9b64-6a3c9b6f0c11",
		Groups: []string{"platform"},
	}}, opts.Log)
	s = storage.WithStaticConnectors(s, []storage.Connector{{ID: connectors.LocalConnector, Name: "Email", Type: connectors.LocalConnector}})
	refresh, err := tokens.NewRefreshTokenPolicy(opts.Log, false, "", "", "0s")
	if err != nil {
		return nil, err
	}
	return server.NewServer(ctx, server.Config{
		Issuer:             opts.Issuer,
		Storage:            s,
		SkipApprovalScreen: true,
		IDTokensValidFor:   opts.Lasts,
		RefreshTokenPolicy: refresh,
		Signer:             opts.Keys,
		Logger:             opts.Log,
		SessionConfig: &session.Config{
			CookieName: "dex_session", AbsoluteLifetime: 24 * time.Hour, ValidIfNotUsedFor: 24 * time.Hour,
		},
	})
}
