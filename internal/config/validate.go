package config

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Validate checks the values as Parse does. It is for a Config that was changed afterwards, as by flags.
func (c Config) Validate() error {
	f := c.validate()
	return f.join("")
}

// Warnings returns what is allowed, but probably not meant, for the log.
func (c Config) Warnings() []string {
	var w []string
	if len(c.Auth.JWT) == 0 && len(c.Auth.ServiceAccounts.Audiences) == 0 && !c.Auth.Anonymous {
		w = append(w, "nobody can sign in: auth.jwt has no issuers and auth.anonymous is false; "+
			"add an issuer, for development one with publicKeyFile and tokens of `gateway token`")
	}
	if c.Auth.OIDCLogin.ClientID != "" && c.Auth.CookieKeyFile == "" {
		w = append(w, "auth.oidcLogin is set without auth.cookieKeyFile: everybody is signed out when the gateway restarts, and with several replicas nobody gets in")
	}
	for _, o := range c.CORS.Origins {
		if plain, err := url.Parse(o); err == nil && plain.Scheme == "http" && !isKeyURL(o) {
			w = append(w, fmt.Sprintf("cors.origins has %s: whoever is between a browser and that page can write it, and so use the sessions of its users; https is safe", o))
		}
	}
	for i, hook := range c.Webhooks {
		if hook.SecretFile == "" && hook.Body == "" {
			w = append(w, fmt.Sprintf("webhooks[%d] (%s) has no secretFile: its receiver cannot tell its messages from others'", i, hook.Name))
		}
	}
	if c.IsEdge() && (c.History.Database == HistorySQLite || strings.HasPrefix(c.History.Database, HistorySQLite+":")) {
		w = append(w, "history.database is a file at an edge: it records by itself, and tells another history than its core; share the core's database, or say none")
	}
	if c.OpsShowsLittle() {
		w = append(w, "opsListen is not on loopback and ops.tokenFile is empty: only /livez and /readyz are answered there, /metrics is not")
	}
	if c.Stream.Heartbeat > Duration(25*time.Second) {
		w = append(w, fmt.Sprintf("stream.heartbeat is %v: proxies that cut idle connections after 30 s will cut streams; at most 25s is safe", c.Stream.Heartbeat))
	}
	return w
}

func (c Config) validate() faults {
	var f faults
	f.address("listen", c.Listen)
	f.address("opsListen", c.OpsListen)
	if c.BasePath != "" && !IsBasePath(c.BasePath) {
		f.refuse("basePath", c.BasePath, "a path such as /tools/kubecast, of letters, digits and -._~, without a slash at its end and at most 200 bytes long; empty for the root")
	}
	if c.Listen == c.OpsListen && !strings.HasSuffix(c.Listen, ":0") {
		f.refuse("opsListen", c.OpsListen, "another address than that of listen")
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		f.add(0, "tls", "only one of certFile and keyFile is given; allowed: both, or neither for plain HTTP")
	}
	f.clusters(c.Clusters)
	f.edge(c.Edge, c.Clusters)
	f.experimental(c)
	f.cache(c.Cache)
	f.kinds(c.Kinds, c.Cache.Preload, c.History.Recorded())
	f.history(c.History, c.Kinds)
	f.notifications(c.Notifications)
	f.webhooks(c)

	f.count("ring.events", c.Ring.Events, 1)
	if c.Ring.Bytes < 1 {
		f.refuse("ring.bytes", c.Ring.Bytes, "1 or more")
	}
	f.between("ring.age", c.Ring.Age, time.Second, 24*time.Hour)
	f.count("catchUp.events", c.CatchUp.Events, 1)
	f.between("catchUp.timeout", c.CatchUp.Timeout, 100*time.Millisecond, 5*time.Minute)

	f.between("stream.heartbeat", c.Stream.Heartbeat, time.Second, time.Minute)
	f.between("stream.maxAge", c.Stream.MaxAge, time.Second, 30*24*time.Hour)
	f.between("stream.writeTimeout", c.Stream.WriteTimeout, 100*time.Millisecond, 5*time.Minute)
	f.between("stream.retry", c.Stream.Retry, 100*time.Millisecond, 5*time.Minute)
	f.between("stream.gather", c.Stream.Gather, 0, time.Second)
	for i, name := range c.Stream.Compress {
		key := fmt.Sprintf("stream.compress[%d]", i)
		if !slices.Contains(codings, name) {
			f.refuse(key, name, "zstd, gzip; [] for none")
		} else if slices.Contains(c.Stream.Compress[:i], name) {
			f.refuse(key, name, "each coding once")
		}
	}
	f.count("stream.perUser", c.Stream.PerUser, 0)
	f.count("stream.perAddress", c.Stream.PerAddress, 0)
	f.count("stream.total", c.Stream.Total, 0)
	f.count("stream.watchesPerUser", c.Stream.WatchesPerUser, 0)
	for i, address := range c.Stream.Replicas {
		if key := fmt.Sprintf("stream.replicas[%d]", i); strings.HasPrefix(address, ":") || strings.HasSuffix(address, ":0") {
			f.refuse(key, address, "host:port such as gateway-replicas:9090")
		} else {
			f.address(key, address)
		}
	}
	if len(c.Stream.Replicas) > 0 && c.OpsShowsLittle() {
		f.refuse("ops.tokenFile", "", "a file with a token, since stream.replicas asks the ops listeners")
	}
	f.count("requests.perUser", c.Requests.PerUser, 0)
	f.count("requests.perSecond", c.Requests.PerSecond, 0)
	for i, name := range c.Gateways {
		if name == "" || name == "system:anonymous" {
			f.refuse(fmt.Sprintf("gateways[%d]", i), name, "the username by which another gateway signs in, such as system:serviceaccount:kubecast:edge")
		}
	}
	f.count("logs.upstreams", c.Logs.Upstreams, 1)
	f.count("logs.perUser", c.Logs.PerUser, 0)
	if c.Logs.Ring < 64<<10 || c.Logs.Ring > 1<<30 {
		f.refuse("logs.ring", c.Logs.Ring, "64Ki to 1Gi")
	}
	f.between("drain", c.Drain, 0, time.Hour)

	f.auth(c.Auth)
	f.login(c.Auth, c.BasePath)
	f.oneOf("authorizer.mode", c.Authorizer.Mode, AuthorizerRBAC, AuthorizerSAR, AuthorizerPolicy)
	switch policies := len(c.Authorizer.Policies); {
	case c.Authorizer.Mode == AuthorizerPolicy && policies == 0:
		f.refuse("authorizer.policies", "[]", "one policy or more: without, nobody may see anything")
	case c.Authorizer.Mode != AuthorizerPolicy && policies > 0:
		f.add(0, "authorizer.policies", "given in mode %s; allowed: in mode %s, else they would be without effect", c.Authorizer.Mode, AuthorizerPolicy)
	}
	// A permission that was taken away must not count for long, so these have a low bound.
	f.between("authorizer.cacheAllow", c.Authorizer.CacheAllow, 0, time.Minute)
	f.between("authorizer.cacheDeny", c.Authorizer.CacheDeny, 0, time.Minute)

	for i, o := range c.CORS.Origins {
		if !isOrigin(o) {
			f.refuse(fmt.Sprintf("cors.origins[%d]", i), o, "an origin such as https://portal.example.org: lower case, no path, no wildcard")
		}
	}
	f.networks("trustedProxies", c.TrustedProxies)
	f.networks("proxyProtocol", c.ProxyProtocol)
	f.oneOf("audit.level", c.Audit.Level, AuditNone, AuditMetadata)
	f.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	if t := c.Tracing; t.Endpoint != "" && !isCollector(t.Endpoint) {
		f.refuse("tracing.endpoint", t.Endpoint, "an http or https URL such as http://collector:4318, without a user and a query")
	}
	if s := c.Tracing.Sample; !(s >= 0 && s <= 1) {
		f.refuse("tracing.sample", s, "0 to 1")
	}
	f.oneOf("log.format", c.Log.Format, "text", "json")
	return f
}

func (f *faults) networks(key string, texts []string) {
	for i, text := range texts {
		if _, err := parsePrefix(text); err != nil {
			f.refuse(fmt.Sprintf("%s[%d]", key, i), text, "an address or a network such as 10.0.0.0/8")
		}
	}
}

// codings are the content codings that stream.compress may name.
var codings = []string{"zstd", "gzip"}

func (f *faults) clusters(clusters []Cluster) {
	if len(clusters) == 0 {
		f.refuse("clusters", "[]", "one cluster or more; leave the key out for the one of the usual kubeconfig rules")
	}
	seen := map[string]bool{}
	for i, c := range clusters {
		key := fmt.Sprintf("clusters[%d].name", i)
		switch {
		case !dnsLabel.MatchString(c.Name):
			f.refuse(key, c.Name, "a DNS label: up to 63 of a-z, 0-9 and -, not at the ends")
		case seen[c.Name]:
			f.refuse(key, c.Name, "a name that no other cluster has")
		}
		seen[c.Name] = true
	}
}

// jsonPath matches a path in an object that consists of field names only. Positions in lists are excluded: what such
// an index finds would depend on the order of the elements.
var jsonPath = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`)

func (f *faults) cache(c Cache) {
	for i, k := range c.Preload {
		key := fmt.Sprintf("cache.preload[%d]", i)
		if _, err := ParseKind(k.String()); err != nil {
			f.refuse(key, k, err.Error())
		} else if slices.Contains(c.Preload[:i], k) {
			f.refuse(key, k, "each kind once")
		}
	}
	byName := func(a, b Kind) int { return strings.Compare(a.String(), b.String()) }
	for _, kind := range slices.SortedFunc(maps.Keys(c.Indexes), byName) {
		paths := c.Indexes[kind]
		key := fmt.Sprintf("cache.indexes[%s]", kind)
		if _, err := ParseKind(kind.String()); err != nil {
			f.refuse(key, kind, err.Error())
		}
		for i, p := range paths {
			key := fmt.Sprintf("%s[%d]", key, i)
			if !jsonPath.MatchString(p) {
				f.refuse(key, p, "a path of fields such as spec.nodeName")
			} else if slices.Contains(paths[:i], p) {
				f.refuse(key, p, "each path once")
			}
		}
	}
	if c.IdleAfter != 0 {
		f.between("cache.idleAfter", c.IdleAfter, time.Second, 30*24*time.Hour)
	}
	f.between("cache.syncTimeout", c.SyncTimeout, time.Second, time.Hour)
}

func (f *faults) kinds(k Kinds, preload, recorded []Kind) {
	f.count("kinds.atMost", k.AtMost, 0)
	always := len(preload)
	for _, kind := range recorded {
		if k.Serves(kind.Group, kind.Resource) && !slices.Contains(preload, kind) {
			always++
		}
	}
	if k.AtMost > 0 && k.AtMost <= always {
		f.refuse("kinds.atMost", k.AtMost, fmt.Sprintf("more than the %d kinds of cache.preload and history, or 0 for no limit", always))
	}
	switch {
	case len(k.Allow) == 0:
		f.refuse("kinds.allow", "[]", `one kind or more; "*" for all`)
		return
	case slices.Contains(k.Allow, KindPattern{}): // a pattern that could not be read
		return
	}
	for i, p := range preload {
		if !k.Serves(p.Group, p.Resource) {
			f.refuse(fmt.Sprintf("cache.preload[%d]", i), p, "kinds that kinds.allow and kinds.deny let be served (cache.preload is [pods, jobs.batch] unless it is given)")
		}
	}
}

func (f *faults) auth(a Auth) {
	seen := map[string]bool{}
	for i, j := range a.JWT {
		key := fmt.Sprintf("auth.jwt[%d]", i)
		discovery := j.JWKSURL == "" && j.PublicKeyFile == "" && j.HMACKeyFile == ""
		switch {
		case j.Issuer == "":
			f.refuse(key+".issuer", "", "the issuer, as in the claim iss of its tokens")
		case seen[j.Issuer]:
			f.refuse(key+".issuer", j.Issuer, "an issuer that no other entry has")
		case discovery && !isKeyURL(j.Issuer):
			f.refuse(key+".issuer", j.Issuer, "an https URL (http only on loopback), as the keys are fetched from there; else give jwksURL, publicKeyFile or hmacKeyFile")
		}
		seen[j.Issuer] = true

		if len(j.Audiences) == 0 {
			f.refuse(key+".audiences", "[]", "one audience or more: without, tokens meant for others would be accepted")
		}
		for n, aud := range j.Audiences {
			if aud == "" {
				f.refuse(fmt.Sprintf("%s.audiences[%d]", key, n), aud, "an audience, as in the claim aud")
			}
		}
		switch {
		case j.JWKSURL != "" && j.PublicKeyFile != "":
			f.add(0, key+".publicKeyFile", "given beside jwksURL; allowed: one of them")
		case j.HMACKeyFile != "" && j.JWKSURL+j.PublicKeyFile != "":
			f.add(0, key+".hmacKeyFile", "given beside jwksURL or publicKeyFile; allowed: one of them")
		case j.CAFile != "" && j.PublicKeyFile+j.HMACKeyFile != "":
			f.add(0, key+".caFile", "given though the keys come from a file; allowed: where keys are fetched")
		}
		if j.JWKSURL != "" && !isKeyURL(j.JWKSURL) {
			f.refuse(key+".jwksURL", j.JWKSURL, "an https URL; http only on loopback, for whoever is on the way could replace the keys")
		}
		if j.Claims.Username == "" {
			f.refuse(key+".claims.username", "", "the name of a claim, such as sub")
		}
		f.prefix(key+".claims.usernamePrefix", j.Claims.UsernamePrefix)
		f.prefix(key+".claims.groupsPrefix", j.Claims.GroupsPrefix)
	}
	f.issuers(a.JWT)
	f.revocations(a.Revocations)
	for i, aud := range a.ServiceAccounts.Audiences {
		if aud == "" {
			f.refuse(fmt.Sprintf("auth.serviceAccounts.audiences[%d]", i), aud, "an audience, as in the claim aud")
		}
	}
}

func (f *faults) login(a Auth, base string) {
	const key = "auth.oidcLogin"
	l := a.OIDCLogin
	if l.ClientID == "" {
		if l.Issuer+l.ClientSecretFile+l.RedirectURL != "" || len(l.Scopes) > 0 {
			f.refuse(key+".clientID", "", "the gateway's client at the issuer; without, leave the others out, too")
		}
		return
	}
	switch issuer := a.LoginIssuer(); {
	case issuer == "" && l.Issuer != "":
		f.refuse(key+".issuer", l.Issuer, "an issuer of auth.jwt that has the clientID among its audiences")
	case issuer == "":
		f.refuse(key+".clientID", l.ClientID, "one of the audiences of exactly one issuer of auth.jwt; if of several, issuer says which")
	case !isKeyURL(issuer):
		f.refuse(key+".issuer", issuer, "an issuer that is an https URL (http only on loopback), as it is asked for its endpoints there")
	}
	if !isRedirectURL(l.RedirectURL, base) {
		f.refuse(key+".redirectURL", l.RedirectURL, "an https URL (http only on loopback) whose path is "+cmp.Or(base, "basePath, if there is one,")+CallbackPath)
	}
	for i, scope := range l.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(c rune) bool { return c <= ' ' || c == '"' || c == '\\' || c > '~' }) {
			f.refuse(fmt.Sprintf("%s.scopes[%d]", key, i), scope, "a scope such as groups")
		}
	}
	if len(l.Scopes) > 0 && !slices.Contains(l.Scopes, "openid") {
		f.add(0, key+".scopes", "without openid; allowed: with it, as there is no ID token else")
	}
}

// isRedirectURL reports whether browsers can come back to a URL. Without a base path in the configuration, what stands
// before CallbackPath may be what a proxy takes off.
func isRedirectURL(text, base string) bool {
	u, err := url.Parse(text)
	if err != nil || !isKeyURL(text) || u.RawQuery != "" || u.RawPath != "" {
		return false
	}
	before, ok := strings.CutSuffix(u.Path, CallbackPath)
	return ok && (before == base || base == "" && IsBasePath(before))
}

func (f *faults) prefix(key, value string) {
	if strings.HasPrefix(value, "system:") {
		f.refuse(key, value, "a prefix that does not begin with system:, whose names are Kubernetes' own")
	}
}

func (f *faults) refuse(key string, given any, allowed string) {
	s := fmt.Sprint(given)
	if s != "[]" {
		s = quoted(s)
	}
	f.add(0, key, "%s given; allowed: %s", s, allowed)
}

func (f *faults) address(key, value string) {
	host, port, err := net.SplitHostPort(value)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || strings.ContainsAny(host, " /") || strconv.FormatUint(n, 10) != port {
		f.refuse(key, value, "host:port such as 127.0.0.1:8080 or :8080; port 0 for any that is free")
	}
}

func (f *faults) count(key string, value, least int) {
	const most = 1 << 30
	if value < least || value > most {
		f.refuse(key, value, fmt.Sprintf("%d to %d", least, most))
	}
}

func (f *faults) between(key string, value Duration, least, most time.Duration) {
	if d := value.Std(); d < least || d > most {
		f.refuse(key, value, fmt.Sprintf("%v to %v", Duration(least), Duration(most)))
	}
}

func (f *faults) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		f.refuse(key, value, strings.Join(allowed, ", "))
	}
}

// isKeyURL reports whether keys may be fetched from a URL: by https, or by http from loopback.
func isKeyURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	if u.Scheme == "http" {
		ip := net.ParseIP(u.Hostname())
		return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	}
	return u.Scheme == "https"
}

// isCollector reports whether traces may be sent to a URL. What else a collector wants to be told is in the environment
// (OTEL_EXPORTER_OTLP_HEADERS), since no value of the configuration is a secret.
func isCollector(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// isOrigin reports whether a text has the form in which browsers send Origin (RFC 6454), so that the two can simply
// be compared.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return false
	}
	defaultPort := u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80"
	return !defaultPort && s == strings.ToLower(s) && s == u.Scheme+"://"+u.Host && !strings.ContainsAny(s, "* ,")
}
