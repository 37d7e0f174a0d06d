package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A caller without a valid token is told so, even by event streams, in the form that makes clients fetch a new one.
func TestTokensThatAreNoneAre401(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	good := s.viewer(t)
	short, err := s.sign("short", []string{"platform"}, "--ttl", "1s")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := s.sign("foreign", []string{"platform"}, "--issuer", "https://elsewhere.example.org")
	if err != nil {
		t.Fatal(err)
	}
	audience, err := s.sign("audience", []string{"platform"}, "--audience", "another")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a token expires", func() error { // the gateway allows for differing clocks
		if a := g.get(t, short, "/api/v1/pods?limit=1"); a.code != http.StatusUnauthorized {
			return fmt.Errorf("%d", a.code)
		}
		return nil
	})
	header, payload, signature := split(t, good)
	for name, authorization := range map[string]string{
		"none":              "",
		"garbage":           "Bearer garbage",
		"nothing":           "Bearer ",
		"another scheme":    "Basic dXNlcjpwYXNzd29yZA==",
		"expired":           "Bearer " + short,
		"foreign issuer":    "Bearer " + foreign,
		"foreign audience":  "Bearer " + audience,
		"changed payload":   "Bearer " + header + "." + payload[:len(payload)-2] + "AA." + signature,
		"without signature": "Bearer " + header + "." + payload + ".",
		"algorithm none":    "Bearer eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + payload + ".",
	} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			request := http.Header{"Accept": {accept}}
			if authorization != "" {
				request.Set("Authorization", authorization)
			}
			a, err := fetch(http.MethodGet, g.url+"/api/v1/pods", request)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(name, func(t *testing.T) { a.mustStatus(t, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "") })
			if !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("%s: WWW-Authenticate: %q", name, a.header.Get("WWW-Authenticate"))
			}
			if strings.Contains(a.body, "eyJ") {
				t.Errorf("%s: the token is in the answer: %s", name, a.body)
			}
		}
	}
	if strings.Contains(g.log(), payload) {
		t.Error("a token is in the gateway's log")
	}
}

func split(t *testing.T, token string) (header, payload, signature string) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no token", token)
	}
	return parts[0], parts[1], parts[2]
}

// A team sees its namespace and no other, whichever way it asks, and in each mode of the authorizer.
func TestTeamsSeeOnlyTheirNamespace(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "team-own", "team-other")
	s.allowTeam(t, "team-own")
	for _, namespace := range []string{"team-own", "team-other"} {
		if _, err := s.kube.CoreV1().Pods(namespace).Create(context.Background(), pod(namespace, "one", nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("rbac", func(t *testing.T) { s.mustSeeOnlyTeamOwn(t, s.sharedGateway(t)) })
	t.Run("sar", func(t *testing.T) {
		g := s.startGateway(t, gatewayOptions{config: "authorizer: {mode: sar}\n"})
		g.waitReady(t)
		s.mustSeeOnlyTeamOwn(t, g)
	})
}

func (s *stage) mustSeeOnlyTeamOwn(t *testing.T, g *gateway) {
	t.Helper()
	token, err := s.token("member", "team-own")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the binding is known", func() error {
		if a := g.get(t, token, "/api/v1/namespaces/team-own/pods"); a.code != http.StatusOK {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	})
	if a := g.get(t, token, "/auth/me?kinds=pods,nodes,secrets"); a.code != http.StatusOK || !strings.Contains(a.body, `"username":"member"`) ||
		!strings.Contains(a.body, `{"group":"","resource":"pods","all":false,"namespaces":["team-own"]}`) ||
		!strings.Contains(a.body, `{"group":"","resource":"nodes","all":false,"namespaces":[]}`) ||
		!strings.Contains(a.body, `{"group":"","resource":"secrets","all":false,"namespaces":[]}`) {
		t.Errorf("who he is, and what he may see: %d %s", a.code, a.body)
	}
	openAs(t, g, token, "/api/v1/namespaces/team-own/pods", nil).find(t, "synced")
	if a := g.get(t, token, "/api/v1/namespaces/team-own/pods/one"); a.code != http.StatusOK {
		t.Errorf("its own pod: %d %s", a.code, a.body)
	}
	for path, items := range map[string]int{
		"/api/v1/pods": 1, "/api/v1/pods?fieldSelector=metadata.namespace%3Dteam-own": 1, "/clusters/default/api/v1/pods": 1,
		"/api/v1/pods?fieldSelector=metadata.namespace%3Dteam-other": 0,
	} {
		if a := g.get(t, token, path); a.code != http.StatusOK || len(parseList(t, a.body).Items) != items || strings.Contains(a.body, `"team-other"`) {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
		stream := openAs(t, g, token, path, nil)
		if narrowed := stream.mustEvent(t, "narrowed"); narrowed.data != `{"namespaces":["team-own"]}` {
			t.Errorf("%s: %s", path, narrowed.data)
		}
		if synced := stream.find(t, "synced"); !strings.Contains(synced.data, fmt.Sprintf(`"count":%d}`, items)) || strings.Contains(stream.raw.String(), `"team-other"`) {
			t.Errorf("%s: %s", path, stream.raw.String())
		}
	}
	for _, path := range []string{
		"/api/v1/namespaces/team-other/pods",
		"/api/v1/namespaces/team-other/pods/one",
		"/api/v1/namespaces/team-other/pods/absent",
		"/api/v1/nodes",
		"/api/v1/namespaces/team-own/secrets",
		"/api/v1/namespaces/team-own/pods%2f..%2f..%2fteam-other/pods",
		"/api/v1/namespaces/team-own%2f..%2fteam-other/pods",
	} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			header := bearer(token)
			header.Set("Accept", accept)
			a, err := fetch(http.MethodGet, g.url+path, header)
			if err != nil {
				t.Fatal(err)
			}
			if a.code != http.StatusForbidden && !(strings.Contains(path, "%2f") && a.code == http.StatusNotFound) {
				t.Errorf("%s as %s: %d %s", path, accept, a.code, a.body)
			}
		}
	}
	header := bearer(token)
	header.Set("Accept", "text/event-stream")
	a, err := fetch(http.MethodGet, g.url+"/stream?own=/api/v1/namespaces/team-own/pods&other=/api/v1/namespaces/team-other/pods", header)
	if err != nil {
		t.Fatal(err)
	}
	a.mustProblem(t, "a stream of which a part is forbidden", http.StatusForbidden, "team-other")
}

// A permission that is taken away ends the streams that needed it, and later changes are not told.
func TestPermissionRevokedEndsStream(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "revoke")
	for _, mode := range []string{"rbac", "sar"} {
		t.Run(mode, func(t *testing.T) {
			g := s.startGateway(t, gatewayOptions{config: "authorizer: {mode: " + mode + ", cacheAllow: 1s, cacheDeny: 1s}\n"})
			g.waitReady(t)
			s.mustEndRevokedStreams(t, g, "revoked-"+mode)
		})
	}
}

func (s *stage) mustEndRevokedStreams(t *testing.T, g *gateway, user string) {
	t.Helper()
	revoke := s.allow(t, user, "", "configmaps")
	token, err := s.token(user)
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/namespaces/revoke/configmaps"
	eventually(t, "the binding is known", func() error {
		if a := g.get(t, token, path); a.code != http.StatusOK {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	})
	single := openAs(t, g, token, path, nil)
	single.find(t, "synced")
	several := openAs(t, g, token, "/stream?maps="+path, nil)
	several.find(t, "maps.synced")
	revoke()
	for _, stream := range []*stream{single, several} {
		end := stream.mustEnd(t)
		if len(end) == 0 || end[len(end)-1].event != "goodbye" || end[len(end)-1].reason(t) != "revoked" {
			t.Errorf("the end is %+v", end)
		}
	}
	if a := g.get(t, token, path); a.code != http.StatusForbidden {
		t.Errorf("a list is answered with %d", a.code)
	}
	header := bearer(token)
	header.Set("Accept", "text/event-stream")
	if a, err := fetch(http.MethodGet, g.url+path, header); err != nil || a.code != http.StatusForbidden {
		t.Errorf("the stream is begun again with %d, %v", a.code, err)
	}
}

// A stream ends with its token. That is announced, and the stream has the position from which a client with a new
// token goes on.
func TestStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "mayfly") // nothing else changes in it
	path := scope{kind: configMapsKind, namespace: "mayfly", labelSelector: "app=a"}.path()
	g.get(t, s.viewer(t), path)                                         // the kind is being read, which would take of the token's time
	token, err := s.sign("mayfly", []string{"platform"}, "--ttl", "6s") // of which a busy machine may need two until it is used
	if err != nil {
		t.Fatal(err)
	}
	stream := openAs(t, g, token, path, nil)
	synced := stream.find(t, "synced")
	end := stream.mustEnd(t)
	last := end[len(end)-1]
	announced := strings.Contains(stream.raw.String(), "event: expiring\n")
	if !announced || last.event != "goodbye" || last.reason(t) != "expired" {
		t.Errorf("announced: %t; the end is %+v", announced, last)
	}
	if early := time.Until(expiry(t, token)); early > time.Second {
		t.Errorf("it ended %s before the token", early)
	}
	again := s.open(t, g, path, http.Header{"Last-Event-Id": {last.id}})
	s.makeConfigMap(t, "mayfly", "after")
	if read := again.mustEvent(t, "added"); !strings.Contains(read.data, `"name":"after"`) {
		t.Errorf("after %s and %s came %+v", synced.id, last.id, read)
	}
}

// expiry is when a token ends.
func expiry(t *testing.T, token string) time.Time {
	t.Helper()
	claims := jwt.RegisteredClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil {
		t.Fatal(err)
	}
	return claims.ExpiresAt.Time
}
