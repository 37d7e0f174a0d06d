package config

import (
	"encoding"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestEmptyFileIsDefault(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "cache:\n", "auth: {}\n", "stream: {}\nlog:\n"} {
		got, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
		}
		if diff := cmp.Diff(Default(), got); diff != "" {
			t.Errorf("Parse(%q) is not the default (-want +got):\n%s", text, diff)
		}
	}
}

// Users were promised these values. A changed default is a changed promise.
func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	const documented = `
listen: 127.0.0.1:8080
opsListen: 127.0.0.1:9090
basePath: ""
ops: {pprof: false, tokenFile: ""}
tls: {certFile: "", keyFile: ""}
clusters:
- {name: default, kubeconfig: "", context: ""}
edge: {core: [], tokenFile: "", caFile: ""}
kinds: {allow: ["*"], deny: [], atMost: 200}
cache:
  preload: [pods, jobs.batch]
  idleAfter: 10m
  indexes: {pods: [spec.nodeName, status.phase]}
  syncTimeout: 1m
ring: {events: 16384, bytes: 64Mi, age: 15m}
catchUp: {events: 100000, timeout: 10s}
stream:
  heartbeat: 15s
  maxAge: 1h
  writeTimeout: 5s
  retry: 2s
  gather: 5ms
  compress: [zstd, gzip]
  perUser: 64
  perAddress: 256
  total: 50000
  watchesPerUser: 256
  replicas: []
requests: {perUser: 16, perSecond: 100}
gateways: []
drain: 20s
drainClosesListener: false
auth:
  anonymous: false
  jwt: []
  oidcLogin: {issuer: "", clientID: "", clientSecretFile: "", redirectURL: "", scopes: []}
  serviceAccounts: {audiences: []}
  revocations: {configMap: "", keep: 48h}
  cookieKeyFile: ""
authorizer: {mode: rbac, cacheAllow: 10s, cacheDeny: 5s, policies: []}
cors: {origins: []}
trustedProxies: [127.0.0.0/8, "::1/128", 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, "fc00::/7"]
proxyProtocol: []
audit: {level: none, file: ""}
history: {database: sqlite, passwordFile: "", stateDir: "", owner: "", owners: as-permitted, keep: 720h, keepLogTail: 64Ki, keepSpec: true, keepBudget: 64Mi, runs: true, migrate: true, kinds: []}
queues: {enabled: true}
notifications: {states: [Succeeded, Failed], digest: "0", keep: 720h}
webhooks: []
logs: {upstreams: 200, perUser: 16, ring: 1Mi}
tracing: {endpoint: "", sample: 0.01}
experimental: {shard: "", shardKinds: [], shards: 0}
log: {level: info, format: text}
`
	var want any
	if err := yaml.Unmarshal([]byte(documented), &want); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(Default())
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Default() is not what is documented (-documented +Default):\n%s", diff)
	}
	again, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default().Stream, again.Stream); diff != "" {
		t.Errorf("what is written does not read back: %s", diff)
	}
}

func TestExampleIsDefaultAndNamesEveryKey(t *testing.T) {
	got, err := Load("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Auth.JWT = []JWT{{Issuer: "https://id.example.org", Audiences: []string{"kubecast"}, Claims: DefaultClaims()}}
	want.CORS.Origins = []string{}
	want.Webhooks = []Webhook{DefaultWebhook()}
	want.Webhooks[0].Name, want.Webhooks[0].URL = "backend", "https://backend.example.org/jobs"
	want.History.Kinds = []HistoryKind{{Resource: "trainjobs.trainer.kubeflow.org"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("example.yaml is not the default (-want +got):\n%s", diff)
	}

	data, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var example map[string]any
	if err := yaml.Unmarshal(data, &example); err != nil {
		t.Fatal(err)
	}
	mustNameAll(t, "", example, reflect.TypeFor[Config]())
}

func mustNameAll(t *testing.T, key string, example map[string]any, typ reflect.Type) {
	t.Helper()
	for i := range typ.NumField() {
		name, field := typ.Field(i).Tag.Get("yaml"), typ.Field(i).Type
		value, ok := example[name]
		if name == "" || !ok {
			t.Errorf("%s is not in example.yaml", join(key, name))
			continue
		}
		if field.Kind() == reflect.Slice && field.Elem().Kind() == reflect.Struct && !reflect.PointerTo(field.Elem()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			value, field = value.([]any)[0], field.Elem()
		}
		if field.Kind() == reflect.Struct {
			mustNameAll(t, join(key, name), value.(map[string]any), field)
		}
	}
}

func TestEveryFaultNamesItsKeyItsLineAndWhatIsAllowed(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"unknown":                    {"lisen: x", "line 1: lisen: unknown key; known here: audit, auth, authorizer, basePath, cache,"},
		"unknown coding":             {"stream: {compress: [gzip, br]}", "stream.compress[1]"},
		"coding named twice":         {"stream: {compress: [gzip, gzip]}", "stream.compress[1]"},
		"unknown, nested":            {"stream:\n  heartbeet: 15s", "line 2: stream.heartbeet: unknown key; known here: compress, gather, heartbeat,"},
		"unknown, in a list":         {"clusters:\n- name: a\n- name: b\n  cluster: c", "line 4: clusters[1].cluster: unknown key"},
		"unknown, in what is absent": {"tls: {cert: x}", "line 1: tls.cert: unknown key; known here: certFile, keyFile"},
		"base path with a slash":     {"basePath: /tools/", `line 1: basePath: "/tools/" given; allowed: a path such as /tools/kubecast,`},
		"base path without a slash":  {"basePath: tools", `line 1: basePath: "tools" given; allowed: a path`},
		"base path that is the root": {"basePath: /", `line 1: basePath: "/" given; allowed: a path`},
		"base path that leads up":    {"basePath: /tools/../kubecast", `line 1: basePath: "/tools/../kubecast" given`},
		"base path with a space":     {"basePath: '/tools/kube cast'", `line 1: basePath: "/tools/kube cast" given`},
		"base path that is encoded":  {"basePath: /tools%2Fkubecast", `line 1: basePath: "/tools%2Fkubecast" given`},
		"base path that is a URL":    {"basePath: 'https://a.example/tools'", `line 1: basePath: "https://a.example/tools" given`},
		"base path that is too long": {"basePath: /" + strings.Repeat("a", 200), `line 1: basePath:`},
		"a certificate without key":  {"tls: {certFile: x}", "line 1: tls: only one of certFile and keyFile is given"},
		"a key without certificate":  {"listen: ':1'\ntls: {keyFile: x}", "line 2: tls: only one of certFile and keyFile is given"},
		"other case":                 {"Listen: x", "line 1: Listen: unknown key"},
		"twice":                      {"drain: 1s\ndrain: 2s", "line 2: drain: given twice, first on line 1"},
		"a kind that is none":        {"kinds: {deny: [Pods]}", `line 1: kinds.deny[0]: "Pods" given; allowed: a resource with its group`},
		"a kind in a version":        {"kinds: {allow: [jobs.v1.batch]}", `line 1: kinds.allow[0]: "jobs.v1.batch" given; allowed: a resource with its group`},
		"no kinds":                   {"kinds: {allow: []}", `line 1: kinds.allow: [] given; allowed: one kind or more`},
		"preload of what is denied":  {"kinds: {deny: ['*.batch']}", `cache.preload[1]: "jobs.batch" given; allowed: kinds that kinds.allow and kinds.deny let be served`},
		"no room beside preload":     {"kinds: {atMost: 2}", `line 1: kinds.atMost: "2" given; allowed: more than the 2 kinds of cache.preload`},
		"no level of the audit log":  {"audit: {level: request}", `line 1: audit.level: "request" given; allowed: none, metadata`},
		"number for a string":        {"log: {level: 3}", `line 1: log.level: 3 given; allowed: a string`},
		"string for a number":        {"ring: {events: many}", `line 1: ring.events: "many" given; allowed: a whole number`},
		"quoted number":              {`ring: {events: "5"}`, `line 1: ring.events: "5" given; allowed: a whole number`},
		"fraction":                   {"ring: {events: 1.5}", `line 1: ring.events: 1.5 given; allowed: a whole number`},
		"too large for an int":       {"ring: {events: 99999999999999999999}", `ring.events: 99999999999999999999 given; allowed: a whole number`},
		"yes for true":               {"auth: {anonymous: yes}", `line 1: auth.anonymous: "yes" given; allowed: true or false`},
		"map for a list":             {"clusters: {name: a}", "line 1: clusters: a map given; allowed: a list"},
		"string for a list":          {"cache: {preload: pods}", `line 1: cache.preload: "pods" given; allowed: a list`},
		"list for a section":         {"cache: [a]", "line 1: cache: a list given; allowed: a map"},
		"string for a section":       {"ring: none", `line 1: ring: "none" given; allowed: a map`},
		"a list as the file":         {"- a", "line 1: a list given; allowed: a map"},
		"nothing for a string":       {"listen:", "line 1: listen: nothing given; allowed: a string"},
		"nothing for a duration":     {"drain:", "line 1: drain: nothing given; allowed: a duration such as"},
		"nothing for a list":         {"clusters:", "line 1: clusters: nothing given; allowed: a list"},
		"duration without unit":      {"drain: 20", "line 1: drain: 20 given; allowed: a duration such as 15s"},
		"negative duration":          {"drain: -1s", `line 1: drain: "-1s" given; allowed: a duration`},
		"list for a duration":        {"drain: [1s]", `line 1: drain: a list given; allowed: a duration`},
		"size":                       {"ring: {bytes: 64MB}", `line 1: ring.bytes: "64MB" given; allowed: a number of bytes such as 64Mi`},
		"size too large":             {"ring: {bytes: 9999999999Gi}", "line 1: ring.bytes: \"9999999999Gi\" given; allowed"},
		"size of nothing":            {"ring: {bytes: 0}", `line 1: ring.bytes: "0" given; allowed: 1 or more`},
		"too short":                  {"stream: {heartbeat: 10ms}", `line 1: stream.heartbeat: "10ms" given; allowed: 1s to 1m`},
		"too long":                   {"authorizer:\n  cacheAllow: 1h", `line 2: authorizer.cacheAllow: "1h" given; allowed: 0 to 1m`},
		"negative count":             {"stream: {total: -1}", `line 1: stream.total: "-1" given; allowed: 0 to`},
		"no port":                    {"listen: localhost", `line 1: listen: "localhost" given; allowed: host:port`},
		"port by name":               {"listen: :http", `line 1: listen: ":http" given; allowed: host:port`},
		"no replica's address":       {"stream: {replicas: [':9090']}", `line 1: stream.replicas[0]: ":9090" given; allowed: host:port such as gateway-replicas:9090`},
		"replicas that may not ask":  {"opsListen: :9090\nstream: {replicas: [a:9090]}", `ops.tokenFile: "" given; allowed: a file with a token`},
		"same address":               {"opsListen: 127.0.0.1:8080", `line 1: opsListen: "127.0.0.1:8080" given; allowed: another address`},
		"cluster name":               {"clusters: [{name: A_b}]", `line 1: clusters[0].name: "A_b" given; allowed: a DNS label`},
		"cluster without name":       {"clusters:\n- kubeconfig: x", `line 2: clusters[0].name: "" given; allowed: a DNS label`},
		"cluster twice":              {"clusters: [{name: a}, {name: a}]", `line 1: clusters[1].name: "a" given; allowed: a name that no other`},
		"no cluster":                 {"clusters: []", "line 1: clusters: [] given; allowed: one cluster or more"},
		"kind":                       {"cache: {preload: [Pods]}", `line 1: cache.preload[0]: "Pods" given; allowed: a resource with its group, such as pods, jobs.batch`},
		"kind as a path":             {"cache: {preload: [apis/batch/v1/jobs]}", `cache.preload[0]: "apis/batch/v1/jobs" given; allowed: a resource`},
		"kind twice":                 {"cache: {preload: [pods, pods]}", `line 1: cache.preload[1]: "pods" given; allowed: each kind once`},
		"kind of an index":           {"cache: {indexes: {Pods: [a]}}", `line 1: cache.indexes[Pods]: "Pods" given; allowed: a resource`},
		"index":                      {"cache: {indexes: {jobs.batch: ['spec.x[0]']}}", `line 1: cache.indexes[jobs.batch][0]: "spec.x[0]" given; allowed: a path of fields`},
		"index twice":                {"cache: {indexes: {pods: [a, a]}}", `line 1: cache.indexes[pods][1]: "a" given; allowed: each path once`},
		"alias":                      {"listen: &a ':1'", "line 1: listen: anchors and aliases are not supported"},
		"merge":                      {"cache:\n  <<: {a: b}", "line 2: cache: << given as a key"},
		"mode":                       {"authorizer: {mode: none}", `line 1: authorizer.mode: "none" given; allowed: rbac, sar, policy`},
		"history in no database":     {"history: {database: oracle}", `line 1: history.database: what is given is no address; allowed: none, sqlite, sqlite:///path`},
		"history in another":         {"history: {database: 'oracle://x'}", `line 1: history.database: an address that begins with "oracle:" given; allowed: none`},
		"history twice":              {"history: {database: 'postgres://h/d', stateDir: /x}", `line 1: history.stateDir: given though the database is not in it`},
		"password of a file":         {"history: {passwordFile: /x}", `line 1: history.passwordFile: given though the database takes no password`},
		"history of a version":       {"history: {kinds: [{resource: jobs.v1.batch}]}", `line 1: history.kinds[0].resource: "jobs.v1.batch" given; allowed: a resource with its group and without a version`},
		"history of a kind twice":    {"history: {kinds: [{resource: a.b}, {resource: a.b}]}", `line 1: history.kinds[1].resource: "a.b" given; allowed: each kind once`},
		"history of what is denied":  {"kinds: {deny: [a.b]}\nhistory: {kinds: [{resource: a.b}]}", `line 2: history.kinds[0].resource: "a.b" given; allowed: a kind that kinds.allow and kinds.deny let be served`},
		"history for a moment":       {"history: {keep: 1s}", `line 1: history.keep: "1s" given; allowed: 1h to`},
		"history of whole logs":      {"history: {keepLogTail: 2Mi}", `line 1: history.keepLogTail: "2Mi" given; allowed: up to 1Mi, or 0`},
		"history of owners":          {"history: {owners: all}", `line 1: history.owners: "all" given; allowed: as-permitted, see-their-own`},
		"told of another state":      {"notifications: {states: [Failed, Done]}", `line 1: notifications.states: "Done" given; allowed: Submitted, Queued, Suspended,`},
		"told of a state twice":      {"notifications: {states: [Failed, Failed]}", `line 1: notifications.states: "Failed" given; allowed: each state once`},
		"told after a week":          {"notifications: {digest: 168h}", `line 1: notifications.digest: "168h" given; allowed: 0 to 24h`},
		"told for a moment":          {"notifications: {keep: 1s}", `line 1: notifications.keep: "1s" given; allowed: 1h to`},
		"no room beside history":     {"kinds: {atMost: 3}\nhistory: {kinds: [{resource: a.b}]}", `line 1: kinds.atMost: "3" given; allowed: more than the 3 kinds of cache.preload`},
		"mode without policies":      {"authorizer: {mode: policy}", `authorizer.policies: [] given; allowed: one policy or more`},
		"policies without mode":      {"authorizer: {policies: ['true']}", `line 1: authorizer.policies: given in mode rbac; allowed: in mode policy`},
		"log ring too small":         {"logs: {ring: 1Ki}", `line 1: logs.ring: "1Ki" given; allowed: 64Ki to 1Gi`},
		"collector with a user":      {"tracing: {endpoint: 'http://a:b@collector:4318'}", `line 1: tracing.endpoint: "http://a:b@collector:4318" given; allowed: an http or https URL`},
		"collector without scheme":   {"tracing: {endpoint: 'collector:4318'}", `line 1: tracing.endpoint: "collector:4318" given; allowed: an http or https URL`},
		"no shard":                   {"experimental: {shard: 3/2, shardKinds: [pods]}\ngateways: [e]\nhistory: {database: none}", `line 1: experimental.shard: "3/2" given; allowed: 1/2 for the first`},
		"shard of nothing":           {"experimental: {shard: 1/2}\ngateways: [e]\nhistory: {database: none}", `line 1: experimental: only one of shard and shardKinds is given`},
		"shard of bindings":          {"experimental: {shard: 1/2, shardKinds: [rolebindings.rbac.authorization.k8s.io]}\ngateways: [e]\nhistory: {database: none}", `line 1: experimental.shardKinds[0]: "rolebindings.rbac.authorization.k8s.io" given; allowed: other kinds`},
		"shard of a version":         {"experimental: {shard: 1/2, shardKinds: [jobs.v1.batch]}\ngateways: [e]\nhistory: {database: none}", `line 1: experimental.shardKinds[0]: "jobs.v1.batch" given; allowed: a resource with its group, in all versions`},
		"shard for nobody":           {"experimental: {shard: 1/2, shardKinds: [pods]}\nhistory: {database: none}", `gateways: [] given; allowed: the usernames of the edges`},
		"history of a half":          {"experimental: {shard: 1/2, shardKinds: [pods]}\ngateways: [e]", `history.database: "sqlite" given; allowed: none at a core of a shard`},
		"shards of no cores":         {"experimental: {shards: 2}", `line 1: experimental.shards: "2" given; allowed: as many as divide the number of addresses in edge.core`},
		"shards of an odd core":      {"edge: {core: ['https://a', 'https://b', 'https://c'], tokenFile: /x}\nexperimental: {shards: 2}", `line 2: experimental.shards: "2" given; allowed: as many as divide`},
		"one shard":                  {"edge: {core: 'https://a', tokenFile: /x}\nexperimental: {shards: 1}", `line 2: experimental.shards: "1" given; allowed: 2 to 16`},
		"a shard at an edge":         {"edge: {core: 'https://a', tokenFile: /x}\nexperimental: {shard: 1/2, shardKinds: [pods]}\nhistory: {database: none}\ngateways: [e]", `line 2: experimental.shard: "1/2" given; allowed: nothing at an edge`},
		"more than all traces":       {"tracing: {sample: 2}", `line 1: tracing.sample: "2" given; allowed: 0 to 1`},
		"no share of traces":         {"tracing: {sample: .nan}", `line 1: tracing.sample: "NaN" given; allowed: 0 to 1`},
		"share that is a text":       {"tracing: {sample: '1'}", `line 1: tracing.sample: "1" given; allowed: a number`},
		"level":                      {"log: {level: loud}", `line 1: log.level: "loud" given; allowed: debug, info, warn, error`},
		"no issuer":                  {"auth: {jwt: [{audiences: [a]}]}", `line 1: auth.jwt[0].issuer: "" given; allowed: the issuer`},
		"issuer twice":               {"auth: {jwt: [{issuer: a, audiences: [a], publicKeyFile: f}, {issuer: a, audiences: [a], publicKeyFile: f}]}", `auth.jwt[1].issuer: "a" given; allowed: an issuer that no other`},
		"no audience":                {"auth: {jwt: [{issuer: a, publicKeyFile: f}]}", `auth.jwt[0].audiences: [] given; allowed: one audience or more`},
		"empty audience":             {"auth: {jwt: [{issuer: a, audiences: [''], publicKeyFile: f}]}", `auth.jwt[0].audiences[0]: "" given; allowed: an audience`},
		"two sources of keys":        {"auth: {jwt: [{issuer: a, audiences: [a], publicKeyFile: f, jwksURL: 'https://x/'}]}", `auth.jwt[0].publicKeyFile: given beside jwksURL`},
		"a secret and more":          {"auth: {jwt: [{issuer: a, audiences: [a], hmacKeyFile: f, publicKeyFile: f}]}", `auth.jwt[0].hmacKeyFile: given beside jwksURL or publicKeyFile`},
		"authority of a file":        {"auth: {jwt: [{issuer: a, audiences: [a], hmacKeyFile: f, caFile: f}]}", `auth.jwt[0].caFile: given though the keys come from a file`},
		"empty audience of accounts": {"auth: {serviceAccounts: {audiences: ['']}}", `auth.serviceAccounts.audiences[0]: "" given; allowed: an audience`},
		"discovery of no URL":        {"auth: {jwt: [{issuer: a, audiences: [a]}]}", `auth.jwt[0].issuer: "a" given; allowed: an https URL`},
		"keys over http":             {"auth: {jwt: [{issuer: a, audiences: [a], jwksURL: 'http://id.example.org/keys'}]}", `auth.jwt[0].jwksURL: "http://id.example.org/keys" given; allowed: an https URL`},
		"no username claim":          {"auth: {jwt: [{issuer: a, audiences: [a], publicKeyFile: f, claims: {username: ''}}]}", `auth.jwt[0].claims.username: "" given; allowed: the name of a claim`},
		"reserved prefix":            {"auth: {jwt: [{issuer: a, audiences: [a], publicKeyFile: f, claims: {groupsPrefix: 'system:'}}]}", `auth.jwt[0].claims.groupsPrefix: "system:" given; allowed: a prefix that does not`},
		"login without client":       {"auth: {oidcLogin: {redirectURL: 'https://a.example/auth/callback'}}", `line 1: auth.oidcLogin.clientID: "" given; allowed: the gateway's client`},
		"login without issuer":       {"auth: {oidcLogin: {clientID: a, redirectURL: 'https://a.example/auth/callback'}}", `auth.oidcLogin.clientID: "a" given; allowed: one of the audiences of exactly one`},
		"login at two issuers":       {"auth: {jwt: [" + oidcIssuer("a") + "," + oidcIssuer("b") + "], oidcLogin: {clientID: portal, redirectURL: 'https://a.example/auth/callback'}}", `auth.oidcLogin.clientID: "portal" given; allowed: one of the audiences of exactly one`},
		"login at another issuer":    {"auth: {jwt: [" + oidcIssuer("a") + "], oidcLogin: {clientID: portal, issuer: 'https://b.example', redirectURL: 'https://a.example/auth/callback'}}", `auth.oidcLogin.issuer: "https://b.example" given; allowed: an issuer of auth.jwt`},
		"login at no URL":            {"auth: {jwt: [{issuer: a, audiences: [portal], publicKeyFile: f}], oidcLogin: {clientID: portal, redirectURL: 'https://a.example/auth/callback'}}", `auth.oidcLogin.issuer: "a" given; allowed: an issuer that is an https URL`},
		"login comes back elsewhere": {"auth: {jwt: [" + oidcIssuer("a") + "], oidcLogin: {clientID: portal, redirectURL: 'https://a.example/'}}", `auth.oidcLogin.redirectURL: "https://a.example/" given; allowed: an https URL`},
		"login comes back above":     {"basePath: /tools/kubecast\nauth: {jwt: [" + oidcIssuer("a") + "], oidcLogin: {clientID: portal, redirectURL: 'https://a.example/auth/callback'}}", `allowed: an https URL (http only on loopback) whose path is /tools/kubecast/auth/callback`},
		"login comes back aside":     {"auth: {jwt: [" + oidcIssuer("a") + "], oidcLogin: {clientID: portal, redirectURL: 'https://a.example/a/../auth/callback'}}", `auth.oidcLogin.redirectURL: "https://a.example/a/../auth/callback" given`},
		"login comes back in plain":  {"auth: {jwt: [" + oidcIssuer("a") + "], oidcLogin: {clientID: portal, redirectURL: 'http://a.example/auth/callback'}}", `auth.oidcLogin.redirectURL: "http://a.example/auth/callback" given`},
		"login without openid":       {"auth: {jwt: [" + oidcIssuer("a") + "], oidcLogin: {clientID: portal, scopes: [groups], redirectURL: 'https://a.example/auth/callback'}}", `auth.oidcLogin.scopes: without openid`},
		"scope that is several":      {"auth: {jwt: [" + oidcIssuer("a") + "], oidcLogin: {clientID: portal, scopes: ['openid groups', openid], redirectURL: 'https://a.example/auth/callback'}}", `auth.oidcLogin.scopes[0]: "openid groups" given`},
		"edge without a core":        {"edge: {tokenFile: t}", `line 1: edge.core: [] given; allowed: the address of a core`},
		"edge without a token":       {"edge: {core: 'https://core.example.org'}", `line 1: edge.tokenFile: "" given; allowed: a file with the token`},
		"core in plain":              {"edge: {core: 'http://core.example.org', tokenFile: t}", `line 1: edge.core: "http://core.example.org" given; allowed: an https URL`},
		"core with a query":          {"edge: {core: ['https://a.example', 'https://b.example/x?y'], tokenFile: t}", `line 1: edge.core[1]: "https://b.example/x?y" given; allowed: an https URL`},
		"core twice":                 {"edge: {core: ['https://a.example', 'https://a.example'], tokenFile: t}", `line 1: edge.core[1]: "https://a.example" given; allowed: each core once`},
		"core that is a number":      {"edge: {core: 1, tokenFile: t}", `line 1: edge.core: 1 given; allowed: a list, [] for none`},
		"core and kubeconfig":        {"edge: {core: 'https://a.example', tokenFile: t}\nclusters: [{name: a, kubeconfig: f}]", `line 2: clusters[0].kubeconfig: given beside edge.core; allowed: one of them`},
		"core and context":           {"edge: {core: 'https://a.example', tokenFile: t}\nclusters: [{name: a}, {name: b, context: c}]", `line 2: clusters[1].context: given beside edge.core; allowed: one of them`},
		"proxy":                      {"trustedProxies: [ingress]", `line 1: trustedProxies[0]: "ingress" given; allowed: an address or a network`},
		"load balancer":              {"proxyProtocol: [10.0.0.0/33]", `line 1: proxyProtocol[0]: "10.0.0.0/33" given; allowed: an address or a network`},
		"wildcard origin":            {"cors: {origins: ['*']}", `line 1: cors.origins[0]: "*" given; allowed: an origin such as`},
		"origin with path":           {"cors: {origins: ['https://a.example/']}", `cors.origins[0]: "https://a.example/" given`},
		"origin with default port":   {"cors: {origins: ['https://a.example:443']}", `cors.origins[0]: "https://a.example:443" given`},
		"origin null":                {"cors: {origins: ['null']}", `cors.origins[0]: "null" given`},
		"two documents":              {"drain: 1s\n---\ndrain: 2s", "a second document; allowed: one"},
		"no YAML":                    {"drain: 1s\n\tlog: x", "line 2: found a tab character"},
		"a long value":               {"log: {level: " + strings.Repeat("x", 500) + "}", `"` + strings.Repeat("x", 60) + `…" given`},
		"a webhook without a name":   {"webhooks: [{url: 'https://a'}]", `line 1: webhooks[0].name: "" given; allowed: a DNS label`},
		"two webhooks of one name":   {"webhooks: [{name: a, url: 'https://a'}, {name: a, url: 'https://a'}]", `line 1: webhooks[1].name: "a" given; allowed: a name that no other`},
		"a webhook at no URL":        {"webhooks: [{name: a, url: 'ftp://secret'}]", `line 1: webhooks[0].url: what is given is no such URL; allowed: an http or https URL`},
		"a webhook at two URLs":      {"webhooks: [{name: a, url: 'https://a', urlFile: url}]", `line 1: webhooks[0].urlFile: given beside url; allowed: one of the two`},
		"a webhook's state":          {"webhooks: [{name: a, url: 'https://a', states: [Done]}]", `line 1: webhooks[0].states[0]: "Done" given; allowed: Submitted, `},
		"a webhook without states":   {"webhooks: [{name: a, url: 'https://a', states: []}]", `line 1: webhooks[0].states: [] given; allowed: one state or more`},
		"a webhook's namespace":      {"webhooks: [{name: a, url: 'https://a', namespaces: ['*']}]", `line 1: webhooks[0].namespaces[0]: "*" given`},
		"a webhook's cluster":        {"webhooks: [{name: a, url: 'https://a', clusters: [b]}]", `line 1: webhooks[0].clusters[0]: "b" given; allowed: default`},
		"a webhook's digest":         {"webhooks: [{name: a, url: 'https://a', digest: 48h}]", `line 1: webhooks[0].digest: "48h" given; allowed: 1s to 24h`},
		"a webhook's concurrency":    {"webhooks: [{name: a, url: 'https://a', concurrency: 0}]", `line 1: webhooks[0].concurrency: "0" given; allowed: 1 to 64`},
		"webhooks without history":   {"webhooks: [{name: a, url: 'https://a'}]\nhistory: {database: none}", `line 1: webhooks: given though history.database is none`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if n := strings.Count(err.Error(), "\n"); n > 0 {
				t.Errorf("one fault, %d errors:\n%v", n+1, err)
			}
		})
	}
}

func oidcIssuer(name string) string {
	return "{issuer: 'https://" + name + ".example', audiences: [kubecast, portal], claims: {usernamePrefix: '" + name + ":', groupsPrefix: '" + name + ":'}}"
}

func TestLoginIsAtTheIssuerThatKnowsTheClient(t *testing.T) {
	c, err := Parse([]byte("auth: {jwt: [" + oidcIssuer("a") + ", {issuer: 'https://b.example', audiences: [web], trusted: same}], cookieKeyFile: k, " +
		"oidcLogin: {clientID: web, redirectURL: 'http://127.0.0.1:8080/auth/callback'}}"))
	if err != nil || c.Auth.LoginIssuer() != "https://b.example" || len(c.Warnings()) != 0 {
		t.Errorf("%q %v %v", c.Auth.LoginIssuer(), err, c.Warnings())
	}
	c, err = Parse([]byte("auth: {jwt: [" + oidcIssuer("a") + "," + oidcIssuer("b") + "], " +
		"oidcLogin: {clientID: portal, issuer: 'https://a.example', redirectURL: 'https://k.example/auth/callback'}}"))
	if err != nil || c.Auth.LoginIssuer() != "https://a.example" {
		t.Errorf("%q %v", c.Auth.LoginIssuer(), err)
	}
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "auth.cookieKeyFile") {
		t.Errorf("%q", w)
	}
}

func TestEmptyValuesAskForNothing(t *testing.T) {
	const unset = "tls: {certFile: '', keyFile: ''}\nauth: {oidcLogin: {clientID: ''}}\n" +
		"authorizer: {policies: []}\nhistory: {kinds: []}\nwebhooks: []\n"
	if _, err := Parse([]byte(unset)); err != nil {
		t.Error(err)
	}
}

func TestAllFaultsOfAFileAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	text := "log: {level: loud}\nlisen: x\nring:\n  events: many\n  bytes: 0\nclusters:\n- {name: [a]}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	if err == nil {
		t.Fatal("accepted")
	}
	var got []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		place, _, _ := strings.Cut(strings.TrimPrefix(line, path), ": ")
		key, _, _ := strings.Cut(strings.TrimPrefix(line, path+place+": "), ": ")
		got = append(got, place+" "+key)
	}
	want := []string{":1 log.level", ":2 lisen", ":4 ring.events", ":5 ring.bytes", ":7 clusters[0].name"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q\n%v", got, want, err)
	}
	if _, err := Load(path + ".not"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestListsAndMapsReplaceTheirDefault(t *testing.T) {
	got, err := Parse([]byte(`
cache:
  preload: []
  indexes: {jobs.v1.batch: [status.active]}
  idleAfter: 0
clusters:
- {name: a, kubeconfig: /a, context: x}
- {name: b}
ring: {bytes: 1Gi}
auth:
  jwt:
  - issuer: dev
    audiences: [kubecast, other]
    publicKeyFile: dev.pub
    claims: {groupsPrefix: "dev:"}
cors: {origins: ["https://a.example", "http://localhost:5173", "https://[::1]:8443"]}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Cache.Preload = []Kind{}
	want.Cache.Indexes = map[Kind][]string{{Resource: "jobs", Version: "v1", Group: "batch"}: {"status.active"}}
	want.Cache.IdleAfter = 0
	want.Clusters = []Cluster{{Name: "a", Kubeconfig: "/a", Context: "x"}, {Name: "b"}}
	want.Ring.Bytes = 1 << 30
	want.Auth.JWT = []JWT{{Issuer: "dev", Audiences: []string{"kubecast", "other"}, PublicKeyFile: "dev.pub",
		Claims: Claims{Username: "sub", Groups: "groups", GroupsPrefix: "dev:"}}}
	want.CORS.Origins = []string{"https://a.example", "http://localhost:5173", "https://[::1]:8443"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDefaultIsValidAndNotShared(t *testing.T) {
	a := Default()
	if err := a.Validate(); err != nil {
		t.Error(err)
	}
	a.Clusters[0].Name, a.Cache.Preload[0] = "changed", Kind{}
	a.Cache.Indexes[Kind{Resource: "x"}] = nil
	if b := Default(); b.Clusters[0].Name != "default" || b.Cache.Preload[0].Resource != "pods" || len(b.Cache.Indexes) != 1 {
		t.Error("a change of one default is seen in the next")
	}
	a.Listen = "nowhere"
	if err := a.Validate(); err == nil || !strings.Contains(err.Error(), `listen: "nowhere" given`) {
		t.Errorf("a bad flag: %v", err)
	}
}

func TestWarningsNameWhatIsProbablyNotMeant(t *testing.T) {
	c := Default()
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "nobody can sign in") {
		t.Errorf("no way to sign in: %q", w)
	}
	c.Auth.Anonymous = true
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("all well, yet: %q", w)
	}
	c.Stream.Heartbeat = Duration(40 * time.Second)
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "stream.heartbeat") {
		t.Errorf("slow heartbeat: %q", w)
	}
}

func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	for _, text := range []string{"", "a: *a", "&a [*a]", "? {a: b}\n: c", "!!binary x: y", "clusters: [{name: a}, ~]",
		"cache: {indexes: {? [a] : b}}", "ring: {bytes: 18446744073709551615Ti}", "---\n---\n", "drain: !foo 1s", "{", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := Parse([]byte(text))
		if err != nil {
			return
		}
		if err := cfg.Validate(); err != nil {
			t.Fatalf("parsed, but not valid: %v", err)
		}
		again, err := yaml.Marshal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(again)
		if err != nil {
			t.Fatalf("what was written does not parse: %v\n%s", err, again)
		}
		// Nothing distinguishes nil and empty lists.
		if diff := cmp.Diff(cfg, back, cmp.Transformer("lists", func(s []string) []string { return append([]string{}, s...) }),
			cmp.Transformer("issuers", func(s []JWT) []JWT { return append([]JWT{}, s...) })); diff != "" {
			t.Fatalf("what was written reads differently:\n%s", diff)
		}
	})
}

// A core may be one address, or a list of several.
func TestEdgesCoresAreOneOrMore(t *testing.T) {
	for text, want := range map[string][]string{
		"https://a.example/tools/kubecast":            {"https://a.example/tools/kubecast"},
		"[https://a.example]":                         {"https://a.example"},
		"[https://a.example, https://b.example:8443]": {"https://a.example", "https://b.example:8443"},
	} {
		cfg, err := Parse([]byte("edge: {core: " + text + ", tokenFile: t}\nclusters: [{name: one}, {name: two}]"))
		if err != nil || !slices.Equal(cfg.Edge.Core, want) || !cfg.IsEdge() {
			t.Errorf("%s: %q, %v", text, cfg.Edge.Core, err)
		}
	}
}
