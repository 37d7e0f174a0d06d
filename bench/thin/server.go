//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/pods"
	"github.com/kubecast/kubecast/bench/internal/process"
)

const (
	listPath = "/api/v1/pods"
	livePath = "/api/v1/pods?watch=true&sendInitialEvents=false"
)

// config lifts the limits that would count all clients as one, and waits longer for them, since a
// thousand clients that decode 3 MB each on one machine take nothing for seconds; all else is the
// default.
const config = `auth: {anonymous: true}
authorizer: {mode: sar}
cache: {preload: [pods]}
requests: {perUser: 0, perSecond: 0}
stream: {perUser: 0, perAddress: 0, watchesPerUser: 0, writeTimeout: 1m}
`

// server is a gateway, and the API server behind it.
type server struct {
	measure.Server
	gateway *gateway.Gateway
	dir     string
}

func (b *bench) start() (_ *server, err error) {
	s := &server{Server: measure.Server{Name: "gateway", Live: load.Target{Path: livePath}}}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if s.Source, err = process.StartChild("apiserver"); err != nil {
		return nil, err
	}
	var address string
	if err := s.Source.Call("Start", b.sizes.pods, &address); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "kubecast-bench-"); err != nil {
		return nil, err
	}
	kubeconfig, err := gateway.Kubeconfig(s.dir, "http://"+address)
	if err != nil {
		return nil, err
	}
	if s.gateway, err = gateway.Start(gateway.Options{Binary: b.gateway, Dir: s.dir, Config: config, Kubeconfig: kubeconfig}); err != nil {
		return nil, err
	}
	s.Pid, s.Live.Address = s.gateway.Pid, s.gateway.Address
	return s, nil
}

// target is the clients' target of a path, with a coding.
func (s *server) target(path, coding string) load.Target {
	return load.Target{Address: s.gateway.Address, Path: path, Coding: coding}
}

func (s *server) stop() {
	if s.gateway != nil {
		s.gateway.Kill() // its clients are gone
	}
	if s.Source != nil {
		s.Source.Kill()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir) // it has only this run's files
	}
}

// profiled takes a profile of the gateway's processor time, if that is wanted.
func (b *bench) profiled(s *server, name string, d time.Duration) (wait func()) {
	if b.profile == "" {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := os.MkdirAll(b.profile, 0o755)
		if err == nil {
			err = s.gateway.Save(fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(int(d.Seconds()), 1)), filepath.Join(b.profile, name+".cpu"))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "profile:", err)
		}
	}()
	return func() { <-done }
}

// cluster is an API server of some pods.
type cluster struct{ *apiserver.Server }

// Start makes so many pods, and listens.
func (c *cluster) Start(count int, address *string) error {
	*c = cluster{apiserver.New(pods.Kind(count))}
	var none process.None
	return c.Server.Start(none, address)
}

var children = process.Roles{
	"apiserver": func() (any, error) { return &cluster{}, nil },
	"load":      load.Receiver,
}
