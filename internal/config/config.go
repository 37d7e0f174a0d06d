// Package config owns the gateway's configuration file: its keys, their defaults, and what each of
// them may be.
//
// The file is read strictly. A key that is not known, a value of the wrong type, a value outside of
// its bounds and a key whose feature is not built yet are errors, each of which names the key by its
// full path, the line, what was given and what is allowed; a file with several faults is told all of
// them at once. What the file leaves out keeps its default. A list or a map that is given replaces
// its default as a whole; a section only changes the keys it names.
//
// The package reads that one file and nothing else. The files it names (kubeconfigs, keys) are opened
// by those who use them, and no value in it is a secret.
package config

import (
	"net"
	"net/netip"
	"slices"
	"time"
)

// Config is the configuration file. Its fields are the file's keys; the defaults are those of Default.
type Config struct {
	Listen     string     `yaml:"listen"`    // host:port for browsers and kubectl
	OpsListen  string     `yaml:"opsListen"` // host:port for metrics, health and debugging
	Ops        Ops        `yaml:"ops"`
	TLS        TLS        `yaml:"tls"`
	Clusters   []Cluster  `yaml:"clusters"` // never empty; the first is the default one
	Kinds      Kinds      `yaml:"kinds"`
	Cache      Cache      `yaml:"cache"`
	Ring       Ring       `yaml:"ring"`
	CatchUp    CatchUp    `yaml:"catchUp"`
	Stream     Stream     `yaml:"stream"`
	Requests   Requests   `yaml:"requests"`
	Drain      Duration   `yaml:"drain"` // how long SIGTERM waits for streams to end
	Auth       Auth       `yaml:"auth"`
	Authorizer Authorizer `yaml:"authorizer"`
	CORS       CORS       `yaml:"cors"`
	// TrustedProxies are addresses and networks (CIDR) of the proxies whose X-Forwarded-For is believed, for limits by address.
	TrustedProxies []string `yaml:"trustedProxies"`
	Audit          Audit    `yaml:"audit"`
	Log            Log      `yaml:"log"`
}

// Ops says what the ops listener shows, and to whom.
type Ops struct {
	Pprof bool `yaml:"pprof"` // profiles are served
	// TokenFile has tokens, one a line, of which one is needed for all but /livez and /readyz. Without one everything is shown
	// on loopback, and elsewhere these two only.
	TokenFile string `yaml:"tokenFile"`
}

// OpsShowsLittle reports whether the ops listener can be reached from elsewhere, and so shows only whether the gateway lives.
func (c Config) OpsShowsLittle() bool {
	host, _, _ := net.SplitHostPort(c.OpsListen)
	ip := net.ParseIP(host)
	return c.Ops.TokenFile == "" && host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// TLS is the certificate of the public listener, in PEM, read again when the files change. Without one the listener speaks
// plain HTTP, for what ends TLS before it.
type TLS struct {
	CertFile string `yaml:"certFile"` // the chain, the gateway's own certificate first
	KeyFile  string `yaml:"keyFile"`
}

// Cluster is one Kubernetes cluster. With neither Kubeconfig nor Context it is the one the gateway
// runs in, else the one the usual kubeconfig rules name.
type Cluster struct {
	Name       string `yaml:"name"` // a DNS label, unique
	Kubeconfig string `yaml:"kubeconfig"`
	Context    string `yaml:"context"`
}

// Kinds says which kinds may be served at all, however much the gateway may read. What is not allowed, or denied, is as if the
// clusters did not have it.
type Kinds struct {
	Allow  []KindPattern `yaml:"allow"`
	Deny   []KindPattern `yaml:"deny"`   // also of what is allowed
	AtMost int           `yaml:"atMost"` // cached at once in each cluster; 0: no limit
}

// Serves reports whether a kind may be served.
func (k Kinds) Serves(group, resource string) bool {
	matches := func(p KindPattern) bool { return p.Matches(group, resource) }
	return slices.ContainsFunc(k.Allow, matches) && !slices.ContainsFunc(k.Deny, matches)
}

// Cache says what is watched and how it is indexed.
type Cache struct {
	Preload     []Kind            `yaml:"preload"`     // watched from the start; others on first use
	IdleAfter   Duration          `yaml:"idleAfter"`   // an unused kind's watch ends; 0: never
	Indexes     map[Kind][]string `yaml:"indexes"`     // JSON paths such as spec.nodeName
	SyncTimeout Duration          `yaml:"syncTimeout"` // how long a request waits for a kind's first list
}

// Ring bounds the replay ring of one kind. Whichever bound is reached first evicts.
type Ring struct {
	Events int      `yaml:"events"`
	Bytes  ByteSize `yaml:"bytes"`
	Age    Duration `yaml:"age"`
}

// CatchUp bounds one catch-up watch, which fetches what the ring no longer holds.
type CatchUp struct {
	Events  int      `yaml:"events"`
	Timeout Duration `yaml:"timeout"`
}

// Stream holds what concerns the connections of clients.
type Stream struct {
	Heartbeat    Duration `yaml:"heartbeat"`
	MaxAge       Duration `yaml:"maxAge"`       // jittered to 80–100 %
	WriteTimeout Duration `yaml:"writeTimeout"` // a client that takes no byte for so long is cut
	Retry        Duration `yaml:"retry"`        // what clients are told; spread to 1–2 times this
	Gather       Duration `yaml:"gather"`       // how long events of a busy kind are gathered into one write; 0: not at all
	PerUser      int      `yaml:"perUser"`      // concurrent streams; 0: no limit, as for the next three
	PerAddress   int      `yaml:"perAddress"`
	Total        int      `yaml:"total"`
	// WatchesPerUser bounds the open watches of one user: a stream may have many.
	WatchesPerUser int `yaml:"watchesPerUser"`
}

// Requests bounds the lists and gets that are being answered.
type Requests struct {
	PerUser int `yaml:"perUser"` // of one user at a time: more wait, and are refused if they are too many; 0: no limit
}

// Auth says who may sign in.
type Auth struct {
	// Anonymous lets requests without credentials in, as user system:anonymous of group
	// system:unauthenticated. What they may see is the authorizer's decision.
	Anonymous       bool            `yaml:"anonymous"`
	JWT             []JWT           `yaml:"jwt"`
	OIDCLogin       OIDCLogin       `yaml:"oidcLogin"`
	ServiceAccounts ServiceAccounts `yaml:"serviceAccounts"`
	Revocations     Revocations     `yaml:"revocations"`
	// CookieKeyFile seals sessions and tickets: keys of 32 bytes in base64, a line each, of which the first seals and all
	// open. Empty: a random key, so that they are of this replica only, until it ends.
	CookieKeyFile string `yaml:"cookieKeyFile"`
}

// Revocations say where it stands what was ended before its time: sessions, and tokens.
type Revocations struct {
	ConfigMap string   `yaml:"configMap"` // namespace/name in the default cluster, shared by the replicas; empty: each knows its own
	Keep      Duration `yaml:"keep"`      // for how long an entry counts; longer than any token lasts
}

// ServiceAccounts lets those of the default cluster in with their tokens, which its API server reviews.
type ServiceAccounts struct {
	Audiences []string `yaml:"audiences"` // one of them must be among the token's; empty: none is let in
}

// JWT is one issuer of tokens. Its keys come from JWKSURL, PublicKeyFile or HMACKeyFile, else from OIDC discovery.
type JWT struct {
	Issuer        string   `yaml:"issuer"`    // compared exactly with the claim iss; unique
	Audiences     []string `yaml:"audiences"` // one of them must be in the claim aud; never empty
	JWKSURL       string   `yaml:"jwksURL"`
	PublicKeyFile string   `yaml:"publicKeyFile"` // PEM: public keys or certificates
	HMACKeyFile   string   `yaml:"hmacKeyFile"`   // a shared secret, for HS256 to HS512
	CAFile        string   `yaml:"caFile"`        // PEM: who vouches for where keys are fetched; empty: the system's
	Claims        Claims   `yaml:"claims"`
	// Trusted is TrustedSame if the names that it gives may be those of other issuers' users and groups; else Claims needs
	// prefixes that keep them apart.
	Trusted string `yaml:"trusted"`
}

// OIDCLogin lets people sign in with a browser at one of the issuers of JWT. Without ClientID there is no such login.
type OIDCLogin struct {
	Issuer           string   `yaml:"issuer"`           // empty: the one that has ClientID among its audiences
	ClientID         string   `yaml:"clientID"`         // of the gateway there; what ID tokens are for, so one of the audiences
	ClientSecretFile string   `yaml:"clientSecretFile"` // empty: a public client; PKCE is used either way
	RedirectURL      string   `yaml:"redirectURL"`      // this gateway's /auth/callback as browsers reach it, and as the issuer knows it
	Scopes           []string `yaml:"scopes"`           // empty: openid, and those of profile, email, groups, offline_access that the issuer has
}

// LoginIssuer is the issuer that people sign in at; "" if none or several could be meant.
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

// CallbackPath is where the issuer sends browsers back to.
const CallbackPath = "/auth/callback"

// Claims names the claims that say who a token's holder is, and what is put before them.
type Claims struct {
	Username       string `yaml:"username"`
	Groups         string `yaml:"groups"` // empty: no groups from the token
	UsernamePrefix string `yaml:"usernamePrefix"`
	GroupsPrefix   string `yaml:"groupsPrefix"`
}

// Modes of the authorizer.
const (
	AuthorizerRBAC = "rbac" // the cluster's roles and bindings are read, and evaluated in process
	AuthorizerSAR  = "sar"  // the API server is asked, by SubjectAccessReview

	// AuthorizerPolicy decides by CEL expressions. A cluster's own permissions do not count.
	AuthorizerPolicy = "policy"
)

// Authorizer says who decides what an identity may see.
type Authorizer struct {
	Mode       string   `yaml:"mode"`       // AuthorizerRBAC, AuthorizerSAR or AuthorizerPolicy
	CacheAllow Duration `yaml:"cacheAllow"` // how long a permission may count in mode sar after it was taken away; 0: nothing is remembered
	CacheDeny  Duration `yaml:"cacheDeny"`
	Policies   []string `yaml:"policies"` // of mode policy: allowed is what one of them is true for
}

// CORS names the web origins that may read answers with credentials.
type CORS struct {
	Origins []string `yaml:"origins"` // scheme://host[:port], lower case, no wildcards
}

// Levels of the audit log.
const (
	AuditNone     = "none"
	AuditMetadata = "metadata" // who asked for what, and what was decided; nothing of what was answered
)

// Audit is the log of who read what.
type Audit struct {
	Level string `yaml:"level"` // AuditNone or AuditMetadata
	File  string `yaml:"file"`  // is appended to, and opened anew when it was moved away; empty: standard output
}

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn or error
	Format string `yaml:"format"` // text or json
}

// Default returns the configuration of an empty file. Callers may change it: nothing is shared.
func Default() Config {
	return Config{
		Listen:    "127.0.0.1:8080",
		OpsListen: "127.0.0.1:9090",
		Clusters:  []Cluster{{Name: "default"}},
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
			PerUser:      64,
			PerAddress:   256,
			Total:        50000,

			WatchesPerUser: 256,
		},
		Requests: Requests{PerUser: 16},
		Drain:    Duration(20 * time.Second),
		Auth:     Auth{OIDCLogin: OIDCLogin{Scopes: []string{}}, ServiceAccounts: ServiceAccounts{Audiences: []string{}}, Revocations: Revocations{Keep: Duration(48 * time.Hour)}},
		Authorizer: Authorizer{
			Mode:       AuthorizerRBAC,
			CacheAllow: Duration(10 * time.Second),
			CacheDeny:  Duration(5 * time.Second),
			Policies:   []string{},
		},
		// Loopback, and what is routed inside of organizations and clusters.
		TrustedProxies: []string{
			"127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7",
		},
		Audit: Audit{Level: AuditNone},
		Log:   Log{Level: "info", Format: "text"},
	}
}

// DefaultClaims is what an entry of auth.jwt has where the file says nothing.
func DefaultClaims() Claims { return Claims{Username: "sub", Groups: "groups"} }

// Prefixes are TrustedProxies as networks; Validate has refused what is none.
func (c Config) Prefixes() []netip.Prefix {
	prefixes := make([]netip.Prefix, 0, len(c.TrustedProxies))
	for _, text := range c.TrustedProxies {
		if p, err := parsePrefix(text); err == nil {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}

// parsePrefix reads a network, or an address, which is a network of its own.
func parsePrefix(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Unmap().Prefix(address.Unmap().BitLen())
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}
