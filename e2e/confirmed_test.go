package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/e2e/faultproxy"
)

// A permission that is taken away while only bindings cannot be read counts for a minute and no longer. Then streams
// end, all requests are refused, and readiness, log and metric say why. It recovers by itself.
func TestRevocationIsHonouredThoughBindingsCannotBeRead(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "blind")
	p := faultproxy.Start(t, s.cluster)
	g := s.startGateway(t, gatewayOptions{kubeconfig: p.Kubeconfig(t, s.cluster)})
	g.waitReady(t)
	revoke := s.allow(t, "blind", "", "configmaps")
	token, err := s.token("blind")
	if err != nil {
		t.Fatal(err)
	}
	const path = "/api/v1/namespaces/blind/configmaps"
	mustKnow(t, token, path, g)
	failed, mend := p.Fail(t, "", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", http.StatusInternalServerError)
	eventually(t, "the gateway cannot read bindings", func() error {
		if p.Times(failed) == 0 {
			return fmt.Errorf("it has not tried")
		}
		return nil
	})
	revoke()
	began := time.Now()
	if a := g.get(t, token, path); a.code != http.StatusOK {
		t.Errorf("an API server that fails once takes everything away: %d", a.code)
	}
	time.Sleep(30 * time.Second)
	stream := openAs(t, g, token, path, nil)
	stream.find(t, "synced")
	end := stream.mustEnd(t)
	if last := end[len(end)-1]; last.event != "goodbye" || last.reason(t) != "unavailable" {
		t.Errorf("the end is %+v", last)
	}
	if took := time.Since(began); took > 90*time.Second {
		t.Errorf("the stream ended after %s", took)
	}
	if a := g.get(t, token, path); a.code != http.StatusServiceUnavailable {
		t.Errorf("a list is answered with %d %s", a.code, a.body)
	}
	if code, body := g.readyz(); code != http.StatusServiceUnavailable || !strings.Contains(body, "clusterrolebindings") {
		t.Errorf("readiness: %d %s", code, body)
	}
	g.says(t, "permissions do not count any more")
	a, err := fetch(http.MethodGet, g.ops+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, told, _ := strings.Cut(a.body, `kubecast_rbac_unconfirmed_seconds{cluster="default"} `)
	told, _, _ = strings.Cut(told, "\n")
	if unconfirmed, err := strconv.ParseFloat(told, 64); err != nil || unconfirmed < 60 || unconfirmed > time.Since(began).Seconds()+60 {
		t.Errorf("the metric tells %q, %v", told, err)
	}
	mend()
	eventually(t, "what was taken away is refused", func() error {
		if a := g.get(t, token, path); a.code != http.StatusForbidden {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	})
	g.waitReady(t)
}

// An API server that was just restarted denies everything for a moment, until it has read its roles. No list is
// refused and no stream ends because of that.
func TestRestartedAPIServerTakesNoPermissionAway(t *testing.T) {
	s := onFaultStage(t)
	s.namespaces(t, "denials")
	for _, mode := range []string{"sar", "rbac"} {
		t.Run(mode, func(t *testing.T) {
			g := s.startGateway(t, gatewayOptions{config: "authorizer: {mode: " + mode + ", cacheAllow: 1s, cacheDeny: 1s}\n"})
			g.waitReady(t)
			user := "denied-" + mode
			s.allow(t, user, "", "configmaps")
			token, err := s.token(user)
			if err != nil {
				t.Fatal(err)
			}
			const path = "/api/v1/namespaces/denials/configmaps"
			mustKnow(t, token, path, g)
			stream := openAs(t, g, token, path, nil)
			stream.find(t, "synced")
			ctx, cancel := context.WithCancel(context.Background())
			var asking sync.WaitGroup
			codes := map[int]int{}
			asking.Go(func() {
				for ctx.Err() == nil {
					if a, err := fetchBy(g.client, http.MethodGet, g.url+path, bearer(token)); err == nil {
						codes[a.code]++
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
			for range 2 {
				if err := s.cluster.Fault(context.Background(), "apiserver-restart"); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the API server is back", func() error {
					_, err := s.kube.Discovery().ServerVersion()
					return err
				})
				time.Sleep(3 * time.Second) // long enough for it to be asked anew, whatever is remembered
			}
			cancel()
			asking.Wait()
			for code, n := range codes {
				if code != http.StatusOK && (code != http.StatusServiceUnavailable || mode == "rbac") {
					t.Errorf("%d lists were answered with %d; all: %v", n, code, codes)
				}
			}
			name := "after-" + mode
			s.makeConfigMap(t, "denials", name)
			for {
				read := stream.mustNext(t)
				if read.event == "goodbye" || read.event == "narrowed" {
					t.Fatalf("%+v", read)
				}
				if strings.Contains(read.data, `"name":"`+name+`"`) {
					break
				}
			}
		})
	}
}
