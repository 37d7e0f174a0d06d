//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/internal/devtoken"
)

// The tokens' issuer and audience, and the user as whom edges sign in at the core.
const (
	issuer   = "https://kubecast.local"
	audience = "kubecast"
	edgeUser = "edge"
)

// fleet is an API server, a core before it, and edges before that.
type fleet struct {
	dir, binary string
	source      *process.Child // the API server
	core        *gateway.Gateway
	edges       []*gateway.Gateway
}

func (f *fleet) path(name string) string { return filepath.Join(f.dir, name) }

func startFleet(dir, binary string, edges int) (_ *fleet, err error) {
	f := &fleet{dir: dir, binary: binary, edges: make([]*gateway.Gateway, edges)}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if f.source, err = process.StartChild("apiserver"); err != nil {
		return nil, err
	}
	var address string
	if err := f.source.Call("Start", nil, &address); err != nil {
		return nil, err
	}
	if err := gateway.WriteKubeconfig(f.path("core.kubeconfig"), "http://"+address, ""); err != nil {
		return nil, err
	}
	if _, err := gateway.WriteCertificate(f.path("tls.crt"), f.path("tls.key")); err != nil {
		return nil, err
	}
	token, err := f.token(edgeUser)
	if err != nil {
		return nil, err
	}
	listen, err := freeAddress()
	if err != nil {
		return nil, err
	}
	if err := f.startCore(listen); err != nil {
		return nil, err
	}
	if err := os.WriteFile(f.path("edge.kubeconfig"), fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: core
clusters: [{name: core, cluster: {server: "https://%s", certificate-authority: %q}}]
contexts: [{name: core, context: {cluster: core, user: edge}}]
users: [{name: edge, user: {token: %q}}]
`, listen, f.path("tls.crt"), token), 0o600); err != nil {
		return nil, err
	}
	var starting errgroup.Group
	for i := range f.edges {
		starting.Go(func() error { return f.startEdge(i) })
	}
	return f, starting.Wait()
}

// freeAddress is an address that nothing listens at.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// token signs a user in.
func (f *fleet) token(user string, groups ...string) (string, error) {
	return devtoken.Sign(devtoken.Token{KeyFile: f.path("key.pem"), User: user, Groups: groups, Issuer: issuer, Audience: audience, TTL: 12 * time.Hour})
}

// config lifts the limit of streams that one address may have, since all clients come from few addresses of loopback, and has
// a ring that holds a minute of the changes, where the default one holds 16 s: clients of an edge that is killed come back later
// than that where two processors do everything.
func (f *fleet) config(more string) string {
	return fmt.Sprintf(`auth: {jwt: [{issuer: %q, audiences: [%s], publicKeyFile: %q}]}
cache: {preload: [configmaps]}
ring: {events: 65536, bytes: 256Mi}
%s`, issuer, audience, f.path("key.pem.pub"), more)
}

func (f *fleet) startCore(listen string) (err error) {
	f.core, err = f.start("core", f.path("core.kubeconfig"), listen,
		fmt.Sprintf("gateways: [%s]\ntls: {certFile: %q, keyFile: %q}\n", edgeUser, f.path("tls.crt"), f.path("tls.key")))
	return err
}

func (f *fleet) startEdge(i int) (err error) {
	f.edges[i], err = f.start(fmt.Sprintf("edge-%d", i), f.path("edge.kubeconfig"), "", "stream: {perAddress: 0}\n")
	return err
}

func (f *fleet) start(name, kubeconfig, listen, more string) (*gateway.Gateway, error) {
	dir := f.path(name)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	g, err := gateway.Start(gateway.Options{Binary: f.binary, Dir: dir, Config: f.config(more), Kubeconfig: kubeconfig, Listen: listen})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return g, nil
}

// watches is how many watches the API server has.
func (f *fleet) watches() (count int64, err error) {
	err = f.source.Call("Watches", nil, &count)
	return count, err
}

func (f *fleet) stop() {
	for _, g := range append(f.edges, f.core) {
		if g != nil {
			g.Kill() // its clients are gone
		}
	}
	if f.source != nil {
		f.source.Kill()
	}
}
