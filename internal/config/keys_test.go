package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

func TestChangedNamesEachKeyThatDiffers(t *testing.T) {
	t.Parallel()
	a, b := Default(), Default()
	if keys := Changed(a, b); len(keys) > 0 {
		t.Errorf("nothing was changed, but %q", keys)
	}
	b.Stream.PerUser, b.Log.Level, b.Drain = 7, "debug", Duration(time.Minute)
	b.Cache.Indexes = map[Kind][]string{}
	b.Auth.OIDCLogin.Scopes = append(b.Auth.OIDCLogin.Scopes, "openid")
	want := []string{"cache.indexes", "stream.perUser", "drain", "auth.oidcLogin.scopes", "log.level"}
	if keys := Changed(a, b); !reflect.DeepEqual(keys, want) {
		t.Errorf("%q, want %q", keys, want)
	}
	if keys := Changed(a.With(b, "stream.perUser", "log.level"), b); !reflect.DeepEqual(keys, []string{"cache.indexes", "drain", "auth.oidcLogin.scopes"}) {
		t.Errorf("after two were taken over: %q", keys)
	}
}

// What is printed is a configuration: read again, it is the same.
func TestWhatIsPrintedCanBeRead(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]string{
		"defaults": "",
		"others": `
cache: {preload: [], indexes: {jobs.v1.batch: [status.active]}, idleAfter: 0}
clusters: [{name: a, kubeconfig: /a, context: x}, {name: b}]
kinds: {deny: ["*.batch", secrets]}
ring: {bytes: 1Gi, age: 90m}
auth: {jwt: [{issuer: dev, audiences: [kubecast], publicKeyFile: dev.pub, claims: {groupsPrefix: "dev:"}}]}
history: {kinds: [{resource: trainjobs.example.org, state: '"Running"'}]}
`,
	} {
		want, err := Parse([]byte(given))
		if err != nil {
			t.Fatal(err)
		}
		want.Webhooks = []Webhook{} // their addresses are not shown
		printed, err := Print(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Parse(printed); err != nil || len(Changed(got, want)) > 0 {
			t.Errorf("%s: %v: differs in %q\n%s", name, err, Changed(got, want), printed)
		}
	}
}

func TestPrintShowsNoSecret(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Webhooks = []Webhook{{Name: "chat", URL: "https://chat.example.org/services/s3cret"}}
	for database, shown := range map[string]string{
		"sqlite":                            "sqlite",
		"none":                              "none",
		"sqlite:///var/lib/history.db":      "sqlite:///var/lib/history.db",
		"postgres://jane:s3cret@db:5432/kc": "postgres://jane@db:5432/kc",
		"postgres://db/kc?sslmode=require&password=s3cret": "postgres://db/kc",
		"mysql://jane:s3cr%zz@db/kc":                       hidden,
	} {
		c.History.Database = database
		printed, err := Print(c)
		if err != nil || strings.Contains(string(printed), "s3cr") {
			t.Errorf("%v\n%s", err, printed)
		}
		var read struct{ History struct{ Database string } }
		if err := yaml.Unmarshal(printed, &read); err != nil || read.History.Database != shown {
			t.Errorf("%s is shown as %q, want %q (%v)", database, read.History.Database, shown, err)
		}
	}
	if c.Webhooks[0].URL == hidden {
		t.Error("the configuration itself was changed")
	}
}
