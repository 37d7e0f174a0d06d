package clients

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestNginxReloadLosesNothing reloads nginx while objects change. By default the old workers keep their streams, and
// clients notice nothing. If old workers have a time limit, as with ingress controllers, streams are cut anywhere,
// even inside a frame. The clients then come back to their positions.
func TestNginxReloadLosesNothing(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	c := newCertificate(t, t.TempDir())
	g, n := s.newGateway(t), s.newNamespace(t, "reload")
	g.start(t, quickRetry)
	patient := startNginx(t, g, c, nginxOptions{})
	hasty := startNginx(t, g, c, nginxOptions{main: "worker_shutdown_timeout 1s;\n"})
	inNode, inGo := npmDriver(t), goDriver(t)
	var kept, cut subjects
	for _, c := range []client{{key: "undici", driver: inNode}, {key: "launchdarkly/eventsource", driver: inGo}} {
		kept = append(kept, c.subscribe(t, patient.plain+n.path()))
		cut = append(cut, c.subscribe(t, hasty.plain+n.path()))
	}
	all := append(append(subjects{}, kept...), cut...)

	stop := n.churn(t, 50)
	all.settle(t, n)
	patient.reload(t)
	hasty.reload(t)
	eventually(t, "the clients whose streams were cut come back", func() error {
		for _, s := range cut {
			if did := s.tallied(); did.opens < 2 {
				return fmt.Errorf("%s: %+v", s.client.key, did)
			}
		}
		return nil
	})
	all.settle(t, n)
	stop()
	all.settle(t, n)
	all.compare(t, n)
	for _, s := range all {
		if did := s.tallied(); did.synced != 1 || len(did.resets) > 0 || did.deaths > 0 {
			t.Errorf("%s did not just go on: %+v", s.client.key, did)
		}
	}
	for _, s := range kept {
		if did := s.tallied(); did.opens != 1 {
			t.Errorf("%s lost its stream by a reload that leaves streams alone: %+v", s.client.key, did)
		}
	}
}

const quickRetry = "stream: {retry: 200ms, perUser: 0, perAddress: 0, watchesPerUser: 0}\n"

// docs/clients.md recommends these settings for ingresses, so that a gateway that is away for a moment does not end
// the streams of standard clients for good.
const (
	nginxAgain = `error_page 502 503 504 = @again;
location @again {
	if ($http_accept !~ text/event-stream) { return 502; }
	default_type text/event-stream;
	add_header Cache-Control no-store;
	return 200 "retry: 2000\n\n";
}
`
	haproxyAgain = `	http-request set-var(txn.stream) bool(true) if { req.hdr(accept) -m sub text/event-stream }
	http-error status 502 content-type text/event-stream string "retry: 2000\n\n"
	http-error status 503 content-type text/event-stream string "retry: 2000\n\n"
	http-error status 504 content-type text/event-stream string "retry: 2000\n\n"
	http-after-response set-status 200 if { status 502:504 } { var(txn.stream) -m bool }
`
)

// TestStandardClientSurvivesAnIngressWithoutGateway takes the only gateway away. Ingresses then answer 502 or 503,
// which ends a standard EventSource for ever, unless they are configured to answer with a stream that ends at once.
func TestStandardClientSurvivesAnIngressWithoutGateway(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(tablePage)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{nginxAgain, haproxyAgain} {
		if !strings.Contains(string(page), text) {
			t.Errorf("%s does not have what is tested here:\n%s", tablePage, text)
		}
	}
	s := onStage(t)
	c := newCertificate(t, t.TempDir())
	g, n := s.newGateway(t), s.newNamespace(t, "away")
	g.start(t, quickRetry)
	undici := client{key: "undici", driver: npmDriver(t)}
	cases := []struct {
		name     string
		through  ingress
		survives bool
		subject  *subject
	}{
		{name: "nginx", through: startNginx(t, g, c, nginxOptions{}).ingress},
		{name: "HAProxy", through: startHAProxy(t, g, c, "")},
		{name: "nginx as documented", through: startNginx(t, g, c, nginxOptions{server: nginxAgain}).ingress, survives: true},
		{name: "HAProxy as documented", through: startHAProxy(t, g, c, haproxyAgain), survives: true},
	}
	var all subjects
	for i := range cases {
		cases[i].subject = undici.subscribe(t, cases[i].through.plain+n.path())
		all = append(all, cases[i].subject)
	}
	stop := n.churn(t, 20)
	all.settle(t, n)
	g.kill()
	for _, c := range cases {
		url := c.through.plain + n.path()
		stream, list := statusOf(t, url, "text/event-stream"), statusOf(t, url, "application/json")
		t.Logf("%-22s answers a stream with %s, a list with %s", c.name, stream, list)
		if got := stream == "200 text/event-stream"; got != c.survives {
			t.Errorf("%s answers a stream with %s", c.name, stream)
		}
		if !strings.HasPrefix(list, "50") {
			t.Errorf("%s answers a list with %s", c.name, list)
		}
	}
	eventually(t, "the clients of the ingresses as they come give up", func() error {
		for _, c := range cases {
			if did := c.subject.tallied(); !c.survives && did.deaths == 0 {
				return fmt.Errorf("%s: %+v", c.name, did)
			}
		}
		return nil
	})
	g.start(t, quickRetry)
	all.settle(t, n)
	stop()
	all.settle(t, n)
	all.compare(t, n)
	for _, c := range cases {
		if did := c.subject.tallied(); c.survives && (did.deaths > 0 || did.synced != 1) {
			t.Errorf("%s: the client did not just go on: %+v", c.name, did)
		}
	}
}

// statusOf sends a request, and returns the status, and for a stream its type.
func statusOf(t *testing.T, url, accept string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	client := http.Client{Timeout: time.Minute}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		return response.Status
	}
	return "200 " + response.Header.Get("Content-Type")
}
