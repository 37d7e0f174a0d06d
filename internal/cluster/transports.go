package cluster

import (
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// dialTimeout bounds the time for making a connection. It is shorter than the time-outs of requests (requestTimeout
// and those of package auth), so that a cluster that is away can be told from one that is slow.
const dialTimeout = 4 * time.Second

// keepAlive notices a peer that vanished silently, as soon as client-go's pings notice it on HTTP/2.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3}

// transports are the transports to an API server.
//
// A whole list takes a third less time over HTTP/1.1 than over HTTP/2, and less of both sides' processors: over
// HTTP/2, Go sends frames of 16 KiB, and a window update for every few of them. All other requests use HTTP/2, where
// they share a connection.
type transports struct {
	usual, lists http.RoundTripper
}

// transports returns the transports to the cluster, and the configuration of the requests on them.
func (opts Options) transports() (*rest.Config, transports, error) {
	config, err := restConfig(opts)
	if err != nil {
		return nil, transports{}, err
	}
	config.UserAgent = opts.UserAgent
	// The API server's own priority and fairness is the limit: informers back off when it answers 429.
	config.QPS = -1
	// Compressing lists would cost the API server more time than it saves on the network.
	config.DisableCompression = true
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.AcceptContentTypes, config.ContentType = "application/json", "application/json"
	if tls := config.TLSClientConfig; config.Dial == nil && config.Transport == nil && (strings.HasPrefix(config.Host, "https:") || tls.CAFile != "" || len(tls.CAData) > 0) {
		config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive}).DialContext
	}
	if opts.Share.Shard.Is() {
		config.Wrap(opts.Share.ToServer)
	}
	usual, err := rest.TransportFor(config)
	if err != nil || config.Dial == nil {
		return config, transports{usual, usual}, err
	}
	plain := rest.CopyConfig(config)
	plain.NextProtos = []string{"http/1.1"}
	lists, err := rest.TransportFor(plain)
	return config, transports{usual, lists}, err
}
