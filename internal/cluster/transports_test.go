package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

// Lists must use HTTP/1.1, where they are faster, and watches HTTP/2, where a dead connection is noticed. That must
// hold after the credentials were read again, too.
func TestListsAndWatchesGoTheirOwnTransports(t *testing.T) {
	api := apitest.New(apitest.Pods)
	var mu sync.Mutex
	seen := map[string]int{} // the protocol by kind of request
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what := "list"
		if r.URL.Query().Get("watch") == "true" {
			what = "watch"
		}
		mu.Lock()
		seen[what] = r.ProtoMajor
		mu.Unlock()
		api.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	c, err := cluster.Connect(cluster.Options{Name: "test", Config: &rest.Config{
		Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"at first", "after a refresh"} {
		lw := c.ListWatch(apitest.Pods, &recorder{})
		if _, err := lw.List(metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		w, err := lw.Watch(metav1.ListOptions{ResourceVersion: "1000"})
		if err != nil {
			t.Fatal(err)
		}
		<-w.ResultChan() // its marker
		w.Stop()
		mu.Lock()
		if seen["list"] != 1 || seen["watch"] != 2 {
			t.Errorf("%s: %v", when, seen)
		}
		clear(seen)
		mu.Unlock()
		if moved, err := c.Refresh(); moved || err != nil {
			t.Fatal(moved, err)
		}
	}
	server.CloseClientConnections()
}
