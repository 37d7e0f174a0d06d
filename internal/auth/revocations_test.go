package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubecast/kubecast/internal/auth/authtest"
)

var _ ConfigMaps = corev1client.ConfigMapInterface(nil)

// followed runs a replica's revocations in a synctest bubble.
func followed(t *testing.T, f *authtest.ConfigMaps, logs ...io.Writer) *Revocations {
	t.Helper()
	r := NewRevocations(RevocationOptions{
		ConfigMap: "revoked", Keep: 48 * time.Hour, Log: slog.New(slog.NewTextHandler(io.MultiWriter(logs...), nil)),
	})
	r.SetHome(f, f.Answers)
	authtest.Run(t, r.Run)
	synctest.Wait()
	return r
}

// revokedWith reports whether entries revoke an identity.
func revokedWith(t *testing.T, id Identity, entries ...string) bool {
	t.Helper()
	index := revocationIndex{}
	for _, text := range entries {
		entry, err := parseRevocation(text, 48*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		index.add(entry)
	}
	_, found := index.find(id, time.Now())
	return found
}

func TestRevocationsEndWhatTheyNameAndNothingElse(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	at := func(d time.Duration) string { return now.Add(d).UTC().Format(time.RFC3339) }
	jane := Identity{Username: "corp:jane", Claims: map[string]any{"iss": testIssuer, "sub": "u-1"}, Begun: now.Add(-time.Hour), Session: "s-1"}
	without := func(change func(*Identity)) Identity {
		id := jane
		change(&id)
		return id
	}
	subject, before := `"issuer":"`+testIssuer+`","subject":"u-1"`, `,"before":"`+at(-time.Minute)+`"`
	for name, c := range map[string]struct {
		id    Identity
		entry string
		want  bool
	}{
		"by name":                   {jane, `{"username":"corp:jane"` + before + `}`, true},
		"by another's name":         {jane, `{"username":"jane"` + before + `}`, false},
		"barred":                    {without(func(id *Identity) { id.Begun = now }), `{"username":"corp:jane"}`, true},
		"signed in again":           {without(func(id *Identity) { id.Begun = now }), `{"username":"corp:jane"` + before + `}`, false},
		"in the very second":        {jane, `{"username":"corp:jane","before":"` + at(-time.Hour) + `"}`, true},
		"a second before":           {jane, `{"username":"corp:jane","before":"` + at(-time.Hour-time.Second) + `"}`, false},
		"who knows when":            {without(func(id *Identity) { id.Begun = time.Time{} }), `{"username":"corp:jane"` + before + `}`, true},
		"forgotten":                 {jane, `{"username":"corp:jane","before":"` + at(-49*time.Hour) + `"}`, false},
		"forgotten when it says":    {jane, `{"username":"corp:jane","until":"` + at(-time.Second) + `"}`, false},
		"by subject":                {jane, `{` + subject + before + `}`, true},
		"the subject elsewhere":     {jane, `{"issuer":"https://elsewhere.example","subject":"u-1"` + before + `}`, false},
		"by session":                {jane, `{"issuer":"` + testIssuer + `","session":"s-1"}`, true},
		"by session, later":         {without(func(id *Identity) { id.Begun = now }), `{"issuer":"` + testIssuer + `","session":"s-1"` + before + `}`, true},
		"the session elsewhere":     {jane, `{"issuer":"https://elsewhere.example","session":"s-1"}`, false},
		"another session":           {jane, `{` + subject + `,"session":"s-2"` + before + `}`, false},
		"both":                      {jane, `{` + subject + `,"session":"s-1"` + before + `}`, true},
		"a session without a name":  {without(func(id *Identity) { id.Session = "" }), `{` + subject + `,"session":"s-2"` + before + `}`, true},
		"anonymous":                 {Identity{Username: "system:anonymous", Anonymous: true}, `{"username":"system:anonymous"}`, false},
		"no claims, another's":      {Identity{Username: "x"}, `{` + subject + `}`, false},
		"a user named like nothing": {Identity{}, `{"username":"corp:jane"}`, false},
	} {
		if got := revokedWith(t, c.id, c.entry); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, text := range []string{
		``, `{}`, `null`, `"jane"`, `{"username":"a","subject":"b","issuer":"c"}`, `{"subject":"b"}`, `{"session":"b"}`, `{"issuer":"b"}`, `{"user":"jane"}`,
		`{"username":"a"} {"username":"b"}`, `{"username":"a","before":"yesterday"}`, `{"username":"` + strings.Repeat("a", maxRevocation) + `"}`,
	} {
		if r, err := parseRevocation(text, time.Hour); err == nil {
			t.Errorf("%.50s is read as %v", text, r)
		}
	}
}

// Whatever is written into the ConfigMap ends only what it names, and is written again as it was read.
func FuzzRevocation(f *testing.F) {
	f.Add(`{"username":"jane","before":"2026-01-02T03:04:05Z"}`)
	f.Add(`{"issuer":"https://a","subject":"b","session":"c","until":"2026-01-02T03:04:05+02:00"}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRevocation(text, time.Hour)
		if err != nil {
			return
		}
		again, err := parseRevocation(r.String(), time.Hour)
		if err != nil || again.String() != r.String() {
			t.Errorf("%v is read as %v: %v", r, again, err)
		}
		revocationIndex{}.add(r)
	})
}

func ecToken(t testing.TB, changes ...map[string]any) string {
	return sign(t, jwt.SigningMethodES256, ecKey, goodClaims(changes...), nil)
}

// The other replicas learn of an entry, even if it cannot be written at once. In the end it is forgotten.
func TestRevocationsAreSharedWrittenAgainAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &authtest.ConfigMaps{Data: map[string]string{"operator": `{"username":"joe"}`}}
		one, other := followed(t, f), followed(t, f)
		jane := Identity{Username: "jane"}
		entry := Revocation{Username: "jane", Before: time.Now()}
		if err := one.Revoke(t.Context(), "a", entry); err != nil {
			t.Fatal(err)
		}
		if text := f.Data["a"]; strings.Contains(text, "until") {
			t.Errorf("%s says what goes without saying, and space is short", text)
		}
		synctest.Wait()
		for _, r := range []*Revocations{one, other} {
			if !errors.Is(r.Check(jane), ErrRevoked) || len(r.own) != 0 {
				t.Errorf("%v, with %d of its own", r.Check(jane), len(r.own))
			}
		}
		f.Set(func(f *authtest.ConfigMaps) { f.Refuses = errors.New("away") })
		mary := Identity{Username: "mary"}
		if err := one.Revoke(t.Context(), "b", Revocation{Username: "mary", Before: time.Now()}); err == nil {
			t.Error("nobody is told that it is not shared")
		}
		if !errors.Is(one.Check(mary), ErrRevoked) || other.Check(mary) != nil {
			t.Errorf("%v, %v", one.Check(mary), other.Check(mary))
		}
		time.Sleep(time.Minute)
		f.Set(func(f *authtest.ConfigMaps) { f.Refuses = nil })
		time.Sleep(revocationsLast + time.Second)
		if !errors.Is(other.Check(mary), ErrRevoked) {
			t.Error("it was not tried again")
		}
		time.Sleep(48 * time.Hour)
		if one.Check(jane) != nil || one.Check(mary) != nil || !errors.Is(one.Check(Identity{Username: "joe"}), ErrRevoked) {
			t.Errorf("%v %v %v", one.Check(jane), one.Check(mary), one.Check(Identity{Username: "joe"}))
		}
		if err := other.Revoke(t.Context(), "c", Revocation{Username: "jim", Before: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if keys := f.Keys(); len(keys) != 2 { // the operator's and jim's
			t.Errorf("%q are kept", keys)
		}
	})
}

// A user who signs in and out again and again must not fill the list that all share.
func TestLogoutsOfOneUserDoNotFillTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &authtest.ConfigMaps{Data: map[string]string{"operator": `{"username":"joe"}`}}
		one, other := followed(t, f), followed(t, f)
		session := func(i int) string { return fmt.Sprint("s-", i) }
		began := time.Now()
		const logouts = 200
		for i := range logouts {
			r := []*Revocations{one, other}[i%2]
			entry := Revocation{Issuer: testIssuer, Subject: "u-1", Session: session(i), Before: time.Now().Truncate(time.Second)}
			if err := r.Revoke(t.Context(), fmt.Sprint(logoutPrefix, i), entry); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			time.Sleep(300 * time.Millisecond)
		}
		if keys := f.Keys(); len(keys) > 20 {
			t.Errorf("%d entries are kept", len(keys))
		}
		for _, r := range []*Revocations{one, other} {
			for i := range logouts {
				id := Identity{
					Username: "jane", Claims: map[string]any{"iss": testIssuer, "sub": "u-1"}, Session: session(i),
					Begun: began.Add(time.Duration(i) * 300 * time.Millisecond).Truncate(time.Second),
				}
				if err := r.Check(id); !errors.Is(err, ErrRevoked) {
					t.Fatalf("session %d: %v", i, err)
				}
			}
			for name, id := range map[string]Identity{
				"another's":       {Username: "jim", Claims: map[string]any{"iss": testIssuer, "sub": "u-2"}, Session: "s-x", Begun: began},
				"signed in again": {Username: "jane", Claims: map[string]any{"iss": testIssuer, "sub": "u-1"}, Session: "s-y", Begun: time.Now().Add(time.Second)},
			} {
				if err := r.Check(id); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if !errors.Is(r.Check(Identity{Username: "joe"}), ErrRevoked) {
				t.Error("the operator's entry is gone")
			}
		}
	})
}

// However many sessions the provider ends, operators find room. Entries that were not written are tried again once
// there is room.
func TestLogoutsLeaveRoomForOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &authtest.ConfigMaps{Data: map[string]string{}}
		now := time.Now().Truncate(time.Second)
		for i, size := 0, 0; size < logoutsRoom; i++ { // a provider that names only sessions
			key := fmt.Sprint(logoutPrefix, i)
			f.Data[key] = Revocation{Issuer: testIssuer, Session: fmt.Sprint("s-", i) + strings.Repeat("x", 400), Before: now.Add(time.Minute - 48*time.Hour)}.String()
			size += len(key) + len(f.Data[key])
		}
		before := len(f.Data)
		one := followed(t, f)
		late := Identity{Username: "jane", Claims: map[string]any{"iss": testIssuer, "sub": "u-1"}, Session: "late"}
		if err := one.Revoke(t.Context(), logoutPrefix+"late", Revocation{Issuer: testIssuer, Session: "late", Before: now}); err == nil {
			t.Error("nobody is told that it is not shared")
		}
		synctest.Wait()
		if len(f.Keys()) > before || !errors.Is(one.Check(late), ErrRevoked) {
			t.Errorf("%d entries of %d; here: %v", len(f.Keys()), before, one.Check(late))
		}
		if err := one.Revoke(t.Context(), "operators", Revocation{Username: "joe"}); err == nil || !slices.Contains(f.Keys(), "operators") {
			t.Errorf("what is no logout is not written: %v", err)
		}
		time.Sleep(time.Minute + 2*revocationsLast) // the entries that filled it are over
		if keys := f.Keys(); len(keys) != 2 || !slices.Contains(keys, logoutPrefix+"late") {
			t.Errorf("%d are kept", len(keys))
		}
	})
}

// While it is not known what was revoked, all credentials are refused. But an API server that is away does not end
// running sessions.
func TestWhatCannotBeReadIsNotTakenForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &authtest.ConfigMaps{Data: map[string]string{"a": `{"username":"jane"}`}}
		f.Leave(errors.New("connection refused"))
		r := followed(t, f)
		joe, jane := Identity{Username: "joe"}, Identity{Username: "jane"}
		if err := r.Check(joe); !errors.Is(err, ErrUnavailable) {
			t.Errorf("never read: %v", err)
		}
		f.Leave(nil)
		time.Sleep(revocationsLast)
		if r.Check(joe) != nil || !errors.Is(r.Check(jane), ErrRevoked) {
			t.Errorf("%v, %v", r.Check(joe), r.Check(jane))
		}
		f.Leave(errors.New("connection refused"))
		time.Sleep(time.Hour)
		if r.Check(joe) != nil || !errors.Is(r.Check(jane), ErrRevoked) {
			t.Errorf("the cluster is away: %v, %v", r.Check(joe), r.Check(jane))
		}
		f.Leave(apierrors.NewServiceUnavailable("says what stands before the API server"))
		time.Sleep(time.Hour)
		if r.Check(joe) != nil || !errors.Is(r.Check(jane), ErrRevoked) {
			t.Errorf("the cluster is away: %v, %v", r.Check(joe), r.Check(jane))
		}
		f.Leave(nil)
		f.Fail(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "revoked", errors.New("no")))
		time.Sleep(revocationsLast + time.Second)
		if r.Check(joe) != nil {
			t.Errorf("at once: %v", r.Check(joe))
		}
		time.Sleep(UnreadFor)
		if err := r.Check(joe); !errors.Is(err, ErrUnavailable) || r.Ready() == nil {
			t.Errorf("refused for a minute: %v", err)
		}
		f.Fail(nil)
		time.Sleep(revocationsLast)
		if r.Check(joe) != nil {
			t.Error(r.Check(joe))
		}
		// The ConfigMap is deleted, and made again.
		f.Set(func(f *authtest.ConfigMaps) { f.Data = nil })
		f.Fail(nil) // the watches end
		time.Sleep(revocationsLast)
		if r.Check(jane) != nil {
			t.Error(r.Check(jane))
		}
	})
}

// logged is a log that may be read while it is written.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// hangingConfigMaps never answers a list, until the caller gives up.
type hangingConfigMaps struct{ *authtest.ConfigMaps }

func (hangingConfigMaps) List(ctx context.Context, _ metav1.ListOptions) (*corev1.ConfigMapList, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Whatever is answered in place of the list, or if there is no answer: an entry that was written a minute ago may be
// missing.
func TestListThatCannotBeReadDoesNotCountForLongWhateverTheReason(t *testing.T) {
	for name, failure := range map[string]error{
		"403":               apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "revoked", errors.New("no")),
		"410":               apierrors.NewResourceExpired("too old"),
		"429":               apierrors.NewTooManyRequests("later", 1),
		"500":               apierrors.NewInternalError(errors.New("broken")),
		"503":               apierrors.NewServiceUnavailable("no priority is left"),
		"504":               apierrors.NewTimeoutError("too slow", 1),
		"connections break": errors.New("connection reset by peer"),
		"no answer at all":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logged
				f := &authtest.ConfigMaps{Data: map[string]string{}}
				r := followed(t, f, &log)
				joe := Identity{Username: "joe"}
				if failure != nil {
					f.Fail(failure)
				} else {
					r.SetHome(hangingConfigMaps{f}, f.Answers)
				}
				time.Sleep(45 * time.Second)
				if err := r.Check(joe); err != nil {
					t.Errorf("after 45 s: %v", err)
				}
				time.Sleep(35 * time.Second)
				if err := r.Check(joe); !errors.Is(err, ErrUnavailable) || r.Ready() == nil {
					t.Errorf("after 80 s somebody is let in: %v", err)
				}
				if !strings.Contains(log.String(), "nobody is let in any more") {
					t.Error("the log does not tell")
				}
				// While the API server is away after that, nothing more is known.
				f.Leave(errors.New("connection refused"))
				time.Sleep(time.Minute)
				if r.Ready() == nil {
					t.Error("an API server that is away makes the list good")
				}
				f.Leave(nil)
				r.SetHome(f, f.Answers)
				time.Sleep(revocationsLast)
				if err := errors.Join(r.Check(joe), r.Ready()); err != nil {
					t.Errorf("it is read again: %v", err)
				}
				// After a break, the time counts from the beginning.
				if failure != nil {
					f.Fail(failure)
					time.Sleep(45 * time.Second)
					if err := r.Check(joe); err != nil {
						t.Errorf("it breaks off again: %v", err)
					}
				}
			})
		})
	}
}

// A watch that is not answered is given up early, and not only when it would have ended.
func TestWatchThatHangsBlindsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &authtest.ConfigMaps{Data: map[string]string{}}
		r := followed(t, f)
		r.SetHome(hangingWatches{f}, f.Answers)
		time.Sleep(time.Second)
		f.Put("a", `{"username":"jane"}`)
		time.Sleep(revocationsRead + revocationsLast)
		if err := r.Check(Identity{Username: "jane"}); !errors.Is(err, ErrRevoked) {
			t.Error(err)
		}
	})
}

// hangingWatches has watches that never begin.
type hangingWatches struct{ *authtest.ConfigMaps }

func (hangingWatches) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// After another cluster became the default one, only its entries count.
func TestRevocationsMoveWithTheDefaultCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := followed(t, &authtest.ConfigMaps{Data: map[string]string{"a": `{"username":"jane"}`}})
		other := &authtest.ConfigMaps{Data: map[string]string{"a": `{"username":"joe"}`}}
		r.SetHome(other, other.Answers)
		time.Sleep(time.Second)
		if r.Check(Identity{Username: "jane"}) != nil || !errors.Is(r.Check(Identity{Username: "joe"}), ErrRevoked) {
			t.Errorf("%v, %v", r.Check(Identity{Username: "jane"}), r.Check(Identity{Username: "joe"}))
		}
	})
}

// A revocation by time would never cover a token from the future.
func TestTokenFromTheFutureCanBeRevoked(t *testing.T) {
	revocations := NewRevocations(RevocationOptions{Keep: 48 * time.Hour})
	a, err := New(Options{
		Issuers:     []Issuer{{Issuer: testIssuer, Audiences: []string{"kubecast"}, PublicKeyFile: authtest.PublicFile(t, ecKey), Claims: usual}},
		Revocations: revocations,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := revocations.Revoke(t.Context(), "a", Revocation{Username: "jane", Before: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for name, iat := range map[string]any{"future": time.Now().Add(24 * time.Hour).Unix(), "none": nil, "text": "later", "enormous": 1e300, "negative": -1} {
		if _, err := a.Authenticate(t.Context(), ecToken(t, map[string]any{"iat": iat})); !errors.Is(err, ErrRevoked) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
