package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/cert"

	"github.com/kubecast/kubecast/internal/cores"
	"github.com/kubecast/kubecast/internal/shards"
)

// Core says by which other gateways the cluster is reached, in place of its API server. It is named there as it is here.
type Core struct {
	Addresses []string // https URLs, of which any will do
	TokenFile string   // the token by which they know this gateway
	CAFile    string   // PEM; empty: the system's authorities
	Shards    int      // the cores are of so many shards, in turn; see shards.NewMerge. 0: each has all objects
}

func (c Core) given() bool { return len(c.Addresses) > 0 }

func (c Core) files() []string {
	if c.CAFile == "" {
		return []string{c.TokenFile}
	}
	return []string{c.TokenFile, c.CAFile}
}

// config is the configuration of requests to a cluster of the cores. A file that cannot be used is an error here, since
// client-go would send requests without a token, and fail at each of them.
func (c Core) config(cluster string) (*rest.Config, error) {
	token, err := os.ReadFile(c.TokenFile)
	if err == nil && len(bytes.TrimSpace(token)) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("edge.tokenFile: %w", err)
	}
	if c.CAFile != "" {
		if _, err := cert.NewPool(c.CAFile); err != nil {
			return nil, fmt.Errorf("edge.caFile: %w", err)
		}
	}
	var paths []string
	for _, address := range c.Addresses {
		paths = append(paths, address+"/clusters/"+cluster)
	}
	wrap, err := c.wrap(paths)
	if err != nil {
		return nil, fmt.Errorf("edge.core: %w", err)
	}
	return &rest.Config{
		Host: paths[0], BearerTokenFile: c.TokenFile, TLSClientConfig: rest.TLSClientConfig{CAFile: c.CAFile},
		WrapTransport: wrap,
	}, nil
}

// wrap is the transport by which any of the cores is asked, or all of them if each has a part only.
func (c Core) wrap(paths []string) (transport.WrapperFunc, error) {
	if c.Shards > 0 {
		merge, err := shards.NewMerge(paths, c.Shards)
		if err != nil {
			return nil, err
		}
		return merge.Wrap, nil
	}
	any, err := cores.New(paths)
	if err != nil {
		return nil, err
	}
	return any.Wrap, nil
}
