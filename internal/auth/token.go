package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// maxToken is larger than any header line that proxies accept, in bytes.
	maxToken = 16 << 10

	// leeway is how far an issuer's clock may be ahead of the gateway's, for nbf and iat. There is none for exp: a
	// stream ends at exp, so one that begins later would have to end at once. The API server's own OIDC authenticator
	// has none either.
	leeway = 30 * time.Second

	// maxTime is the end of the year 9999, the last second that RFC 3339 can express. It is far below the largest
	// float that fits into an int64; the conversion of larger ones would be undefined.
	maxTime = 253402300799
)

// issuer is one configured issuer with its keys.
type issuer struct {
	Issuer
	keys      keySource
	transport http.RoundTripper // to the issuer
	roots     []byte            // of CAFile; nil: the transport is shared
	stop      func()            // ends keys.run; nil: it has not begun
}

// keySource holds the keys of one issuer.
type keySource interface {
	// current returns the keys. If there are none yet, it may wait for them; if none come, the error is
	// ErrUnavailable.
	current(ctx context.Context) (keySet, error)
	// newer is called when a token fits none of the keys in known. It returns other keys, if it has some or can get
	// some now.
	newer(ctx context.Context, known keySet) (keySet, bool)
	// run keeps the keys fresh until ctx ends.
	run(ctx context.Context)
}

// parser accepts only known algorithms, and never "none". The key decides which of them fit: HMAC never fits a public
// key, which as a secret would be known to everyone.
var parser = jwt.NewParser(jwt.WithValidMethods(validMethods()), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())

func validMethods() []string {
	methods := slices.Clone(algorithms)
	for _, alg := range hmacAlgorithms {
		methods = append(methods, alg.name)
	}
	return methods
}

// errForeignIssuer means that the token is of none of the configured issuers.
var errForeignIssuer = errors.New("not configured")

// verify checks everything about a token, and maps its claims to an identity.
func (a *Authenticator) verify(ctx context.Context, token string) (Identity, error) {
	digest := tokenDigest(sha256.Sum256([]byte(token)))
	if id, ok := a.verified.find(ctx, digest, a.issuer); ok {
		return id, nil
	}
	claims, iss, keys, err := a.signed(ctx, token, "jwt", "at+jwt")
	if err != nil {
		return Identity{}, err
	}
	id, err := iss.identify(claims, time.Now())
	if err == nil {
		a.verified.keep(digest, verifiedToken{identity: id, issuer: iss, keys: keys})
	}
	return id, err
}

// signed returns the claims of a token that one of the issuers has signed, and the keys with which it was checked.
// The token's type, if it has one, must be among types. Of the claims, only the issuer is checked.
func (a *Authenticator) signed(ctx context.Context, token string, types ...string) (claims jwt.MapClaims, iss *issuer, tried keySet, err error) {
	if len(token) > maxToken {
		return nil, nil, nil, fmt.Errorf("%d bytes, more than %d", len(token), maxToken)
	}
	// Go's base64 ignores line breaks, so one token could be written in many ways.
	if strings.ContainsAny(token, "\r\n") {
		return nil, nil, nil, errors.New("line break")
	}
	var kid string
	claims = jwt.MapClaims{}
	_, err = parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		var err error
		// The header and the claims are not verified yet. They are used only to choose the keys.
		if kid, err = checkHeader(t.Header, types); err != nil {
			return nil, err
		}
		if iss, err = a.issuerOf(claims); err != nil {
			return nil, err
		}
		if tried, err = iss.keys.current(ctx); err != nil {
			return nil, err
		}
		return tried.fitting(kid, t.Method.Alg())
	})
	if err != nil && tried != nil && !tried.has(kid) {
		newer, ok := iss.keys.newer(ctx, tried)
		if !ok {
			return nil, nil, nil, err
		}
		clear(claims)
		_, err = parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
			return newer.fitting(kid, t.Method.Alg())
		})
		tried = newer
	}
	if err != nil {
		return nil, nil, nil, err
	}
	return claims, iss, tried, nil
}

// issuerOf returns the issuer whose name equals the claim iss exactly.
func (a *Authenticator) issuerOf(claims jwt.MapClaims) (*issuer, error) {
	name, ok := claims["iss"].(string)
	if !ok {
		return nil, errors.New("claim iss: missing or no string")
	}
	iss := a.issuer(name)
	if iss == nil {
		return nil, fmt.Errorf("claim iss: %.100q is %w", name, errForeignIssuer)
	}
	return iss, nil
}

// checkHeader refuses headers that would change the token's meaning, and returns the key id, if there is one. Keys
// that a header contains or points at (jwk, jku, x5c, x5u) are ignored.
func checkHeader(header map[string]any, types []string) (kid string, err error) {
	// By RFC 7515, section 4.1.11, critical headers that are not understood must be refused. None is understood here.
	if _, ok := header["crit"]; ok {
		return "", errors.New("header crit: not supported")
	}
	// This would be a token inside a token (RFC 7519, section 5.2).
	if _, ok := header["cty"]; ok {
		return "", errors.New("header cty: nested tokens are not supported")
	}
	// Other sorts of JWT, such as logout tokens and DPoP proofs, are signed by the same keys, and must not be taken
	// for access tokens (RFC 8725, section 3.11).
	if v, ok := header["typ"]; ok {
		typ, ok := v.(string)
		typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
		if !ok || !slices.Contains(types, typ) {
			return "", fmt.Errorf("header typ: %.50q; allowed here: %s", fmt.Sprint(v), strings.Join(types, ", "))
		}
	}
	if v, ok := header["kid"]; ok {
		if kid, ok = v.(string); !ok {
			return "", errors.New("header kid: no string")
		}
	}
	return kid, nil
}

// identify checks the claims of a token whose signature is good, and returns the holder's identity.
func (iss *issuer) identify(claims jwt.MapClaims, now time.Time) (Identity, error) {
	for _, name := range []string{"exp", "nbf"} {
		if t, ok := claims[name].(float64); ok && t > maxTime {
			return Identity{}, fmt.Errorf("claim %s: beyond the year 9999", name)
		}
	}
	err := jwt.NewValidator(
		jwt.WithIssuer(iss.Issuer.Issuer),
		jwt.WithAudience(iss.Audiences...),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(leeway),
		jwt.WithTimeFunc(func() time.Time { return now }),
	).Validate(claims)
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return Identity{}, fmt.Errorf("%w: %w", ErrTokenExpired, err)
	case err != nil:
		return Identity{}, err
	}
	expires, err := claims.GetExpirationTime()
	if err != nil {
		return Identity{}, err
	}
	if !now.Before(expires.Time) {
		return Identity{}, fmt.Errorf("%w: at %v", ErrTokenExpired, expires)
	}
	if isLogout(claims) { // the same keys sign logout tokens, some of which do not say in their header what they are
		return Identity{}, errors.New("claim events: a logout token lets nobody in")
	}
	username, err := iss.username(claims)
	if err != nil {
		return Identity{}, err
	}
	groups, err := iss.groups(claims)
	if err != nil {
		return Identity{}, err
	}
	return Identity{
		Username:  username,
		Groups:    append(groups, authenticatedGroup),
		Claims:    claims,
		ExpiresAt: expires.Time,
		Begun:     begunOf(claims),
		Session:   textOf(claims["sid"]),
	}, nil
}

// begunOf returns when a token was issued, by the claim iat; zero if that is missing or cannot be true. A time in the
// future counts as missing, since no revocation by time would cover it.
func begunOf(claims jwt.MapClaims) time.Time {
	at, ok := claims["iat"].(float64)
	if !ok || at <= 0 || at > float64(time.Now().Add(leeway).Unix()) {
		return time.Time{}
	}
	return time.Unix(int64(at), 0)
}

func textOf(claim any) string {
	text, _ := claim.(string)
	return text
}

func (iss *issuer) username(claims jwt.MapClaims) (string, error) {
	name, ok := claims[iss.Claims.Username].(string)
	if !ok || name == "" {
		return "", fmt.Errorf("claim %s: missing, empty or no string", iss.Claims.Username)
	}
	// As in Kubernetes: an address that was not confirmed may belong to another user.
	if verified, ok := claims["email_verified"]; ok && iss.Claims.Username == "email" && verified != true {
		return "", errors.New("claim email_verified: not true")
	}
	return unreserved(iss.Claims.UsernamePrefix + name)
}

func (iss *issuer) groups(claims jwt.MapClaims) ([]string, error) {
	var names []any
	switch v := claims[iss.Claims.Groups].(type) {
	case nil:
	case string:
		names = []any{v}
	case []any:
		names = v
	default:
		return nil, fmt.Errorf("claim %s: neither a string nor a list of strings", iss.Claims.Groups)
	}
	groups := make([]string, 0, len(names)+1)
	for _, v := range names {
		name, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("claim %s: holds what is no string", iss.Claims.Groups)
		}
		if name == "" {
			continue
		}
		group, err := unreserved(iss.Claims.GroupsPrefix + name)
		if err != nil {
			return nil, err
		}
		groups = append(groups, group)
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

// unreserved refuses Kubernetes' own names. An API server gives them only to callers that it knows itself, but a
// SubjectAccessReview believes the names in it. So a user who may choose a group's name at the issuer could become
// cluster-admin, by the group system:masters. The whole token is refused, and not only the name, because such a claim
// is an attack, or a mistake that should be noticed.
func unreserved(name string) (string, error) {
	if strings.HasPrefix(name, reservedPrefix) {
		return "", fmt.Errorf("name %.100q: those that begin with %s are Kubernetes' own", name, reservedPrefix)
	}
	return name, nil
}

// CheckName returns an error for the name of a user or group that no token may have.
func CheckName(name string) error {
	_, err := unreserved(name)
	return err
}
