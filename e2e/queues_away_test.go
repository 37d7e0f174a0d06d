package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// visibilityService is the APIService of Kueue's visibility API, of a version that is answered at a port of loopback.
func visibilityService(version, port string) string {
	return fmt.Sprintf(`apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: %[1]s.visibility.kueue.x-k8s.io}
spec:
  group: visibility.kueue.x-k8s.io
  version: %[1]s
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: kueue-visibility-server, namespace: kube-system, port: %[2]s}
`, version, port)
}

// While Kueue's visibility API is away, whether it is not installed or does not answer, queues are told from their objects: who waits is
// the same, and positions are null. When it is back they are Kueue's own, also if it is an old one, of v1beta1 alone.
func TestQueuesAreToldWhileTheirOrderIsAway(t *testing.T) {
	t.Parallel()
	q := startQueuers(t, "queuesaway")
	s := q.stage
	for range 15 {
		q.submit(t)
	}
	q.look(t)
	q.agree(t)
	const name = "v1beta2.visibility.kueue.x-k8s.io"
	port := s.kubectl(t, "", "get", "apiservice", name, "-o", "jsonpath={.spec.service.port}")
	for what, goes := range map[string]func(){
		"not installed":   func() { s.kubectl(t, "", "delete", "apiservice", name) },
		"does not answer": func() { s.kubectl(t, visibilityService("v1beta2", "1"), "apply", "-f", "-") },
	} {
		goes()
		q.submitToAll(t) // so that Kueue is asked
		q.hasNoPlaces(t, what)
		s.kubectl(t, visibilityService("v1beta2", port), "apply", "-f", "-")
		q.agree(t)
	}
	s.kubectl(t, "", "delete", "apiservice", name)
	q.submitToAll(t)
	q.hasNoPlaces(t, "an old one is to come")
	s.kubectl(t, visibilityService("v1beta1", oldVisibility(t, port)), "apply", "-f", "-")
	q.version = "v1beta1"
	q.agree(t)
}

// oldVisibility answers what a visibility API at a port does, as its older version, and returns its own port.
func oldVisibility(t *testing.T, port string) string {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	old := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response, err := client.Get("https://127.0.0.1:" + port + strings.Replace(r.URL.String(), "/v1beta1", "/v1beta2", 1))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(response.StatusCode)
		_, _ = io.WriteString(w, strings.ReplaceAll(string(text), "visibility.kueue.x-k8s.io/v1beta2", "visibility.kueue.x-k8s.io/v1beta1"))
	}))
	t.Cleanup(old.Close)
	t.Cleanup(client.CloseIdleConnections)
	at, err := url.Parse(old.URL)
	if err != nil {
		t.Fatal(err)
	}
	return at.Port()
}

func (q *queuers) submitToAll(t *testing.T) {
	t.Helper()
	for _, line := range teamLines {
		q.submitTo(t, line)
	}
}

// hasNoPlaces waits until queues are told without positions: of those jobs that wait, by their objects.
func (q *queuers) hasNoPlaces(t *testing.T, what string) {
	t.Helper()
	eventually(t, what+": there are no positions", func() error {
		for _, whole := range []string{"team-a", "team-b"} {
			text := q.stage.kubectl(t, "", "get", "workloads.kueue.x-k8s.io", "-A", "-o",
				`jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.ownerReferences[0].name} {.spec.queueName} {.status.conditions[?(@.type=="QuotaReserved")].status}{"\n"}{end}`)
			var want, got []string
			for line := range strings.Lines(text) {
				f := strings.Fields(line)
				namespace, _, _ := strings.Cut(f[0], "/")
				if (whole == "team-a") == (namespace == "team-a" && f[1] == "line") && (len(f) < 3 || f[2] != "True") {
					want = append(want, f[0])
				}
			}
			code, all := q.gatewaySays(t, "admin", "queue-all", whole)
			for _, one := range all {
				if one.Position != 0 || one.WholePosition != 0 || one.Hidden {
					return fmt.Errorf("%s is told at %d of %s", one.Name, one.WholePosition, whole)
				}
				got = append(got, one.Namespace+"/"+one.Name)
			}
			slices.Sort(want)
			slices.Sort(got)
			if code != http.StatusOK || !slices.Equal(got, want) {
				return fmt.Errorf("of %s %d %q is told, and %q wait", whole, code, got, want)
			}
		}
		return nil
	})
}
