package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Clusters have CRDs by the thousand, each in a group of its own, and discovery is read anew whenever one changes.
func TestDiscoveryOfManyGroupsTakesNoLongerThanThereAreKinds(t *testing.T) {
	// The quickest of several, by the processor's time, since the machine may be busy with
	// something else. Time per group is the same, or nearly, if it is not looked through all kinds
	// for each.
	quickest := func(groups int) (took time.Duration) {
		took = time.Hour
		for range 5 {
			found, served := manyGroups(groups)
			began := processorTime(t)
			found.prefer(served)
			took = min(took, processorTime(t)-began)
			for _, group := range served {
				for resource, version := range map[string]string{"things": "v1", "v1only": "v1", "v2only": "v2"} {
					if kind := found.preferred[schema.GroupResource{Group: group.Name, Resource: resource}]; kind.Version != version {
						t.Fatalf("%s of %s is preferred as %q", resource, group.Name, kind.Version)
					}
				}
			}
		}
		return took
	}
	if few, many := quickest(60), quickest(6000); many > 1000*few { // 10,000 times if all are looked through
		t.Errorf("%v for 60 groups, %v for 6000", few, many)
	}
}

// Whoever reads the log has to see that the gateway's credentials are refused, and not only that the cluster cannot be reached.
func TestRefusedDiscoverySaysSo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"forbidden","reason":"Forbidden","code":403}`)
	}))
	defer server.Close()
	c, err := Connect(Options{Name: "default", Config: &rest.Config{Host: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.discover(t.Context()); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "403 Forbidden") {
		t.Errorf("refused discovery is told as %v", err)
	}
}

// processorTime is what this process has used of the processors' time.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// manyGroups is so many groups, and the kinds that were found in them.
func manyGroups(groups int) (*catalog, []*metav1.APIGroup) {
	found := &catalog{kinds: map[schema.GroupVersionResource]Kind{}, preferred: map[schema.GroupResource]Kind{}}
	var served []*metav1.APIGroup
	for i := range groups {
		name := fmt.Sprintf("g%d.example.org", i)
		group := &metav1.APIGroup{Name: name, PreferredVersion: metav1.GroupVersionForDiscovery{Version: "v1"}}
		for _, version := range []string{"v2", "v1"} {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: version})
			for _, resource := range []string{"things", version + "only"} {
				gvr := schema.GroupVersionResource{Group: name, Version: version, Resource: resource}
				found.kinds[gvr] = Kind{Group: name, Version: version, Resource: resource}
			}
		}
		served = append(served, group)
	}
	return found, served
}
