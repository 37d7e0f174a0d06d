package app

import (
	"bufio"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/config"
)

// reloaded is a gateway that follows a file, and what asks it to read it at once.
type reloaded struct {
	*gateway
	*file
	level *slog.LevelVar
	again chan os.Signal
}

func startReloaded(t *testing.T, change func(*config.Config)) *reloaded {
	t.Helper()
	_, url := apitest.Start(t)
	cfg, token := configuration(t, url)
	if change != nil {
		change(&cfg)
	}
	f := &reloaded{file: &file{cfg: cfg}, level: &slog.LevelVar{}, again: make(chan os.Signal)}
	f.gateway = startWith(t, Options{Config: cfg, Reload: f.read, Poll: time.Hour, Level: f.level, Again: f.again}, token)
	return f
}

// change has the gateway read a change, and returns what it logs of that.
func (f *reloaded) change(change func(*config.Config)) (logged string) {
	f.t.Helper()
	f.write(change)
	before := len(f.log.String())
	f.again <- syscall.SIGHUP
	f.until("the file was read", func() bool {
		logged = f.log.String()[before:]
		return strings.Contains(logged, "configuration was read again") || strings.Contains(logged, "configuration cannot be used")
	})
	return logged
}

func (f *reloaded) metric(name string) string {
	f.t.Helper()
	_, body := f.get(f.ops, "/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	f.t.Fatalf("there is no metric %s", name)
	return ""
}

// TestEachKeyIsAppliedOrSaidToNeedARestart: a gateway whose every key is changed while it runs, one
// after the other, has the new value in use, or says which key waits for a restart.
func TestEachKeyIsAppliedOrSaidToNeedARestart(t *testing.T) {
	f := startReloaded(t, nil)
	applied := []string{}
	sample := otherValues(t, f.cfg)
	for _, key := range config.Changed(f.cfg, sample) {
		before := f.cfg
		logged := f.change(func(c *config.Config) { *c = c.With(sample, key) })
		_, inUse := f.get(f.ops, "/debug/config")
		waits, needed := "a restart takes them over: "+key+"\n", f.metric("kubecast_config_restart_needed")
		switch {
		case strings.Contains(logged, "changed="+key+"\n") && needed == "0" && !strings.Contains(inUse, "a restart"):
			applied = append(applied, key)
		case strings.Contains(logged, "needs a restart\" keys="+key+"\n") && needed == "1" && strings.Contains(inUse, waits):
		default:
			t.Errorf("%s: %s, restart needed: %s; logged %s", key, strings.SplitN(inUse, "\n", 2)[0], needed, logged)
		}
		if good := f.metric("kubecast_config_reload_successful"); good != "1" {
			t.Errorf("%s: successful is %s", key, good)
		}
		f.change(func(c *config.Config) { *c = before })
	}
	slices.Sort(applied)
	want := []string{
		"auth.anonymous", "auth.cookieKeyFile", "auth.jwt", "clusters", "gateways", "kinds.atMost", "log.level", "logs.perUser", "logs.upstreams",
		"notifications.digest", "notifications.keep", "notifications.states", "requests.perSecond", "requests.perUser",
		"stream.perAddress", "stream.perUser", "stream.total", "stream.watchesPerUser", "webhooks",
	}
	if diff := cmp.Diff(want, applied); diff != "" {
		t.Errorf("applied while it runs (-want +got):\n%s", diff)
	}
}

// otherValues is a configuration that differs from another in each key, with values that can be used.
func otherValues(t *testing.T, cfg config.Config) config.Config {
	t.Helper()
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(strings.Repeat("A", 43)+"=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := cfg
	differ(t, reflect.ValueOf(&other).Elem())
	other.Clusters = append(slices.Clone(cfg.Clusters), config.Cluster{Name: "other", Kubeconfig: cfg.Clusters[0].Kubeconfig})
	other.Auth.CookieKeyFile = keys
	other.Auth.JWT = append(slices.Clone(cfg.Auth.JWT), config.JWT{
		Issuer: "https://other", Audiences: []string{"kubecast"}, PublicKeyFile: cfg.Auth.JWT[0].PublicKeyFile, Claims: config.DefaultClaims(),
	})
	other.Webhooks = []config.Webhook{{Name: "other", URL: "http://127.0.0.1:1/", States: []string{"Failed"}, Concurrency: 1}}
	other.Notifications.States = []string{"Failed"}
	other.Stream.Replicas = []string{"127.0.0.1:9"}
	other.Log.Level = "debug"
	return other
}

// differ changes each value below a section.
func differ(t *testing.T, section reflect.Value) {
	t.Helper()
	for i := range section.NumField() {
		switch value := section.Field(i); value.Kind() {
		case reflect.Struct:
			differ(t, value)
		case reflect.Bool:
			value.SetBool(!value.Bool())
		case reflect.Int, reflect.Int64:
			value.SetInt(value.Int() + 1)
		case reflect.Float64:
			value.SetFloat(value.Float() / 2)
		case reflect.String:
			value.SetString(value.String() + "other")
		case reflect.Slice:
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		case reflect.Map:
			value.Set(reflect.MakeMap(value.Type()))
		default:
			t.Fatalf("a key of kind %s", value.Kind())
		}
	}
}

// TestChangesTakeEffectWhileItRuns: each part that takes changes over does what the new values say.
func TestChangesTakeEffectWhileItRuns(t *testing.T) {
	asked := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	t.Cleanup(receiver.Close)
	f := startReloaded(t, nil)
	stranger := func() int {
		r, err := http.Get("http://" + f.addr + "/clusters")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		return r.StatusCode
	}
	jane := func() int {
		code, _ := f.get(f.addr, "/clusters")
		return code
	}
	stream := func(until string) {
		readUntil(t, bufio.NewReader(f.open(f.addr, "/stream?pods=/api/v1/pods", "text/event-stream").Body), until)
	}

	t.Run("log.level", func(t *testing.T) {
		if f.change(func(c *config.Config) { c.Log.Level = "error" }); f.level.Level() != slog.LevelError {
			t.Errorf("the level is %v", f.level)
		}
	})
	t.Run("stream.perUser", func(t *testing.T) {
		stream("event: pods.synced")
		f.change(func(c *config.Config) { c.Stream.PerUser = 1 })
		stream("\"reason\":\"limit\"")
		f.change(func(c *config.Config) { c.Stream.PerUser = 0 })
		stream("event: pods.synced")
	})
	t.Run("auth.anonymous", func(t *testing.T) {
		if code := stranger(); code != http.StatusUnauthorized {
			t.Errorf("before: %d", code)
		}
		f.change(func(c *config.Config) { c.Auth.Anonymous = true })
		if code := stranger(); code != http.StatusOK {
			t.Errorf("anonymous is let in: %d", code)
		}
		f.change(func(c *config.Config) { c.Auth.Anonymous = false })
		if code := stranger(); code != http.StatusUnauthorized {
			t.Errorf("anonymous is not let in any more: %d", code)
		}
	})
	t.Run("auth.jwt", func(t *testing.T) {
		issuers := f.cfg.Auth.JWT
		f.change(func(c *config.Config) {
			c.Auth.JWT = []config.JWT{issuers[0]}
			c.Auth.JWT[0].Audiences = []string{"somebody else"}
		})
		if code := jane(); code != http.StatusUnauthorized {
			t.Errorf("a token for others: %d", code)
		}
		f.change(func(c *config.Config) { c.Auth.JWT = issuers })
		if code := jane(); code != http.StatusOK {
			t.Errorf("with the old issuers: %d", code)
		}
	})
	t.Run("notifications", func(t *testing.T) {
		f.change(func(c *config.Config) { c.Notifications.States = []string{"Running"} })
		f.until("the operator's choice is each user's", func() bool {
			_, body := f.get(f.addr, "/notifications/settings")
			return strings.Contains(body, `"states":["Running"]`)
		})
	})
	t.Run("webhooks", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "url")
		write := func(path string) {
			if err := os.WriteFile(file, []byte(receiver.URL+path), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		test := func(want string) {
			t.Helper()
			f.until("it is sent to", func() bool {
				r, err := http.Post("http://"+f.ops+"/debug/webhooks", "application/json", strings.NewReader(`{"action":"test","target":"chat"}`))
				if err != nil {
					t.Fatal(err)
				}
				defer r.Body.Close()
				return r.StatusCode == http.StatusOK
			})
			if got := <-asked; got != want {
				t.Errorf("%s was sent to, want %s", got, want)
			}
		}
		write("/a")
		f.change(func(c *config.Config) {
			c.Webhooks = []config.Webhook{{Name: "chat", URLFile: file, States: []string{"Failed"}, Concurrency: 1}}
		})
		test("/a")
		write("/b")
		if logged := f.change(func(*config.Config) {}); !strings.Contains(logged, "changed=notifications.keep,webhooks") {
			t.Errorf("the file with the URL was changed: %s", logged)
		}
		test("/b")
		f.change(func(c *config.Config) { c.Webhooks = nil })
		_, body := f.get(f.ops, "/debug/webhooks")
		if strings.Contains(body, "chat") {
			t.Errorf("a webhook that is gone: %s", body)
		}
	})
}

// TestAConfigurationIsTakenOverAsAWholeOrNotAtAll, since a file of which a half is in use is one that nobody wrote.
func TestAConfigurationIsTakenOverAsAWholeOrNotAtAll(t *testing.T) {
	f := startReloaded(t, nil)
	logged := f.change(func(c *config.Config) {
		c.Stream.PerUser, c.Log.Level = 1, "debug"
		c.Auth.CookieKeyFile = filepath.Join(t.TempDir(), "not there")
		c.Webhooks = []config.Webhook{{Name: "chat", URLFile: c.Auth.CookieKeyFile}}
	})
	for _, part := range []string{"level=ERROR", "auth.cookieKeyFile", "webhooks[0].urlFile", "not there"} {
		if !strings.Contains(logged, part) {
			t.Errorf("the log does not say %q: %s", part, logged)
		}
	}
	_, inUse := f.get(f.ops, "/debug/config")
	if f.level.Level() != slog.LevelInfo || !strings.Contains(inUse, "level: info") || !strings.Contains(inUse, "perUser: 64") || f.metric("kubecast_config_reload_successful") != "0" {
		t.Errorf("half of it is in use:\n%s", inUse)
	}
	f.change(func(c *config.Config) { c.Auth.CookieKeyFile, c.Webhooks = "", nil })
	if f.level.Level() != slog.LevelDebug || f.metric("kubecast_config_reload_successful") != "1" {
		t.Error("what can be used now is not in use")
	}
}
