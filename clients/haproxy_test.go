package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubecast/kubecast/e2e/harness"
)

// startHAProxy runs HAProxy with the time-outs of Debian's default configuration. HAProxy itself has no defaults, and
// warns.
func startHAProxy(t *testing.T, g *gateway, c certificate, frontend string) ingress {
	t.Helper()
	path := program(t, "haproxy")
	plain, secure, dir := harness.Address(t), harness.Address(t), t.TempDir()
	config := fmt.Sprintf(`defaults
	mode http
	timeout connect 5000
	timeout client 50000
	timeout server 50000
frontend browsers
	bind %s
	bind %s ssl crt %s alpn h2,http/1.1
	default_backend gateway
%sbackend gateway
	server gateway %s
`, plain, secure, c.bothFile, frontend, g.address)
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	supervise(t, path, "-db", "-f", file)
	waitListening(t, secure)
	return ingress{"http://" + plain, "https://" + secure}
}
