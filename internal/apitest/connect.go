package apitest

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Connect returns a connection to the API server that needs no network.
func (a *API) Connect(t testing.TB) *cluster.Cluster { return a.ConnectAs(t, "test") }

// ConnectAs returns a connection with a user agent, by which Intercept may recognise its requests.
func (a *API) ConnectAs(t testing.TB, userAgent string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Connect(cluster.Options{Name: "test", UserAgent: userAgent, Config: &rest.Config{Host: "http://api.test", Transport: a}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Start serves a new API with the usual kinds on loopback until the test ends.
func Start(t testing.TB) (a *API, url string) {
	t.Helper()
	a = New(Usual...)
	server := httptest.NewServer(a)
	t.Cleanup(func() {
		a.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return a, server.URL
}

// Kubeconfig writes a kubeconfig for an API server's address, and returns the file's name.
func Kubeconfig(t testing.TB, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
users: [{name: test, user: {}}]
`, url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
