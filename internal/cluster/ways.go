package cluster

import (
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// dialTimeout bounds the time for a connection. It is shorter than what questions may take (auth's, and requestTimeout),
// so that these can tell a cluster that is away from one that is slow.
const dialTimeout = 4 * time.Second

// keepAlive notices that the other side is gone without a word as soon as client-go's pings do on HTTP/2.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3}

// ways are how requests get to an API server.
//
// A whole list takes a third less time, and less of both sides' processors, over HTTP/1.1 than over HTTP/2, which Go
// moves in frames of 16 KiB with an update of the window for every few of them. Everything else is on HTTP/2, where it
// shares a connection.
type ways struct {
	usual, lists http.RoundTripper
}

// ways are those to the cluster, and how requests are made on them.
func (opts Options) ways() (*rest.Config, ways, error) {
	config, err := restConfig(opts)
	if err != nil {
		return nil, ways{}, err
	}
	config.UserAgent = opts.UserAgent
	// The API server's own fairness is the limit: informers back off on its 429.
	config.QPS = -1
	// A list is read at the network's speed; compressing it would cost the API server more than it saves.
	config.DisableCompression = true
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.AcceptContentTypes, config.ContentType = "application/json", "application/json"
	if tls := config.TLSClientConfig; config.Dial == nil && config.Transport == nil && (strings.HasPrefix(config.Host, "https:") || tls.CAFile != "" || len(tls.CAData) > 0) {
		config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive}).DialContext
	}
	usual, err := rest.TransportFor(config)
	if err != nil || config.Dial == nil {
		return config, ways{usual, usual}, err
	}
	plain := rest.CopyConfig(config)
	plain.NextProtos = []string{"http/1.1"}
	lists, err := rest.TransportFor(plain)
	return config, ways{usual, lists}, err
}
