package apitest

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Start serves a new API on loopback until the test ends.
func Start(t testing.TB) (a *API, url string) {
	t.Helper()
	a = New()
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

func sortedKeys(objects map[string]object) []string { return slices.Sorted(maps.Keys(objects)) }
