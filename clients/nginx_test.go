package clients

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubecast/kubecast/e2e/harness"
)

// nginx is an nginx with a minimal configuration: buffering is on and the time-outs are nginx's own, as by default.
type nginx struct {
	ingress
	held ingress // the same, but ignores the gateway's X-Accel-Buffering
	dir  string
}

// nginxOptions are what a test adds to the configuration.
type nginxOptions struct {
	main     string // directives of the outermost context
	location string // directives of each location
	server   string // directives of each server
}

func startNginx(t *testing.T, g *gateway, c certificate, opts nginxOptions) *nginx {
	t.Helper()
	path := program(t, "nginx")
	plain, secure, heldPlain, heldSecure := harness.Address(t), harness.Address(t), harness.Address(t), harness.Address(t)
	n := &nginx{
		ingress: ingress{"http://" + plain, "https://" + secure},
		held:    ingress{"http://" + heldPlain, "https://" + heldSecure},
		dir:     t.TempDir(),
	}
	server := func(plain, secure, more string) string {
		return fmt.Sprintf("server {\nlisten %s;\nlisten %s ssl http2;\n%slocation / {\nproxy_pass http://%s;\n%s%s}\n}\n",
			plain, secure, opts.server, g.address, opts.location, more)
	}
	config := opts.main
	if os.Getuid() == 0 {
		config += "user root;\n" // the directories are the test's own
	}
	config += "daemon off;\nworker_processes 1;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		config += kind + "_temp_path " + kind + ";\n"
	}
	config += fmt.Sprintf("ssl_certificate %s;\nssl_certificate_key %s;\n", c.certFile, c.keyFile)
	config += server(plain, secure, "") + server(heldPlain, heldSecure, "proxy_ignore_headers X-Accel-Buffering;\n") + "}\n"
	if err := os.WriteFile(filepath.Join(n.dir, "nginx.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	supervise(t, path, "-p", n.dir, "-c", "nginx.conf", "-e", "stderr")
	waitListening(t, secure)
	return n
}

// reload makes nginx read its configuration anew, as an ingress controller does whenever an Ingress changes. New
// workers take over, and the old ones end with their connections.
func (n *nginx) reload(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, "nginx.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGHUP)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// supervise runs a server until the test ends. If the server were killed, its workers would survive. So a shell runs
// beside it, which ends it properly when the test has ended or died.
func supervise(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `"$@" & cat >/dev/null; kill -TERM $!; wait $!`, "sh", name}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	alive, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = alive.Close() // fails only if it is already closed
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait() // its status is that of a program that was told to end
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Errorf("%s does not end", name)
			return
		}
		if t.Failed() {
			t.Logf("%s:\n%s", name, out.Bytes())
		}
	})
}
