// Package config owns the gateway's configuration file: its keys, their defaults, and the values that each may have.
//
// The file is read strictly. An unknown key and a value of the wrong type or outside of its bounds
// are errors. Each error names the key by its full path, the line, what was given and what is
// allowed; all faults of a file are reported at once. A key that the file leaves out keeps its
// default. A list or a map that is given replaces its default as a whole; a section changes only
// the keys that it names.
//
// The package reads that one file and nothing else. The packages that use the files it names (kubeconfigs, keys) open
// them. No value in it is a secret.
package config

import (
	"log/slog"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"time"
)

// Config is the configuration file. Its fields are the file's keys; the defaults are those of Default.
type Config struct {
	Listen    string    `yaml:"listen"`    // host:port for browsers and kubectl
	OpsListen string    `yaml:"opsListen"` // host:port for metrics, health and debugging
	BasePath  string    `yaml:"basePath"`  // below which everything of Listen stands, such as /tools/kubecast; empty: the root
	Ops       Ops       `yaml:"ops"`
	TLS       TLS       `yaml:"tls"`
	Clusters  []Cluster `yaml:"clusters"` // never empty; the first is the default one
	Edge      Edge      `yaml:"edge"`
	Kinds     Kinds     `yaml:"kinds"`
	Cache     Cache     `yaml:"cache"`
	Ring      Ring      `yaml:"ring"`
	CatchUp   CatchUp   `yaml:"catchUp"`
	Stream    Stream    `yaml:"stream"`
	Requests  Requests  `yaml:"requests"`
	// Gateways are the usernames of other gateways, whose API server this one is: limits of single users are none for them.
	Gateways   []string   `yaml:"gateways"`
	Drain      Duration   `yaml:"drain"` // over how long streams are ended after SIGTERM
	Auth       Auth       `yaml:"auth"`
	Authorizer Authorizer `yaml:"authorizer"`
	CORS       CORS       `yaml:"cors"`
	// TrustedProxies are the addresses and networks (CIDR) of proxies whose X-Forwarded-For is believed, for limits
	// by address and for the audit log, and whose X-Forwarded-Prefix is, where BasePath is empty.
	TrustedProxies []string `yaml:"trustedProxies"`
	// ProxyProtocol are the addresses and networks (CIDR) of load balancers that send a header of PROXY protocol
	// version 2 before anything else. A connection of theirs without one is closed.
	ProxyProtocol []string      `yaml:"proxyProtocol"`
	Audit         Audit         `yaml:"audit"`
	History       History       `yaml:"history"`
	Queues        Queues        `yaml:"queues"`
	Notifications Notifications `yaml:"notifications"`
	Webhooks      []Webhook     `yaml:"webhooks"`
	Logs          Logs          `yaml:"logs"`
	Log           Log           `yaml:"log"`
	Tracing       Tracing       `yaml:"tracing"`
	Experimental  Experimental  `yaml:"experimental"`

	// DrainClosesListener closes the public listener at SIGTERM, and not only when the streams have ended.
	DrainClosesListener bool `yaml:"drainClosesListener"`
}

// Ops says what the ops listener shows, and to whom.
type Ops struct {
	Pprof bool `yaml:"pprof"` // whether profiles are served
	// TokenFile has tokens, one a line. All paths but /livez and /readyz need one of them. Without a TokenFile,
	// everything is shown on loopback, and elsewhere only these two paths.
	TokenFile string `yaml:"tokenFile"`
}

// OpsShowsLittle reports whether the ops listener shows only /livez and /readyz, since it can be reached from other
// machines without a token.
func (c Config) OpsShowsLittle() bool {
	host, _, _ := net.SplitHostPort(c.OpsListen)
	ip := net.ParseIP(host)
	return c.Ops.TokenFile == "" && host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// TLS is the certificate of the public listener, in PEM, read again when the files change. Without one the listener
// speaks plain HTTP, for a proxy in front of it that ends TLS.
type TLS struct {
	CertFile string `yaml:"certFile"` // the chain, the gateway's own certificate first
	KeyFile  string `yaml:"keyFile"`
}

// Cluster is one Kubernetes cluster. With neither Kubeconfig nor Context it is the one in which the gateway runs;
// outside of a cluster, it is the one that the usual kubeconfig rules name.
type Cluster struct {
	Name       string `yaml:"name"` // a DNS label, unique
	Kubeconfig string `yaml:"kubeconfig"`
	Context    string `yaml:"context"`
}

// Edge says that the clusters are reached by other gateways, the cores. Without one the gateway asks API servers itself.
type Edge struct {
	Core      Addresses `yaml:"core"`      // https URLs of gateways that serve the same clusters by the same names; any of them is asked
	TokenFile string    `yaml:"tokenFile"` // by which the cores know this gateway; read again when it changes
	CAFile    string    `yaml:"caFile"`    // PEM: CAs trusted for the cores; empty: the system's; read again when it changes
}

// Addresses are a list, which in the file may also be its only element.
type Addresses []string

// IsEdge reports whether the gateway is an edge of others.
func (c Config) IsEdge() bool { return len(c.Edge.Core) > 0 }

// Kinds says which kinds may be served, whatever the gateway itself may read. Any other kind is treated as one that
// the clusters do not have.
type Kinds struct {
	Allow  []KindPattern `yaml:"allow"`
	Deny   []KindPattern `yaml:"deny"`   // wins over allow
	AtMost int           `yaml:"atMost"` // how many are cached at once in each cluster; 0: no limit
}

// Serves reports whether a kind may be served.
func (k Kinds) Serves(group, resource string) bool {
	matches := func(p KindPattern) bool { return p.Matches(group, resource) }
	return slices.ContainsFunc(k.Allow, matches) && !slices.ContainsFunc(k.Deny, matches)
}

// Names reports whether a kind is served, and named by itself, not by a pattern that others match, too.
func (k Kinds) Names(group, resource string) bool {
	return k.Serves(group, resource) && slices.Contains(k.Allow, KindPattern{Resource: resource, Group: group})
}

// Cache says which kinds are watched, and how they are indexed.
type Cache struct {
	Preload     []Kind            `yaml:"preload"`     // watched from the start; others on first use
	IdleAfter   Duration          `yaml:"idleAfter"`   // after how long an unused kind's watch ends; 0: never
	Indexes     map[Kind][]string `yaml:"indexes"`     // JSON paths such as spec.nodeName
	SyncTimeout Duration          `yaml:"syncTimeout"` // how long a request waits for a kind's first list
}

// Ring bounds the replay ring of one kind. The bound that is reached first evicts events.
type Ring struct {
	Events int      `yaml:"events"`
	Bytes  ByteSize `yaml:"bytes"`
	Age    Duration `yaml:"age"`
}

// CatchUp bounds one catch-up: a watch for the history that the ring no longer holds.
type CatchUp struct {
	Events  int      `yaml:"events"`
	Timeout Duration `yaml:"timeout"`
}

// Stream has the settings of the streams of clients.
type Stream struct {
	Heartbeat    Duration `yaml:"heartbeat"`
	MaxAge       Duration `yaml:"maxAge"`       // jittered to 80–100 %
	WriteTimeout Duration `yaml:"writeTimeout"` // a client that takes no byte for so long is disconnected
	Retry        Duration `yaml:"retry"`        // clients' wait before a reconnect, spread to 1–2 times this
	Gather       Duration `yaml:"gather"`       // how long events of a busy kind are gathered for one write; 0: not at all
	Compress     []string `yaml:"compress"`     // content codings of streams and other answers, the best first; empty: none
	PerUser      int      `yaml:"perUser"`      // concurrent streams; 0: no limit, also in the following keys
	PerAddress   int      `yaml:"perAddress"`
	Total        int      `yaml:"total"`
	// WatchesPerUser bounds the open watches of one user, since a stream may have many.
	WatchesPerUser int `yaml:"watchesPerUser"`
	// Replicas are the ops listeners of all replicas, between which streams are spread evenly; empty: they are not. A host's
	// name stands for all its addresses, as that of a headless Service does.
	Replicas []string `yaml:"replicas"`
}

// Requests bounds the requests of one user. For each key, 0 means no limit. Requests beyond it wait, and are refused
// if too many wait.
type Requests struct {
	PerUser   int `yaml:"perUser"`   // lists and gets that are answered at the same time
	PerSecond int `yaml:"perSecond"` // requests of any sort, including the beginnings of streams
}

// Auth says who may sign in.
type Auth struct {
	// Anonymous accepts requests without credentials, as the user system:anonymous of the group
	// system:unauthenticated. The authorizer decides what they may see.
	Anonymous       bool            `yaml:"anonymous"`
	JWT             []JWT           `yaml:"jwt"`
	OIDCLogin       OIDCLogin       `yaml:"oidcLogin"`
	ServiceAccounts ServiceAccounts `yaml:"serviceAccounts"`
	Revocations     Revocations     `yaml:"revocations"`
	// CookieKeyFile has the keys that seal sessions and tickets: 32 bytes in base64, one key a line. The first one
	// seals, and all of them open. Without a file the key is random: sessions then count only at this replica, and
	// until it ends.
	CookieKeyFile string `yaml:"cookieKeyFile"`
}

// Revocations says where the list of sessions and tokens is kept that were ended before their time.
type Revocations struct {
	ConfigMap string   `yaml:"configMap"` // namespace/name in the default cluster, shared by the replicas; empty: each knows its own
	Keep      Duration `yaml:"keep"`      // how long an entry counts; must be longer than any token lasts
}

// ServiceAccounts accepts the tokens of the default cluster's service accounts, which its API server reviews.
type ServiceAccounts struct {
	Audiences []string `yaml:"audiences"` // one of them must be among the token's; empty: no such token is accepted
}

// JWT is one issuer of tokens. Its keys come from JWKSURL, PublicKeyFile or HMACKeyFile, else from OIDC discovery.
type JWT struct {
	Issuer        string   `yaml:"issuer"`    // compared exactly with the claim iss; unique
	Audiences     []string `yaml:"audiences"` // one of them must be in the claim aud; never empty
	JWKSURL       string   `yaml:"jwksURL"`
	PublicKeyFile string   `yaml:"publicKeyFile"` // PEM: public keys or certificates
	HMACKeyFile   string   `yaml:"hmacKeyFile"`   // a shared secret, for HS256 to HS512
	CAFile        string   `yaml:"caFile"`        // PEM: CAs trusted for fetching keys; empty: the system's
	Claims        Claims   `yaml:"claims"`
	// Trusted is TrustedSame if the issuer may give the same names as other issuers, to mean the same users and
	// groups. Otherwise Claims needs prefixes that keep the names apart.
	Trusted string `yaml:"trusted"`
}

// OIDCLogin lets users sign in with a browser at one of the issuers of JWT. Without a ClientID there is no such
// login.
type OIDCLogin struct {
	Issuer           string   `yaml:"issuer"`           // empty: the issuer that has ClientID among its audiences
	ClientID         string   `yaml:"clientID"`         // the gateway's; one of the issuer's audiences
	ClientSecretFile string   `yaml:"clientSecretFile"` // empty: a public client; PKCE is used either way
	RedirectURL      string   `yaml:"redirectURL"`      // this gateway's BasePath and /auth/callback, as browsers reach it and as registered
	Scopes           []string `yaml:"scopes"`           // empty: openid, and profile, email, groups, offline_access where known
}

// LoginIssuer is the issuer at which users sign in; "" if none or several could be meant.
func (a Auth) LoginIssuer() string {
	found := ""
	for _, j := range a.JWT {
		if !slices.Contains(j.Audiences, a.OIDCLogin.ClientID) || a.OIDCLogin.Issuer != "" && a.OIDCLogin.Issuer != j.Issuer {
			continue
		}
		if found != "" {
			return ""
		}
		found = j.Issuer
	}
	return found
}

// Tracing says where traces are sent.
type Tracing struct {
	Endpoint string  `yaml:"endpoint"` // URL of a collector that takes OTLP over HTTP; empty: there are no traces
	Sample   float64 `yaml:"sample"`   // the share of the traces that begin here
}

// CallbackPath is the path to which the issuer sends browsers back, behind the base path.
const CallbackPath = "/auth/callback"

// basePath is made of characters that no client encodes. No part begins with a point, as . and .. do.
var basePath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

// IsBasePath reports whether everything can stand below a path, of at most 200 bytes and without a slash at its end.
func IsBasePath(path string) bool { return len(path) <= 200 && basePath.MatchString(path) }

// Claims names the claims that identify a token's holder, and the prefixes for their values.
type Claims struct {
	Username       string `yaml:"username"`
	Groups         string `yaml:"groups"` // empty: no groups from the token
	UsernamePrefix string `yaml:"usernamePrefix"`
	GroupsPrefix   string `yaml:"groupsPrefix"`
}

// Modes of the authorizer.
const (
	AuthorizerRBAC = "rbac" // reads the cluster's roles and bindings, and evaluates them in process
	AuthorizerSAR  = "sar"  // asks the API server, by SubjectAccessReview

	// AuthorizerPolicy decides by CEL expressions. The clusters' own permissions do not count.
	AuthorizerPolicy = "policy"
)

// Authorizer says how it is decided what an identity may see.
type Authorizer struct {
	Mode       string   `yaml:"mode"`       // AuthorizerRBAC, AuthorizerSAR or AuthorizerPolicy
	CacheAllow Duration `yaml:"cacheAllow"` // mode sar: how long a lost permission may still count; 0: none is remembered
	CacheDeny  Duration `yaml:"cacheDeny"`
	Policies   []string `yaml:"policies"` // mode policy: a request is allowed if one of them is true for it
}

// CORS names the web origins that may read answers with credentials.
type CORS struct {
	Origins []string `yaml:"origins"` // scheme://host[:port], lower case, no wildcards
}

// Levels of the audit log.
const (
	AuditNone     = "none"
	AuditMetadata = "metadata" // who asked for what, and what was decided; nothing of the answers' content
)

// Audit is the log of who read what.
type Audit struct {
	Level string `yaml:"level"` // AuditNone or AuditMetadata
	File  string `yaml:"file"`  // appended to, and opened anew after it was moved away; empty: standard output
}

// HistoryNone and HistorySQLite are values of history.database that are no addresses.
const (
	HistoryNone   = "none"
	HistorySQLite = "sqlite" // a file in History.StateDir
)

// What history.owners may say of jobs that their owner may not see by other permissions.
const (
	OwnersAsPermitted = "as-permitted"  // they do not see them
	OwnersSeeTheirOwn = "see-their-own" // they see them if they ask for owner=me
)

// History says what is kept of the lives of jobs, and where.
type History struct {
	Database     string        `yaml:"database"`     // HistoryNone, HistorySQLite, sqlite:///path, postgres://… or mysql://…
	PasswordFile string        `yaml:"passwordFile"` // for an address without a password; read for each connection
	StateDir     string        `yaml:"stateDir"`     // empty: the user's directory for state
	Owner        string        `yaml:"owner"`        // a CEL expression for the user who owns an object; empty: by annotation or label
	Owners       string        `yaml:"owners"`       // OwnersAsPermitted or OwnersSeeTheirOwn
	Keep         Duration      `yaml:"keep"`         // how long after its deletion a job is kept
	KeepLogTail  ByteSize      `yaml:"keepLogTail"`  // of the container that decided each job's end; 0: none
	KeepSpec     bool          `yaml:"keepSpec"`     // whether the spec of each job is kept at its end
	KeepBudget   ByteSize      `yaml:"keepBudget"`   // of specs and logs of each namespace, in a day; 0: no bound
	Runs         bool          `yaml:"runs"`         // whether the lives of jobs' pods are recorded
	Migrate      bool          `yaml:"migrate"`      // whether the schema is brought up to date at start
	Kinds        []HistoryKind `yaml:"kinds"`        // beyond jobs.batch
}

// Queues says whether callers are told of the queues of Kueue, where a cluster has them.
type Queues struct {
	Enabled bool `yaml:"enabled"`
}

// HistoryKind is a kind of jobs with its rules: CEL expressions over `object`. Kinds with built-in rules need none.
type HistoryKind struct {
	Resource string `yaml:"resource"` // with its group, without a version
	State    string `yaml:"state"`
	Reason   string `yaml:"reason"`
	Message  string `yaml:"message"`
	Queue    string `yaml:"queue"`
}

// Webhook is a target that is told the transitions of jobs. In lists of it, what is left out is as in DefaultWebhook.
type Webhook struct {
	Name        string   `yaml:"name"`        // a DNS label, unique
	URL         string   `yaml:"url"`         // http or https; may be a secret, so it is never shown
	URLFile     string   `yaml:"urlFile"`     // in place of url: a file with it, read at the start
	SecretFile  string   `yaml:"secretFile"`  // what signs, one secret a line; read again when it changes; empty: nothing is signed
	States      []string `yaml:"states"`      // to which the transitions lead
	Namespaces  []string `yaml:"namespaces"`  // empty: all
	Clusters    []string `yaml:"clusters"`    // by name; empty: all
	Digest      Duration `yaml:"digest"`      // how long transitions are gathered for one message; 0: each is a message
	Concurrency int      `yaml:"concurrency"` // messages at a time
	Body        string   `yaml:"body"`        // empty: a CloudEvent; a ready-made one by its name; else CEL over event
}

// DefaultWebhook has the defaults of a target.
func DefaultWebhook() Webhook {
	return Webhook{States: []string{"Succeeded", "Failed"}, Namespaces: []string{}, Clusters: []string{}, Concurrency: 4}
}

// Logs bounds the logs of containers that are read at a time: those that streams follow, and
// likewise those that are passed on.
type Logs struct {
	Upstreams int      `yaml:"upstreams"` // connections to API servers for logs
	PerUser   int      `yaml:"perUser"`   // logs that one user reads at once; 0: no limit
	Ring      ByteSize `yaml:"ring"`      // what is kept of each log that streams follow
}

// Log says what is logged, and in which form.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn or error
	Format string `yaml:"format"` // text or json
}

// SlogLevel is Level for log/slog.
func (l Log) SlogLevel() (level slog.Level) {
	_ = level.UnmarshalText([]byte(l.Level)) // cannot fail: the configuration is valid
	return level
}

// Default returns the configuration of an empty file. Callers may change it, since nothing in it is shared.
func Default() Config {
	return Config{
		Listen:    "127.0.0.1:8080",
		OpsListen: "127.0.0.1:9090",
		Clusters:  []Cluster{{Name: "default"}},
		Edge:      Edge{Core: Addresses{}},
		Kinds:     Kinds{Allow: []KindPattern{everyKind}, Deny: []KindPattern{}, AtMost: 200},
		Cache: Cache{
			Preload:     []Kind{{Resource: "pods"}, {Resource: "jobs", Group: "batch"}},
			IdleAfter:   Duration(10 * time.Minute),
			Indexes:     map[Kind][]string{{Resource: "pods"}: {"spec.nodeName", "status.phase"}},
			SyncTimeout: Duration(time.Minute),
		},
		Ring:    Ring{Events: 16384, Bytes: 64 << 20, Age: Duration(15 * time.Minute)},
		CatchUp: CatchUp{Events: 100000, Timeout: Duration(10 * time.Second)},
		Stream: Stream{
			Heartbeat:    Duration(15 * time.Second),
			MaxAge:       Duration(time.Hour),
			WriteTimeout: Duration(5 * time.Second),
			Retry:        Duration(2 * time.Second),
			Gather:       Duration(5 * time.Millisecond),
			Compress:     []string{"zstd", "gzip"},
			PerUser:      64,
			PerAddress:   256,
			Total:        50000,

			WatchesPerUser: 256,
			Replicas:       []string{},
		},
		Requests: Requests{PerUser: 16, PerSecond: 100},
		Gateways: []string{},
		Drain:    Duration(20 * time.Second),
		Auth:     Auth{OIDCLogin: OIDCLogin{Scopes: []string{}}, ServiceAccounts: ServiceAccounts{Audiences: []string{}}, Revocations: Revocations{Keep: Duration(48 * time.Hour)}},
		Authorizer: Authorizer{
			Mode:       AuthorizerRBAC,
			CacheAllow: Duration(10 * time.Second),
			CacheDeny:  Duration(5 * time.Second),
			Policies:   []string{},
		},
		// Loopback, and the networks that are routed only within organizations and clusters.
		TrustedProxies: []string{
			"127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7",
		},
		ProxyProtocol: []string{},
		Audit:         Audit{Level: AuditNone},
		History: History{
			Database: HistorySQLite, Owners: OwnersAsPermitted, Keep: Duration(30 * 24 * time.Hour), KeepLogTail: 64 << 10, KeepSpec: true, KeepBudget: 64 << 20, Runs: true, Migrate: true, Kinds: []HistoryKind{},
		},
		Queues:        Queues{Enabled: true},
		Notifications: Notifications{States: []string{"Succeeded", "Failed"}, Keep: Duration(30 * 24 * time.Hour)},
		Webhooks:      []Webhook{},
		Logs:          Logs{Upstreams: 200, PerUser: 16, Ring: 1 << 20},
		Log:           Log{Level: "info", Format: "text"},
		Tracing:       Tracing{Sample: 0.01},
		Experimental:  Experimental{ShardKinds: []Kind{}},
	}
}

// DefaultClaims are the claims of an entry of auth.jwt, as far as the file does not name them.
func DefaultClaims() Claims { return Claims{Username: "sub", Groups: "groups"} }

// Networks returns addresses and networks as networks. It skips what is none, which Validate has refused.
func Networks(texts []string) []netip.Prefix {
	prefixes := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		if p, err := parsePrefix(text); err == nil {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}

// parsePrefix reads a network, or an address, which becomes a network of one address.
func parsePrefix(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Unmap().Prefix(address.Unmap().BitLen())
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}
