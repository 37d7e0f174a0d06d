//go:build linux

package main

import (
	"os"
	"strings"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/floor"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// server is a server that is measured. Floor and r3labs are their own sources.
type server struct {
	measure.Server

	gateway    *gateway.Gateway // nil for the others
	dir        string
	kubeconfig string
}

// Paths of the gateway.
const (
	livePath     = "/api/v1/configmaps?watch=true&sendInitialEvents=false"
	snapshotPath = "/api/v1/configmaps?watch=true"
)

// gatewayConfig lifts the limits that would count all clients as one; all else is the default.
func gatewayConfig(extra string) string {
	return `auth: {anonymous: true}
authorizer: {mode: sar}
cache: {preload: [configmaps]}
requests: {perUser: 0, perSecond: 0}
stream: {perUser: 0, perAddress: 0, watchesPerUser: 0` + extra + `}
`
}

// start starts a server by its name: floor, r3labs, gateway, or gateway:BINARY for another build of it. Settings are
// added to the gateway's section stream.
func (b *bench) start(name, settings string) (*server, error) {
	binary, other := strings.CutPrefix(name, "gateway:")
	switch {
	case name == "gateway":
		binary = b.gateway
	case !other:
		child, err := process.StartChild(name)
		if err != nil {
			return nil, err
		}
		s := &server{Server: measure.Server{
			Name: name, Pid: child.Pid, Source: child, Live: load.Target{Path: "/?stream=" + r3labsStream},
		}}
		if err := child.Call("Start", nil, &s.Live.Address); err != nil {
			child.Kill()
			return nil, err
		}
		return s, nil
	}
	return b.startGateway(name, binary, settings)
}

func (b *bench) startGateway(name, binary, settings string) (*server, error) {
	return b.startGatewayAt("apiserver", name, binary, settings)
}

// startGatewayAt starts a gateway whose API server is a child of a role.
func (b *bench) startGatewayAt(role, name, binary, settings string) (_ *server, err error) {
	s := &server{Server: measure.Server{Name: name, Live: load.Target{Path: livePath}}}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if s.Source, err = process.StartChild(role); err != nil {
		return nil, err
	}
	var address string
	if err := s.Source.Call("Start", nil, &address); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "kubecast-bench-"); err != nil {
		return nil, err
	}
	if s.kubeconfig, err = gateway.Kubeconfig(s.dir, "http://"+address); err != nil {
		return nil, err
	}
	return s, s.run(binary, settings, "")
}

// run starts the gateway's process.
func (s *server) run(binary, settings, listen string) error {
	g, err := gateway.Start(gateway.Options{
		Binary: binary, Dir: s.dir, Config: gatewayConfig(settings), Kubeconfig: s.kubeconfig, Listen: listen,
	})
	if err != nil {
		return err
	}
	s.gateway, s.Pid, s.Live.Address = g, g.Pid, g.Address
	return nil
}

// snapshot is a target whose streams begin with a snapshot.
func (s *server) snapshot() load.Target {
	t := s.Live
	t.Path, t.Snapshot = snapshotPath, true
	return t
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

var children = process.Roles{
	"floor": func() (any, error) {
		return floor.New(func(version uint64, m mark.Mark) []byte { return object(int(m.Seq)%1000, version, m) }), nil
	},
	"r3labs":    func() (any, error) { return newR3labs(), nil },
	"apiserver": func() (any, error) { return apiserver.New(configMaps), nil },
	"logserver": func() (any, error) { return newLogServer(), nil },
	"load":      load.Receiver,
}
