package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A configuration that is changed is in use once the gateway has been told so by SIGHUP. Streams go
// on, and nothing ends.
func TestSIGHUPReadsTheConfigurationAgain(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "reload")
	g := s.startGateway(t, gatewayOptions{config: "stream: {perUser: 3}\n"})
	g.waitReady(t)
	stream := openAs(t, g, s.admin(t), "/api/v1/namespaces/reload/configmaps", nil)
	stream.find(t, "synced")
	file := g.args[2]
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for n, limit := range []string{"1", "2"} {
		if err := os.WriteFile(file, bytes.Replace(text, []byte("perUser: 3"), []byte("perUser: "+limit), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		g.process.Signal(syscall.SIGHUP)
		eventually(t, "the new limit is in use", func() error {
			inUse, err := fetch(http.MethodGet, g.ops+"/debug/config", nil)
			if err == nil && !strings.Contains(inUse.body, "    perUser: "+limit+"\n") {
				err = fmt.Errorf("%d %s", inUse.code, inUse.body)
			}
			return err
		})
		name := fmt.Sprint("after-", n)
		if _, err := s.kube.CoreV1().ConfigMaps("reload").Create(t.Context(), configMap("reload", name, nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if added := stream.find(t, "added"); !strings.Contains(added.data, `"name":"`+name+`"`) {
			t.Errorf("the stream tells of %s, not of %s", added.data, name)
		}
	}
	eventually(t, "the log says that the file was read", func() error {
		if n := strings.Count(g.log(), "configuration was read again"); n < 2 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
}
