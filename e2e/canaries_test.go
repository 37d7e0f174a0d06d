package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/e2e/process"
	"github.com/kubecast/kubecast/internal/certtest"
)

// canaries are texts that must appear only where they were sent, with what each is.
type canaries struct {
	mu    sync.Mutex
	texts map[string]string
}

func (c *canaries) add(what, text string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(text) < 12 {
		panic(what + " is too short to be looked for")
	}
	c.texts[what] = text
	return text
}

// sing makes a text that appears nowhere else.
func (c *canaries) sing(what string) string { return c.add(what, "canary"+rand.Text()) }

// token adds the parts of a token that contain claims or a signature.
func (c *canaries) token(what, token string) string {
	parts := strings.Split(token, ".")
	if len(parts) == 3 {
		c.add(what+"'s claims", parts[1])
		if parts[2] != "" {
			c.add(what+"'s signature", parts[2])
		}
		return token
	}
	return c.add(what, token)
}

// mustNotBeIn fails if a text contains a canary, plain or in one of the usual encodings.
func (c *canaries) mustNotBeIn(t *testing.T, where, text string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, canary := range c.texts {
		for _, form := range []string{
			canary, url.QueryEscape(canary), base64.StdEncoding.EncodeToString([]byte(canary)), base64.RawURLEncoding.EncodeToString([]byte(canary)),
		} {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s: %s is there: … %s …", where, what, text[max(0, at-200):min(len(text), at+len(form)+80)])
				break
			}
		}
	}
}

// file makes a file that holds a canary.
func (c *canaries) file(t *testing.T, dir, name, content string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// kubeconfig adds the credentials in a kubeconfig.
func (c *canaries) kubeconfig(t *testing.T, file string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, user := range config.AuthInfos {
		for what, text := range map[string]string{"token": user.Token, "key": string(user.ClientKeyData)} {
			if text != "" {
				c.add("the kubeconfig's "+what+" of "+name, text)
				found++
			}
		}
	}
	if found == 0 {
		t.Fatal("the kubeconfig holds no credentials")
	}
}

// deceiver is an OpenID provider whose error texts repeat all that it was sent.
func deceiver(t *testing.T) *httptest.Server {
	t.Helper()
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"issuer":%[1]q,"authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token","jwks_uri":"%[1]s/keys",
				"response_types_supported":["code"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}`, server.URL)
		case "/keys":
			fmt.Fprint(w, `{"keys":[]}`)
		default:
			body, _ := io.ReadAll(r.Body)
			user, password, _ := r.BasicAuth()
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_client", "error_description": string(body) + user + password})
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// Neither the log at its most verbose level, nor metrics, nor the pages of the ops listener, nor refusals contain
// credentials or the content of objects, whatever well-formed or malformed requests were made.
func TestNothingSecretIsLoggedOrTold(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "canaries")
	secret := &canaries{texts: map[string]string{}}
	dir := t.TempDir()
	audit := filepath.Join(dir, "audit.log")

	// These secrets the gateway is given to keep.
	secret.kubeconfig(t, s.cluster.Kubeconfig())
	cookieKey := secret.add("the cookie key", base64.StdEncoding.EncodeToString([]byte(rand.Text() + rand.Text())[:32]))
	shared := secret.sing("the shared secret") + rand.Text()
	pair := certtest.New(t, "gateway.test")
	certFile, keyFile := pair.Write(t, dir)
	for block, rest := pem.Decode(pair.Key); block != nil; block, rest = pem.Decode(rest) {
		secret.add("the TLS key", base64.StdEncoding.EncodeToString(block.Bytes)[:60])
	}
	provider := deceiver(t)
	auth := fmt.Sprintf(`  - {issuer: "https://shared.example", audiences: [kubecast], hmacKeyFile: %q, trusted: same}
  - {issuer: %q, audiences: [kubecast], trusted: same}
  oidcLogin: {clientID: kubecast, issuer: %q, clientSecretFile: %q, redirectURL: "https://gateway.test/auth/callback"}
  cookieKeyFile: %q
  serviceAccounts: {audiences: [kubecast]}
`, secret.file(t, dir, "hmac", shared), provider.URL, provider.URL, secret.file(t, dir, "client", secret.sing("the client's secret")), secret.file(t, dir, "cookie", cookieKey))
	g := s.startGateway(t, gatewayOptions{certFile: certFile, keyFile: keyFile, auth: auth, config: fmt.Sprintf("log: {level: debug}\nops: {pprof: true}\naudit: {level: metadata, file: %q}\n", audit)})
	g.waitReady(t)
	transport := &http.Transport{TLSClientConfig: certtest.Client(pair)}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

	// These secrets callers send.
	good := secret.token("the token", s.viewer(t))
	claims := jwt.MapClaims{"iss": "https://shared.example", "aud": "kubecast", "sub": "mallory", "exp": 4102444800}
	foreign, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte("another secret of some thirty bytes"))
	if err != nil {
		t.Fatal(err)
	}
	expired, err := s.sign("late", nil, "--ttl", "-1h")
	if err != nil { // a token that was never valid will do
		expired = strings.Join(append(strings.Split(foreign, ".")[:2], strings.Split(good, ".")[2]), ".")
	}
	robot := strings.TrimSpace(s.kubectl(t, "", "create", "token", "default", "-n", "canaries"))
	for what, token := range map[string]string{"a forged token": foreign, "an expired token": expired, "a ServiceAccount's token": robot} {
		secret.token(what, token)
	}
	opaque := secret.sing("an opaque token")
	value := secret.sing("an object's content")
	if _, err := s.kube.CoreV1().ConfigMaps("canaries").Create(context.Background(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "told", Annotations: map[string]string{"note": value}}, Data: map[string]string{"key": value},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.kube.CoreV1().Secrets("canaries").Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "kept"}, StringData: map[string]string{"key": secret.sing("a Secret's value")},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	do := func(method, path, body string, headers ...string) answer {
		t.Helper()
		request, err := http.NewRequest(method, g.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		ctx, cancel := context.WithTimeout(context.Background(), eventuallyWithin)
		defer cancel()
		response, err := client.Do(request.WithContext(ctx))
		if err != nil {
			t.Fatalf("%s %.60s: %v", method, path, err)
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusOK && strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
			beginning := make([]byte, 16)
			_, err := io.ReadFull(response.Body, beginning)
			return answer{response.StatusCode, response.Header, string(beginning) + fmt.Sprint(err)}
		}
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer{response.StatusCode, response.Header, string(text)}
	}
	as := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	cookieOf := func(a answer) string {
		cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
		_, sealed, _ := strings.Cut(cookie, "=")
		secret.add("a cookie", sealed)
		return cookie
	}
	session := cookieOf(do(http.MethodPost, "/auth/session", "", as(good)...))
	ticket := func(path string) string {
		var got struct{ Ticket string }
		a := do(http.MethodPost, "/auth/ticket", `{"path":`+fmt.Sprintf("%q", path)+`}`, as(good)...)
		if err := json.Unmarshal([]byte(a.body), &got); err != nil {
			t.Fatalf("%d %s", a.code, a.body)
		}
		return secret.add("a ticket for "+path, got.Ticket)
	}
	used := ticket("/api/v1/pods?limit=1")

	// All refusals are collected, and searched later. Each token is sent in every way that a caller may think of.
	refused := map[string]string{}
	try := func(method, path, body string, headers ...string) {
		t.Helper()
		if a := do(method, path, body, headers...); a.code >= 300 {
			refused[fmt.Sprintf("%s %.40s (%d)", method, path, len(refused))] = fmt.Sprint(a.header, a.body)
		}
	}
	for _, path := range []string{
		"/api/v1/namespaces/canaries/configmaps/told", "/api/v1/namespaces/canaries/secrets/kept", "/stream?c=/api/v1/namespaces/canaries/configmaps",
		"/auth/me", "/none", "/api/v1/pods?labelSelector=(",
	} {
		for _, token := range []string{good, foreign, expired, robot, opaque} {
			for _, accept := range []string{"application/json", "text/event-stream"} {
				try(http.MethodGet, path, "", append(as(token), "Accept", accept)...)
			}
			try(http.MethodGet, path, "", "Cookie", "__Host-kubecast="+token)
			try(http.MethodGet, path, "", "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("user:"+token)))
			try(http.MethodPost, path, token, as(good)...)
			joint := "?"
			if strings.Contains(path, "?") {
				joint = "&"
			}
			for _, parameter := range []string{"access_token", "token", "ticket", "lastEventId"} {
				try(http.MethodGet, path+joint+parameter+"="+token, "", "Accept", "text/event-stream")
				try(http.MethodGet, path+joint+parameter+"="+token+"&x=%zz", "", as(good)...)
			}
			if token != opaque { // it looks like any name
				try(http.MethodGet, strings.TrimRight(path, "?=(x")+"/"+token, "", as(good)...)
			}
		}
	}
	try(http.MethodGet, "/api/v1/pods?limit=1&ticket="+used, "", "Accept", "application/json")
	for range 2 { // the second time the ticket is used up
		try(http.MethodGet, "/api/v1/pods?limit=1&ticket="+used, "")
	}
	try(http.MethodGet, "/api/v1/pods?limit=1&ticket="+ticket("/api/v1/nodes")+";x", "")
	try(http.MethodGet, "/api/v1/pods?x=%zz&ticket="+ticket("/api/v1/nodes"), "")
	try(http.MethodGet, "/stream?p="+url.QueryEscape("/api/v1/pods?ticket="+ticket("/api/v1/nodes")), "", as(good)...)
	try(http.MethodGet, "/api/v1/pods", "", "Cookie", session, "Origin", "https://evil.example")
	try(http.MethodGet, "/api/v1/pods", "", "Cookie", session+"; "+session)
	try(http.MethodGet, "/api/v1/pods", "", "Cookie", session[:len(session)-4]+"AAAA")
	try(http.MethodPost, "/auth/ticket", `{"path":"/x?token=`+good+`"}`, as(good)...)
	try(http.MethodPost, "/auth/ticket", `{"path":"`+good, as(good)...)
	try(http.MethodGet, "/auth/me?kinds="+good, "", as(good)...)
	try(http.MethodPost, "/auth/logout", "", "Cookie", session)

	// Then comes a login at the provider that repeats what it is sent.
	login := do(http.MethodGet, "/auth/login", "")
	at, err := url.Parse(login.header.Get("Location"))
	if err != nil || login.code < 300 || login.code > 399 {
		t.Fatalf("no login begins: %d %v %s", login.code, login.header, login.body)
	}
	pending := cookieOf(login)
	try(http.MethodGet, "/auth/callback?code="+secret.sing("a code")+"&state="+url.QueryEscape(at.Query().Get("state")), "", "Cookie", pending)
	try(http.MethodGet, "/auth/callback?error=access_denied&error_description="+secret.sing("a description")+"&state=x", "", "Cookie", pending)

	// These texts can be read afterwards.
	open, err := openFramesBy(t.Context(), client, g.url+"/stream?c=/api/v1/namespaces/canaries/configmaps&ticket="+
		ticket("/stream?c=/api/v1/namespaces/canaries/configmaps"), http.Header{})
	if err != nil {
		t.Fatal(err)
	}
	defer open.close()
	for _, page := range []string{
		"/metrics", "/readyz", "/livez", "/debug/kinds", "/debug/streams", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2",
		"/debug/pprof/heap?debug=1", "/debug/pprof/allocs?debug=1", "/debug/pprof/mutex?debug=1", "/debug/pprof/symbol",
	} {
		a, err := fetch(http.MethodGet, g.ops+page, nil)
		if err != nil || a.code != http.StatusOK {
			t.Errorf("%s: %v %d", page, err, a.code)
		}
		secret.mustNotBeIn(t, page, a.body)
	}
	for _, needed := range []string{"level=DEBUG", "request failed", "path=/auth/callback"} { // else it is another log
		g.says(t, needed)
	}
	secret.mustNotBeIn(t, "the log", g.log())
	if text, err := os.ReadFile(audit); err != nil || strings.Count(string(text), "\n") < 100 {
		t.Errorf("the audit log: %v, %d bytes", err, len(text))
	} else {
		secret.mustNotBeIn(t, "the audit log", string(text))
	}
	if len(refused) < 300 {
		t.Errorf("only %d requests were refused", len(refused))
	}
	for request, text := range refused {
		secret.mustNotBeIn(t, request, text)
	}
}

// The fault of a file is reported without the file's content.
func TestFaultyKeyFilesAreNotQuoted(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	secret := &canaries{texts: map[string]string{}}
	dir := t.TempDir()
	write := func(name, content string) string { return secret.file(t, dir, name, content) }
	kubeconfig := func(name, users string) string {
		return write(name, "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"+
			"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: "+users+"\n")
	}
	const jwtOf = "auth: {jwt: [{issuer: 'https://x.example', audiences: [a], %s: %q}]}\n"
	for name, test := range map[string]struct{ config, kubeconfig string }{
		"cookie key":              {config: fmt.Sprintf("auth: {cookieKeyFile: %q}\n", write("cookie", secret.sing("a cookie key")))},
		"shared secret":           {config: fmt.Sprintf(jwtOf, "hmacKeyFile", write("hmac", secret.add("a short secret", "canary"+rand.Text()[:18])))},
		"private for public key":  {config: fmt.Sprintf(jwtOf, "publicKeyFile", write("public", "-----BEGIN PRIVATE KEY-----\n"+secret.sing("a private key")+"\n-----END PRIVATE KEY-----\n"))},
		"TLS key":                 {config: fmt.Sprintf("tls: {certFile: %[1]q, keyFile: %[1]q}\n", write("tls", secret.sing("a TLS key")))},
		"kubeconfig, no YAML":     {kubeconfig: kubeconfig("k1", "[{name: u, user: {token: "+secret.sing("a token")+"}")},
		"kubeconfig, wrong type":  {kubeconfig: kubeconfig("k2", "[{name: u, user: "+secret.sing("a user")+"}]")},
		"kubeconfig, bad base64":  {kubeconfig: kubeconfig("k3", "[{name: u, user: {client-key-data: '!"+secret.sing("a key")+"', client-certificate-data: AAAA}}]")},
		"kubeconfig, no PEM":      {kubeconfig: kubeconfig("k4", "[{name: u, user: {client-key-data: "+base64.StdEncoding.EncodeToString([]byte(secret.sing("a key in base64")))+", client-certificate-data: AAAA}}]")},
		"kubeconfig, unknown key": {kubeconfig: kubeconfig("k5", "[{name: u, user: {tokken: "+secret.sing("a misspelled token")+"}, context: "+secret.sing("another")+"}]\ntoken: ["+secret.sing("a token at the end"))},
	} {
		t.Run(name, func(t *testing.T) {
			file := write("gateway-"+strings.ReplaceAll(name, " ", "-")+".yaml", test.config+"log: {level: debug}\n")
			args := []string{"serve", "--config", file, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--kubeconfig", s.cluster.Kubeconfig()}
			if test.kubeconfig != "" {
				args[len(args)-1] = test.kubeconfig
			}
			p, err := process.Start(process.Options{Path: s.gateway, Args: args})
			if err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(startWithin, p.Kill)
			defer timer.Stop()
			if code := p.ExitCode(); code != 1 || p.Stderr.String() == "" {
				t.Errorf("it ends with %d: %s", code, harness.Tail(p.Stderr.String(), 5))
			}
			secret.mustNotBeIn(t, "what it says", p.Stdout.String()+p.Stderr.String())
		})
	}
}

// The gateway's own credentials are not quoted when the API server refuses them, or cannot be reached with them.
func TestRefusedCredentialsAreNotQuoted(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	secret := &canaries{texts: map[string]string{}}
	config, err := clientcmd.LoadFromFile(s.cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Token, user.ClientKeyData, user.ClientCertificateData = secret.sing("the refused token"), nil, nil
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	g := s.startGateway(t, gatewayOptions{kubeconfig: file, config: "log: {level: debug}\ncache: {syncTimeout: 1s}\n"})
	eventually(t, "the refusal is logged", func() error {
		if !strings.Contains(g.log(), "nauthorized") {
			return errors.New(harness.Tail(g.log(), 5))
		}
		return nil
	})
	var said bytes.Buffer
	for _, page := range []string{g.ops + "/readyz", g.ops + "/debug/kinds", g.ops + "/metrics", g.url + "/api/v1/pods", g.url + "/api", g.url + "/clusters", g.url + "/openapi/v3"} {
		a, err := fetch(http.MethodGet, page, bearer(s.viewer(t)))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&said, a.header, a.body)
	}
	secret.mustNotBeIn(t, "answers", said.String())
	secret.mustNotBeIn(t, "the log", g.log())
}
