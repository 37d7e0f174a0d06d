package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// volume is a directory with a configuration file that is replaced as Kubernetes replaces the files of a ConfigMap:
// the file is a link through another link to a directory, and only that other link is swapped.
type volume struct {
	file  string
	count int
}

func (v *volume) write(t *testing.T, text string) {
	t.Helper()
	dir := filepath.Dir(v.file)
	v.count++
	version := fmt.Sprintf("..%d", v.count)
	if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, version, "gateway.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	swap := func(target, link string) {
		if err := os.Symlink(target, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	swap(version, filepath.Join(dir, "..data"))
	if v.count == 1 {
		swap(filepath.Join("..data", "gateway.yaml"), v.file)
	}
}

// clusters returns the names and states that /clusters reports.
func (g *gateway) clusters(t *testing.T, token string) string {
	t.Helper()
	var answer struct {
		Clusters []struct{ Name, State string }
	}
	a := g.get(t, token, "/clusters")
	if err := json.Unmarshal([]byte(a.body), &answer); err != nil {
		t.Fatalf("%d %s", a.code, a.body)
	}
	var all []string
	for _, c := range answer.Clusters {
		all = append(all, c.Name+" "+c.State)
	}
	return strings.Join(all, ", ")
}

// The clusters of the file come and go without a restart, and one that is away delays no others.
func TestClustersFollowTheConfigurationFile(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "clusters")
	g := s.startGateway(t, gatewayOptions{})
	g.waitReady(t)
	token := s.viewer(t)
	volume := &volume{file: g.args[2]}
	text, err := os.ReadFile(volume.file)
	if err != nil {
		t.Fatal(err)
	}
	unreachable := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(unreachable, []byte(`{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}],
contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: x}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	clusters := func(more string) string { return string(text) + "clusters:\n- {name: default}\n" + more }
	other := fmt.Sprintf("- {name: other, kubeconfig: %q}\n", s.cluster.Kubeconfig())
	away := fmt.Sprintf("- {name: away, kubeconfig: %q}\n", unreachable)
	told := func(want string) {
		t.Helper()
		eventually(t, "/clusters tells "+want, func() error {
			if have := g.clusters(t, token); have != want {
				return fmt.Errorf("%s", have)
			}
			return nil
		})
	}
	stay := s.open(t, g, "/api/v1/namespaces/clusters/configmaps", nil)
	stay.find(t, "synced")

	volume.write(t, clusters(other+away))
	told("default live, other live, away stale")
	path := "/api/v1/namespaces/clusters/configmaps"
	eventually(t, "both tell the same, since they are the same cluster", func() error {
		if a, b := g.list(t, token, path), g.list(t, token, "/clusters/other"+path); len(a.Items) == 0 || len(a.Items) != len(b.Items) {
			return fmt.Errorf("%d here, %d there", len(a.Items), len(b.Items))
		}
		return nil
	})
	if code, body := g.readyz(); code != http.StatusOK || !strings.Contains(body, "away: cluster away") {
		t.Errorf("readyz: %d %s", code, body)
	}
	if a := g.get(t, token, "/clusters/away/api/v1/pods"); a.code != http.StatusServiceUnavailable {
		t.Errorf("of the cluster that is away: %d %s", a.code, a.body)
	}
	if end := s.open(t, g, "/clusters/away/api/v1/pods", nil).find(t, "goodbye"); end.reason(t) != "unavailable" {
		t.Errorf("a stream of it is told %+v", end)
	}
	leave := s.open(t, g, "/clusters/other/api/v1/namespaces/clusters/configmaps", nil)
	leave.find(t, "synced")

	volume.write(t, clusters("- {nmae: other}\n"))
	eventually(t, "the log says what is wrong", func() error {
		if !strings.Contains(g.log(), "clusters[1].nmae") {
			return fmt.Errorf("it does not")
		}
		return nil
	})
	told("default live, other live, away stale")
	s.makeConfigMap(t, "clusters", "both")
	for _, stream := range []*stream{stay, leave} {
		if event := stream.find(t, "added"); !strings.Contains(event.data, `"name":"both"`) {
			t.Errorf("%+v", event)
		}
	}

	volume.write(t, clusters(""))
	if end := leave.find(t, "goodbye"); end.reason(t) != "gone" {
		t.Errorf("a stream of the cluster that was removed is told %+v", end)
	}
	told("default live")
	if a := g.get(t, token, "/clusters/other/api/v1/pods"); a.code != http.StatusNotFound {
		t.Errorf("the cluster that was removed: %d", a.code)
	}
	s.makeConfigMap(t, "clusters", "last")
	if event := stay.find(t, "added"); !strings.Contains(event.data, `"name":"last"`) {
		t.Errorf("%+v", event)
	}
}
