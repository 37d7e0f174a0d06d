package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The values of a Secret never leave the gateway: not in a list, an object, a stream or a log, and not in the
// annotation that kubectl apply leaves. Nor can they be guessed bit by bit, by asking which Secrets have a value.
func TestSecretsNeverLeave(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "secrets")
	g := s.startGateway(t, gatewayOptions{config: "log: {level: debug}\ncache: {indexes: {secrets: [data.password]}}\n"})
	g.waitReady(t)
	user := strings.ToLower(t.Name())
	s.allow(t, user, "", "secrets")
	token, err := s.token(user)
	if err != nil {
		t.Fatal(err)
	}
	plain := []string{"correct-horse-battery", "staple-in-string-data", "changed-to-this-one"}
	manifest := func(password string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "applied", "namespace": "secrets", "labels": {"app": "a"}},
			"data": {"password": %q}, "stringData": {"other": %q}}`, base64.StdEncoding.EncodeToString([]byte(password)), plain[1])
	}
	s.kubectl(t, manifest(plain[0]), "apply", "-f", "-")
	const secrets = "/api/v1/namespaces/secrets/secrets"
	eventually(t, "the Secret may be seen", func() error {
		if a := g.get(t, token, secrets); !strings.Contains(a.body, `"name":"applied"`) {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	})
	said := map[string]string{}
	single := openAs(t, g, token, secrets+"?labelSelector=app%3Da", nil)
	several := openAs(t, g, token, "/stream?s="+secrets+"&deltas=merge-patch", nil)
	one := openAs(t, g, token, secrets+"/applied", nil)
	single.find(t, "synced")
	several.find(t, "s.synced")
	one.find(t, "synced")
	s.kubectl(t, manifest(plain[2]), "apply", "-f", "-")
	single.find(t, "modified")
	one.find(t, "modified")
	if _, err := s.kube.CoreV1().Secrets("secrets").Patch(context.Background(), "applied", "application/merge-patch+json",
		[]byte(`{"metadata": {"labels": {"last": "yes"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(several.raw.String(), `"last":"yes"`) {
		several.mustNext(t)
	}
	for _, path := range []string{secrets, secrets + "/applied", secrets + "?limit=1", "/api/v1/secrets"} {
		said[path] = g.get(t, token, path).body
	}
	if err := s.kube.CoreV1().Secrets("secrets").Delete(context.Background(), "applied", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	single.find(t, "deleted")
	said["stream"], said["several"], said["one"] = single.raw.String(), several.raw.String(), one.raw.String()
	metrics, err := fetch(http.MethodGet, g.ops+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	said["metrics"], said["log"] = metrics.body, g.log()
	for where, text := range said {
		for _, value := range plain {
			for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), "last-applied"} {
				if strings.Contains(text, form) {
					t.Errorf("%s contains %q", where, form)
				}
			}
		}
	}
	if !strings.Contains(said[secrets], `"password":""`) || !strings.Contains(said["stream"], `"password":""`) {
		t.Errorf("the keys of a Secret's data should be seen: %s", said[secrets])
	}
}

// A selector must not distinguish a right guess from a wrong one.
func TestSelectorsAreNoOracleForSecrets(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "oracle")
	g := s.sharedGateway(t)
	user := strings.ToLower(t.Name())
	s.allow(t, user, "", "secrets")
	token, err := s.token(user)
	if err != nil {
		t.Fatal(err)
	}
	value := base64.StdEncoding.EncodeToString([]byte("open sesame"))
	s.kubectl(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "guessed", "namespace": "oracle"}, "data": {"password": %q}}`, value), "apply", "-f", "-")
	const secrets = "/api/v1/namespaces/oracle/secrets"
	eventually(t, "the Secret may be seen", func() error {
		if a := g.get(t, token, secrets); !strings.Contains(a.body, `"name":"guessed"`) {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	})
	annotation := `metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`
	for _, field := range []string{"data.password", "stringData.password", annotation, "@this", "data|password", "data.#", "data.*", "data.p*"} {
		right := g.get(t, token, secrets+query("fieldSelector", field+"="+escapeField(value)))
		wrong := g.get(t, token, secrets+query("fieldSelector", field+"="+escapeField(strings.ToLower(value))))
		if right.code != wrong.code || right.code == http.StatusOK && strings.Contains(right.body, "guessed") {
			t.Errorf("%s: a right guess is answered with %d %s, and a wrong one with %d %s", field, right.code, right.body, wrong.code, wrong.body)
		}
	}
}

// escapeField escapes a value for the syntax of field selectors.
func escapeField(value string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`, `=`, `\=`).Replace(value)
}
