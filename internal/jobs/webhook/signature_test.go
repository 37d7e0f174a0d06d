package webhook

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
)

func TestEachSecretOfARotationIsAcceptedByTheSpecificationsLibrary(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	rec := newReceiver(t, nil)
	old, next := newSecret(), newSecret()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	file := secretFile(t, "# the old one", old)
	senders, _ := p.start(Target{Name: "a", URL: rec.URL, SecretFile: file})
	send := func(uid string) arrival {
		t.Helper()
		n := len(rec.arrivals())
		p.write(uid, jobs.Failed)
		senders.Wake()
		until(t, uid+" arrived", func() bool { return len(rec.arrivals()) > n })
		return rec.arrivals()[n]
	}
	accepted := func(a arrival, secret string) bool {
		t.Helper()
		hook, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		return hook.Verify(a.body, a.header) == nil
	}
	changed := func(lines ...string) {
		writeLines(t, file, lines...)
		s := senders.targets[0].secrets
		s.mu.Lock()
		s.read = time.Time{}
		s.mu.Unlock()
	}
	if a := send("u1"); !accepted(a, old) || accepted(a, next) {
		t.Error("before the rotation")
	}
	changed(next, old, "whsk_"+base64.StdEncoding.EncodeToString(private))
	a := send("u2")
	if !accepted(a, old) || !accepted(a, next) {
		t.Error("during the rotation")
	}
	signatures := strings.Fields(a.header.Get("Webhook-Signature"))
	encoded, asymmetric := strings.CutPrefix(signatures[2], "v1a,")
	signature, err := base64.StdEncoding.DecodeString(encoded)
	content := a.header.Get("Webhook-Id") + "." + a.header.Get("Webhook-Timestamp") + "." + string(a.body)
	if err != nil || !asymmetric || !ed25519.Verify(public, []byte(content), signature) {
		t.Errorf("the asymmetric signature: %q", signatures)
	}
	changed(next)
	if a := send("u3"); accepted(a, old) || !accepted(a, next) {
		t.Error("after the rotation")
	}
	changed("not a secret")
	if a := send("u4"); !accepted(a, next) {
		t.Error("a file that became bad")
	}
}

func TestBadSecretsAreRefusedWithoutBeingShown(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	short := base64.StdEncoding.EncodeToString(make([]byte, 8))
	for text, wanted := range map[string]string{
		newSecret() + "\r\n\n  # more\n" + key + newSecret():        "3",
		"whsk_" + base64.StdEncoding.EncodeToString(private.Seed()): "1",
		"":                                       "has no secret",
		"# nothing":                              "has no secret",
		newSecret() + "\nhunter2":                "line 2: is none of",
		"whsec_" + short:                         "line 1: whsec_ must",
		"whsec_hunter2!":                         "line 1: whsec_ must",
		"whsk_" + short:                          "line 1: whsk_ must",
		"\n-----BEGIN PRIVATE KEY-----\nhunter2": "line 2: is none of",
		strings.ReplaceAll(key, "M", "hunter2"):  "line 1: is n",
	} {
		signers, err := readSecrets(text)
		got := strconv.Itoa(len(signers))
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, wanted) || strings.Contains(got, "hunter2") {
			t.Errorf("%q: %s, want %s", text, got, wanted)
		}
	}
	err = check([]Target{{Name: "a"}, {Name: "b", SecretFile: t.TempDir() + "/missing"}})
	if err == nil || !strings.HasPrefix(err.Error(), "webhooks[1].secretFile: ") {
		t.Error(err)
	}
	s, err := newSecrets(secretFile(t, newSecret()), slog.New(slog.DiscardHandler))
	if err != nil || !strings.HasPrefix(s.sign("msg_1", strconv.Itoa(1), []byte("{}")), "v1,") {
		t.Error(err)
	}
}
