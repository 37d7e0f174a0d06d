package app

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/certtest"
	"github.com/kubecast/kubecast/internal/config"
)

// volume is a folder like those in which kubelet mounts Secrets: its files are links through another link, which is
// swapped.
type volume struct {
	dir string
	n   int
}

func (v *volume) put(t *testing.T, pair certtest.Pair) config.TLS {
	t.Helper()
	v.n++
	version := filepath.Join(v.dir, "..v"+strconv.Itoa(v.n))
	if err := os.Mkdir(version, 0o700); err != nil {
		t.Fatal(err)
	}
	pair.Write(t, version)
	fresh, data := filepath.Join(v.dir, "..data_tmp"), filepath.Join(v.dir, "..data")
	if err := os.Symlink(filepath.Base(version), fresh); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, data); err != nil {
		t.Fatal(err)
	}
	if v.n == 1 {
		for _, name := range []string{"tls.crt", "tls.key"} {
			if err := os.Symlink(filepath.Join("..data", name), filepath.Join(v.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.RemoveAll(filepath.Join(v.dir, "..v"+strconv.Itoa(v.n-1))); err != nil {
		t.Fatal(err)
	}
	return config.TLS{CertFile: filepath.Join(v.dir, "tls.crt"), KeyFile: filepath.Join(v.dir, "tls.key")}
}

// The next connection gets the new certificate, and open connections stay.
func TestCertificateIsSwappedWhileItRuns(t *testing.T) {
	_, url := apitest.Start(t)
	cfg, token := configuration(t, url)
	one, two := certtest.New(t, "one.test"), certtest.New(t, "two.test")
	secret := &volume{dir: t.TempDir()}
	cfg.TLS = secret.put(t, one)
	g := startWith(t, Options{Config: cfg, Poll: 5 * time.Millisecond}, token)
	if !strings.Contains(g.log.String(), "tls=true") {
		t.Error(g.log)
	}
	shown := func() (name string) {
		conn, err := tls.Dial("tcp", g.addr, certtest.Client(one, two))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if name := shown(); name != "one.test" {
		t.Error(name)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: certtest.Client(one), ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	for _, when := range []string{"before", "after"} { // on the client's only connection
		response, err := client.Get("https://" + g.addr + "/")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.ProtoMajor != 2 || response.TLS.Version < tls.VersionTLS12 || response.TLS.PeerCertificates[0].Subject.CommonName != "one.test" {
			t.Errorf("%s: %s, TLS %x, %v", when, response.Proto, response.TLS.Version, response.TLS.PeerCertificates[0].Subject)
		}
		if when == "before" {
			secret.put(t, two)
			g.until("the new one is shown", func() bool { return shown() == "two.test" })
		}
	}
	if _, err := tls.Dial("tcp", g.addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
}

// looked is a certificate whose look is called by the test.
type looked struct {
	*certificate
	t        *testing.T
	log      *bytes.Buffer
	registry *prometheus.Registry
	now      time.Time
}

func newLooked(t *testing.T, files config.TLS) *looked {
	t.Helper()
	l := &looked{t: t, log: &bytes.Buffer{}, registry: prometheus.NewRegistry(), now: time.Now()}
	var err error
	if l.certificate, err = newCertificate(files, l.registry, slog.New(slog.NewTextHandler(l.log, nil))); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *looked) expect(name string, until time.Time, good float64, said string) {
	l.t.Helper()
	if got := l.current.Load().Leaf.Subject.CommonName; got != name {
		l.t.Errorf("%s is served, not %s", got, name)
	}
	values := map[string]float64{}
	families, err := l.registry.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, family := range families {
		values[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
	}
	if values["kubecast_tls_certificate_reload_successful"] != good ||
		values["kubecast_tls_certificate_expiry_timestamp_seconds"] != float64(until.Unix()) {
		l.t.Errorf("%v, not until %d and %v", values, until.Unix(), good)
	}
	if matched, err := regexp.MatchString("^(?:"+said+")$", strings.TrimSpace(l.log.String())); err != nil || !matched {
		l.t.Errorf("it says %q (%v)", l.log, err)
	}
	l.log.Reset()
}

// A bad certificate changes nothing but the log. Files that are written one after the other cause no warning.
func TestBadCertificateChangesNothingButTheLog(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	until := now.Add(time.Hour)
	first, second := certtest.Between(t, "first", now.Add(-time.Hour), until), certtest.Between(t, "second", now.Add(-time.Hour), until.Add(time.Hour))
	certFile, keyFile := first.Write(t, dir)
	l := newLooked(t, config.TLS{CertFile: certFile, KeyFile: keyFile})
	const served, failed = `.*level=INFO msg="certificate is served".*`, `.*level=ERROR msg="certificate cannot be used.*`
	l.expect("first", until, 1, served)
	l.look(now)
	l.expect("first", until, 1, "")

	write := func(file string, content []byte) {
		t.Helper()
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(certFile, second.Cert)
	l.look(now)
	l.expect("first", until, 1, "")
	write(keyFile, second.Key)
	l.look(now)
	l.expect("second", until.Add(time.Hour), 1, served)

	until = until.Add(time.Hour)
	bad := map[string]certtest.Pair{
		"empty":         {},
		"of no sense":   {Cert: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), Key: second.Key},
		"another's key": {Cert: first.Cert, Key: second.Key},
		"past":          certtest.Between(t, "past", now.Add(-2*time.Hour), now.Add(-time.Hour)),
		"yet to come":   certtest.Between(t, "future", now.Add(time.Minute), now.Add(time.Hour)),
	}
	for name, pair := range bad {
		t.Run(name, func(t *testing.T) {
			pair.Write(t, dir)
			l.look(now)
			l.expect("second", until, 1, "")
			l.look(now)
			l.expect("second", until, 0, failed)
			l.look(now)
			l.expect("second", until, 0, "") // it was logged before
			second.Write(t, dir)
			l.look(now)
			l.expect("second", until, 1, ".*those of before again.*")
		})
	}
	t.Run("gone", func(t *testing.T) {
		if err := os.Remove(keyFile); err != nil {
			t.Fatal(err)
		}
		l.look(now)
		l.look(now)
		l.expect("second", until, 0, failed)
	})
	t.Run("yet to come, and then there", func(t *testing.T) {
		bad["yet to come"].Write(t, dir)
		l.look(now)
		l.expect("second", until, 0, "")
		l.look(now.Add(2 * time.Minute))
		l.expect("future", now.Add(time.Hour), 1, served)
	})
	t.Run("past, like the one that is served", func(t *testing.T) {
		later := now.Add(3 * time.Hour)
		l.look(later)
		l.expect("future", now.Add(time.Hour), 1, `.*level=ERROR msg="certificate has expired.*`)
		l.look(later)
		l.expect("future", now.Add(time.Hour), 1, "")
		second.Write(t, dir)
		l.look(later)
		l.expect("second", until, 1, served+"\n.*has expired.*")
	})
}

// A certificate that cannot be read is named at the start, and by `gateway check`.
func TestCertificateThatCannotBeReadIsNamed(t *testing.T) {
	dir := t.TempDir()
	certFile, _ := certtest.New(t, "x").Write(t, dir)
	_, otherKey := certtest.New(t, "y").Write(t, t.TempDir())
	for _, files := range []config.TLS{{CertFile: certFile, KeyFile: otherKey}, {CertFile: certFile, KeyFile: dir + "/none"}, {CertFile: "/none", KeyFile: otherKey}} {
		cfg := config.Default()
		cfg.TLS = files
		if err := Check(cfg); err == nil || !strings.Contains(err.Error(), "tls.certFile "+files.CertFile+" and tls.keyFile "+files.KeyFile) {
			t.Errorf("%+v: %v", files, err)
		}
	}
}
