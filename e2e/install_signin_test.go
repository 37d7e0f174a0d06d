package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/e2e/process"
	"github.com/kubecast/kubecast/internal/certtest"
)

// A user signs in at a provider through nginx as the chart's Ingress has it, which ends TLS at a port of its own: the provider sends
// them back to the address by which they came, any of two replicas takes the session, streams are not held back, other sites'
// requests are refused, and after the sign-out nothing is left. nginx alone says whose address it was.
func TestUsersSignInThroughTheChartsNginx(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	const namespace, host = "helm-sign-in", "kubecast.example.org"
	address := harness.Address(t)
	_, port, _ := net.SplitHostPort(address)
	site := "https://" + net.JoinHostPort(host, port)
	issuer := startProvider(t, site+"/auth/callback")
	s.namespaces(t, namespace)
	k := s.startKubelet(t, namespace)
	s.installForSignIn(t, namespace, fmt.Sprintf(`
config:
  auth:
    jwt: [{issuer: %q, audiences: [kubecast], claims: {username: email, groups: groups}}]
    oidcLogin: {clientID: kubecast, clientSecretFile: /etc/kubecast-keys/client-secret, redirectURL: %q}
    revocations: {configMap: %s/revoked}
  audit: {level: metadata}
  drain: 4s
keys: {existingSecret: keys}
ingress: {enabled: true, host: %s, tlsSecret: kubecast-tls, nginxSnippet: true}
preStopSeconds: 0
nodeSelector: {%s: %[3]s}
tolerations: [{key: %[5]s, operator: Exists}]
`, issuer, site+"/auth/callback", namespace, host, ownKubelet))
	certificate := certtest.New(t, host)
	s.startNginxWithTLS(t, namespace, address, certificate)

	b := newBrowser(t, address, certificate)
	b.signIn(t, site, issuer)
	for range 6 { // by turns at both replicas
		a := b.ask(t, http.MethodGet, site+"/auth/me", "")
		var me struct{ Username string }
		if err := json.Unmarshal([]byte(a.body), &me); err != nil || a.code != http.StatusOK || me.Username != "mara@example.org" {
			t.Fatalf("%v: %d %s", err, a.code, a.body)
		}
	}
	s.readAsBrowser(t, b, site, namespace)
	for _, origin := range []string{"https://evil.example", "https://" + host} { // the latter is another site, by its port
		if a := b.ask(t, http.MethodPost, site+"/auth/logout", origin); a.code != http.StatusForbidden {
			t.Errorf("sign-out by a page of %s: %d %s", origin, a.code, a.body)
		}
	}
	if a := b.ask(t, http.MethodPost, site+"/auth/logout", site); a.code != http.StatusOK || !strings.Contains(a.body, issuer) {
		t.Errorf("sign-out: %d %s", a.code, a.body)
	}
	if left := b.jar.Cookies(mustURL(t, site+"/auth/session")); len(left) > 0 {
		t.Errorf("after the sign-out there are %v", left)
	}
	if a := b.ask(t, http.MethodGet, site+"/auth/me", ""); a.code != http.StatusUnauthorized {
		t.Errorf("after the sign-out: %d %s", a.code, a.body)
	}
	s.sourcesAre(t, k, namespace, ownAddress)
	s.helm(t, "uninstall", "kubecast", "-n", namespace, "--wait", "--timeout", "2m")
}

// ownAddress is the browser's, and claimedAddress what it says of itself: neither is nginx's, 127.0.0.1.
const ownAddress, claimedAddress = "127.0.0.9", "198.51.100.7"

// startProvider runs Dex with the gateway's client until the test ends, and returns its address.
func startProvider(t *testing.T, redirect string) string {
	t.Helper()
	const program = "../bin/devissuer"
	if _, err := os.Stat(program); err != nil {
		harness.Missing(t, "the provider is not built: run \"make devissuer\"")
	}
	p, err := process.Start(process.Options{Path: program, Args: []string{"--secret", "of-the-client", "--redirects", redirect}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Terminate(10 * time.Second) })
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	found, err := p.Stdout.WaitFor(ctx, regexp.MustCompile(`(?m)^issuer=(\S+)`))
	if err != nil {
		t.Fatalf("%v: %s", err, p.Stderr)
	}
	return found[1]
}

func (s *stage) installForSignIn(t *testing.T, namespace, text string) {
	t.Helper()
	data := map[string]string{"cookie.key": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "ops.token": strings.Repeat("t", 64), "client-secret": "of-the-client"}
	if _, err := s.kube.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: data}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := s.helm(t, "install", "kubecast", "../deploy/chart", "-n", namespace, "-f", values, "--wait=legacy", "--timeout", "3m")
	if strings.Contains(out, "BUT the Ingress") {
		t.Error(out)
	}
}

// startNginxWithTLS serves the Ingress of the release kubecast as ingress-nginx does one with a tlsSecret, until the test ends.
func (s *stage) startNginxWithTLS(t *testing.T, namespace, address string, certificate certtest.Pair) {
	t.Helper()
	binary, err := exec.LookPath("nginx")
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			harness.Missing(t, "nginx")
		}
	}
	ingress, err := s.kube.NetworkingV1().Ingresses(namespace).Get(t.Context(), "kubecast", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if of := ingress.Spec.TLS; len(of) != 1 || of[0].SecretName != "kubecast-tls" || !slices.Equal(of[0].Hosts, []string{ingress.Spec.Rules[0].Host}) {
		t.Fatalf("the Ingress ends no TLS: %v", of)
	}
	endpoints := s.endpoints(t.Context(), namespace, "kubecast")
	if len(endpoints) != 2 {
		t.Fatalf("ready are %v", endpoints)
	}
	dir := t.TempDir()
	certFile, keyFile := certificate.Write(t, dir)
	text := strings.Replace(translated(t, ingress, address, endpoints), "listen "+address+";", fmt.Sprintf("listen %s ssl http2; ssl_certificate %s; ssl_certificate_key %s;", address, certFile, keyFile), 1)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(process.Options{Path: binary, Args: []string{"-p", dir, "-c", "nginx.conf", "-e", "stderr"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Terminate(10 * time.Second) })
	eventually(t, "nginx listens", func() error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
}

// browser follows redirects with its cookies, and remembers how they were set. All names lead to nginx, but the provider's.
type browser struct {
	jar    http.CookieJar
	client *http.Client
	set    []*http.Cookie // by the gateway
	came   []string       // addresses that redirects led to
}

func newBrowser(t *testing.T, nginx string, certificate certtest.Pair) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ownAddress)}}
	transport := &http.Transport{
		TLSClientConfig: certtest.Client(certificate), ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "kubecast.example.org:") {
				return dialer.DialContext(ctx, network, nginx)
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	b := &browser{jar: jar}
	b.client = &http.Client{Jar: jar, Transport: b.remember(transport)}
	return b
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (b *browser) remember(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r.Header.Set("X-Forwarded-For", claimedAddress)
		response, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		b.came = append(b.came, r.URL.String())
		if r.URL.Hostname() == "kubecast.example.org" {
			b.set = append(b.set, response.Cookies()...)
		}
		return response, nil
	})
}

func (b *browser) ask(t *testing.T, method, address, origin string) answer {
	t.Helper()
	header := http.Header{}
	if origin != "" {
		header.Set("Origin", origin)
	}
	a, err := fetchBy(b.client, method, address, header)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// signIn goes to the provider, gives a name and a password, and comes back to the portal.
func (b *browser) signIn(t *testing.T, site, issuer string) {
	t.Helper()
	if a := b.ask(t, http.MethodGet, site+"/auth/login", ""); a.code != http.StatusOK || !strings.Contains(a.body, `name="password"`) {
		t.Fatalf("the provider's page: %d %s", a.code, a.body)
	}
	form := b.came[len(b.came)-1]
	if !strings.HasPrefix(form, issuer+"/") {
		t.Fatalf("it led to %s", form)
	}
	response, err := b.client.PostForm(form, url.Values{"login": {"mara@example.org"}, "password": {"password"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if !slices.ContainsFunc(b.came, func(address string) bool { return strings.HasPrefix(address, site+"/auth/callback?code=") }) {
		t.Fatalf("the provider did not send them back: %q", b.came)
	}
	if came := b.came[len(b.came)-1]; response.StatusCode != http.StatusOK || came != site+"/" {
		t.Fatalf("after the sign-in they are at %s: %d", came, response.StatusCode)
	}
	names := map[string]bool{}
	for _, c := range b.set {
		names[c.Name] = true
		if !c.Secure || !c.HttpOnly || c.Domain != "" || c.SameSite != http.SameSiteStrictMode && !strings.HasPrefix(c.Name, "__Host-kubecast-login-") {
			t.Errorf("cookie %s", c.Raw)
		}
	}
	if !names["__Host-kubecast"] {
		t.Fatalf("no session: %v", names)
	}
}

// readAsBrowser reads a list and a stream with the session, which devcluster permits the group platform: each change is there while the stream goes on.
func (s *stage) readAsBrowser(t *testing.T, b *browser, site, namespace string) {
	t.Helper()
	services := site + "/api/v1/namespaces/" + namespace + "/services"
	if a := b.ask(t, http.MethodGet, services, ""); a.code != http.StatusOK || !strings.Contains(a.body, "kubecast-replicas") {
		t.Errorf("a list: %d %s", a.code, a.body)
	}
	if a := b.ask(t, http.MethodGet, site+"/api/v1/namespaces/"+namespace+"/secrets", ""); a.code != http.StatusForbidden {
		t.Errorf("what the user's roles do not permit: %d %s", a.code, a.body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), eventuallyWithin)
	defer cancel()
	stream, err := openFramesBy(ctx, b.client, services, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.close()
	until := func(event, data string) {
		t.Helper()
		for {
			read, err := stream.next()
			if err != nil {
				t.Fatalf("no %s: %v", event, err)
			}
			if read.event == event && strings.Contains(read.data, data) {
				return
			}
		}
	}
	until("synced", "")
	for n := range 3 {
		seen := fmt.Sprintf(`"seen":"%d"`, n)
		if _, err := s.kube.CoreV1().Services(namespace).Patch(ctx, "kubecast-replicas", types.MergePatchType, []byte(`{"metadata":{"annotations":{`+seen+`}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		until("modified", seen)
	}
}

// sourcesAre has all lines of the audit log, of both replicas, name one address first.
func (s *stage) sourcesAre(t *testing.T, k *kubelet, namespace, want string) {
	t.Helper()
	pods, err := s.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=gateway"})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		lines := 0
		for line := range strings.Lines(k.log(pod.Name + "/gateway")) {
			var event struct {
				AuditID   string
				SourceIPs []string
			}
			if json.Unmarshal([]byte(line), &event) != nil || event.AuditID == "" {
				continue
			}
			lines++
			if len(event.SourceIPs) == 0 || event.SourceIPs[0] != want || slices.Contains(event.SourceIPs, claimedAddress) {
				t.Errorf("whose address it was: %s", line)
			}
		}
		if lines == 0 {
			t.Errorf("pod %s was asked nothing", pod.Name)
		}
	}
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
