package app

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/config"
)

// certificate is the public listener's certificate. It is read again when its files change. Files that cannot be used
// or have expired change nothing while the old certificate is still valid.
type certificate struct {
	files   config.TLS
	log     *slog.Logger
	current atomic.Pointer[chain]
	expires prometheus.Gauge
	good    prometheus.Gauge

	// The rest is used only by look, which is for one goroutine.
	read    [sha256.Size]byte // digest of the files that are in use
	tried   [sha256.Size]byte // digest of the files at the last look
	failure string            // what was logged about them
	expired bool              // that it has expired was logged
}

// chain is a certificate with its intermediates.
type chain struct {
	tls.Certificate
	end time.Time // when the first of them expires
}

func (c *chain) validAt(now time.Time) bool {
	return !now.Before(c.Leaf.NotBefore) && !now.After(c.end)
}

// newCertificate reads the files. It returns nil if none are named.
func newCertificate(files config.TLS, registerer prometheus.Registerer, log *slog.Logger) (*certificate, error) {
	if files == (config.TLS{}) {
		return nil, nil
	}
	c := &certificate{
		files: files,
		log:   log,
		expires: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubecast_tls_certificate_expiry_timestamp_seconds",
			Help: "When the first certificate of the chain that is served ends.",
		}),
		good: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubecast_tls_certificate_reload_successful",
			Help: "1: the certificate's files are what is served; 0: they cannot be used, and the certificate from before still is.",
		}),
	}
	read := digest(pathsOf(files))
	next, err := loadChain(files)
	if err != nil {
		return nil, err
	}
	registerer.MustRegister(c.expires, c.good)
	c.take(next, read)
	c.warnExpired(time.Now())
	return c, nil
}

func pathsOf(files config.TLS) []string { return []string{files.CertFile, files.KeyFile} }

func loadChain(files config.TLS) (*chain, error) {
	loaded, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("tls.certFile %s and tls.keyFile %s: %w", files.CertFile, files.KeyFile, err)
	}
	next := &chain{Certificate: loaded, end: loaded.Leaf.NotAfter}
	for _, der := range loaded.Certificate[1:] {
		above, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("tls.certFile %s: %w", files.CertFile, err)
		}
		if above.NotAfter.Before(next.end) {
			next.end = above.NotAfter
		}
	}
	return next, nil
}

func (c *certificate) take(next *chain, read [sha256.Size]byte) {
	c.current.Store(next)
	c.read, c.failure, c.expired = read, "", false
	c.expires.Set(float64(next.end.Unix()))
	c.good.Set(1)
	c.log.Info("certificate is served", "subject", next.Leaf.Subject.String(), "names", next.Leaf.DNSNames, "until", next.end.UTC())
}

// look takes over what the files hold now. They may just be being written, so unusable files are logged only when two
// looks have found the same.
func (c *certificate) look(now time.Time) {
	c.warnExpired(now)
	read := digest(pathsOf(c.files))
	if read == c.read {
		if c.failure != "" {
			c.failure = ""
			c.good.Set(1)
			c.log.Info("certificate's files are those of before again")
		}
		return
	}
	same := read == c.tried
	c.tried = read
	next, err := loadChain(c.files)
	current := c.current.Load()
	if err == nil && !next.validAt(now) && current.validAt(now) {
		err = fmt.Errorf("tls.certFile %s: it is valid from %s until %s", c.files.CertFile, next.Leaf.NotBefore.UTC(), next.end.UTC())
	}
	switch {
	case err == nil:
		c.take(next, read)
		c.warnExpired(now)
	case same && err.Error() != c.failure:
		c.failure = err.Error()
		c.good.Set(0)
		c.log.Error("certificate cannot be used: the one from before still is", "until", current.end.UTC(), "error", err)
	}
}

// move makes ready that the certificate is read from other files. Whether the listener speaks TLS
// is decided at the start.
func (c *certificate) move(files config.TLS) (use func(), err error) {
	if c == nil || files == (config.TLS{}) {
		return nil, errNeedsRestart
	}
	read := digest(pathsOf(files))
	next, err := loadChain(files)
	if err != nil {
		return nil, err
	}
	return func() {
		c.files = files
		c.take(next, read)
		c.warnExpired(time.Now())
	}, nil
}

func (c *certificate) warnExpired(now time.Time) {
	if end := c.current.Load().end; !c.expired && now.After(end) {
		c.expired = true
		c.log.Error("certificate has expired: clients will refuse it", "at", end.UTC())
	}
}

// config returns the configuration of a listener. Each new connection gets the certificate of that moment.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:                  tls.VersionTLS12,
		DynamicRecordSizingDisabled: true, // an event is one record, and one write
		GetCertificate:              func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &c.current.Load().Certificate, nil },
	}
}
