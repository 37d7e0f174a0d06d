package session

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func writeFile(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustSealer(t testing.TB, keys ...[]byte) *Sealer {
	t.Helper()
	s, err := NewSealer(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// believing is a Confirmer that confirms every identity.
type believing struct{}

func (believing) Confirm(_ context.Context, id auth.Identity) (auth.Identity, error) { return id, nil }

func mustSessions(t testing.TB, keys ...[]byte) *Sessions {
	t.Helper()
	return NewSessions(mustSealer(t, keys...), believing{})
}

var (
	keyA = bytes.Repeat([]byte{1}, KeySize)
	keyB = bytes.Repeat([]byte{2}, KeySize)
)

func janeUntil(expires time.Time) auth.Identity {
	return auth.Identity{Username: "jane", Groups: []string{"team-a", "system:authenticated"}, Claims: map[string]any{"sub": "jane", "level": float64(3)},
		ExpiresAt: time.Unix(expires.Unix(), 0), Cluster: "main"}
}

func TestSessionIsItsIdentityUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustSessions(t, keyA)
		want := janeUntil(time.Now().Add(time.Hour))
		cookie, err := s.Seal(want)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(cookie, "jane") || strings.Trim(cookie, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Errorf("cookie %s", cookie)
		}
		time.Sleep(time.Hour - time.Nanosecond)
		got, err := s.Open(context.Background(), cookie)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		time.Sleep(time.Nanosecond)
		if id, err := s.Open(context.Background(), cookie); !errors.Is(err, auth.ErrTokenExpired) || !errors.Is(err, auth.ErrBadToken) || id.Username != "" {
			t.Errorf("at its end: %v, %v", id, err)
		}
	})
}

func TestReplicasWithTheKeyOpenEachOthersSessions(t *testing.T) {
	id := janeUntil(time.Now().Add(time.Hour))
	old, rotated, other := mustSessions(t, keyA), mustSessions(t, keyB, keyA), mustSessions(t, keyB)
	byOld, err := old.Seal(id)
	if err != nil {
		t.Fatal(err)
	}
	byRotated, err := rotated.Seal(id)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		by     *Sessions
		cookie string
		good   bool
	}{
		"the same key": {mustSessions(t, keyA), byOld, true}, "a key that is replaced": {rotated, byOld, true}, "the new key": {other, byRotated, true},
		"another key": {other, byOld, false}, "a key that it does not know yet": {old, byRotated, false},
	} {
		if got, err := c.by.Open(context.Background(), c.cookie); (err == nil) != c.good || !c.good && !errors.Is(err, auth.ErrBadToken) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A key that is replaced while the gateway runs opens what it has sealed until nobody has come with it for a day. It
// seals nothing any more.
func TestAReplacedKeyOpensItsSessionsUntilTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := janeUntil(time.Now().Add(1000 * time.Hour))
		sealer := mustSealer(t, keyA)
		s, onlyNew, onlyOld := NewSessions(sealer, believing{}), mustSessions(t, keyB), mustSessions(t, keyA)
		before := must(s.Seal(id))
		if _, err := sealer.Replace([]byte("short")); err == nil {
			t.Error("a short key was taken")
		}
		use, err := sealer.Replace(keyB)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := onlyOld.Open(t.Context(), must(s.Seal(id))); err != nil {
			t.Errorf("before it was put to use: %v", err)
		}
		use()
		after := must(s.Seal(id))
		if _, err := onlyNew.Open(t.Context(), after); err != nil {
			t.Errorf("sealed after the replacement: %v", err)
		}
		opens := func(when, cookie string, want bool) {
			t.Helper()
			if _, err := s.Open(t.Context(), cookie); (err == nil) != want {
				t.Errorf("%s: %v", when, err)
			}
		}
		time.Sleep(20 * time.Hour)
		opens("within the day", before, true)
		time.Sleep(20 * time.Hour)
		opens("a day since it was replaced, and not since it was of use", before, true)
		use, err = sealer.Replace(bytes.Repeat([]byte{3}, KeySize))
		if err != nil {
			t.Fatal(err)
		}
		use()
		time.Sleep(23 * time.Hour)
		opens("after one more replacement", after, true)
		time.Sleep(2 * time.Hour)
		opens("a day since it was of use", before, false)
		opens("within the day", after, true)
		if use, err = sealer.Replace(keyA); err != nil {
			t.Fatal(err)
		}
		use()
		opens("with the key back", before, true)
		if n := len(*sealer.keys.Load()); n != 3 {
			t.Errorf("%d keys, want A, the third and B", n)
		}
	})
}

// A cookie or ticket with any change opens nothing, nor does one in place of the other.
func TestWhatWasChangedIsNotOpened(t *testing.T) {
	s := mustSessions(t, keyA)
	tickets := NewTickets(s)
	id := janeUntil(time.Now().Add(time.Hour))
	cookie, err := s.Seal(id)
	if err != nil {
		t.Fatal(err)
	}
	ticket, _, err := tickets.Issue(id, "/x?")
	if err != nil {
		t.Fatal(err)
	}
	sealed := must(base64.RawURLEncoding.DecodeString(cookie))
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if id, err := s.Open(context.Background(), base64.RawURLEncoding.EncodeToString(changed)); !errors.Is(err, auth.ErrBadToken) {
			t.Fatalf("byte %d: %v, %v", i, id, err)
		}
	}
	for name, text := range map[string]string{
		"nothing": "", "a ticket": ticket, "more behind": cookie + "AA", "less": cookie[:len(cookie)-2], "no base64": "%%%", "padded": cookie + "=",
		"enormous": strings.Repeat("A", 1<<20), "the identity in the clear": base64.RawURLEncoding.EncodeToString([]byte(`{"u":"admin","g":["system:masters"],"e":99999999999}`)),
	} {
		if id, err := s.Open(context.Background(), text); !errors.Is(err, auth.ErrBadToken) {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
	if id, err := tickets.Redeem(context.Background(), cookie, "/x?"); !errors.Is(err, auth.ErrBadToken) {
		t.Errorf("a cookie as a ticket: %v, %v", id, err)
	}
}

func TestWhoDoesNotEndHasNoSession(t *testing.T) {
	s := mustSessions(t, keyA)
	for _, id := range []auth.Identity{{Username: "system:anonymous", Anonymous: true, ExpiresAt: time.Now().Add(time.Hour)}, {Username: "jane"}} {
		if _, err := s.Seal(id); !errors.Is(err, auth.ErrNoCredentials) {
			t.Errorf("%v: %v", id, err)
		}
		if _, _, err := NewTickets(s).Issue(id, "/"); !errors.Is(err, auth.ErrNoCredentials) {
			t.Errorf("%v: %v", id, err)
		}
	}
	id := janeUntil(time.Now().Add(time.Hour))
	for range 400 {
		id.Groups = append(id.Groups, string(RandomKey()))
	}
	if _, err := s.Seal(id); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

// The names of a company's groups are much alike, so hundreds of them fit into a cookie.
func TestCookieHoldsManyGroups(t *testing.T) {
	s := mustSessions(t, keyA)
	id := janeUntil(time.Now().Add(time.Hour))
	for i := range 300 {
		id.Groups = append(id.Groups, fmt.Sprintf("company-department-team-%d", i))
	}
	cookie, err := s.Seal(id)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Open(context.Background(), cookie)
	if diff := cmp.Diff(id, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func BenchmarkOpenSession(b *testing.B) {
	s := mustSessions(b, keyA)
	few := janeUntil(time.Now().Add(time.Hour))
	many := few
	for i := range 200 {
		many.Groups = append(many.Groups, fmt.Sprintf("company-department-team-%d", i))
	}
	for name, id := range map[string]auth.Identity{"few groups": few, "200 groups": many} {
		cookie := must(s.Seal(id))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Open(context.Background(), cookie); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestTicketIsForOneRequestSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustSessions(t, keyA)
		tickets := NewTickets(s)
		id := janeUntil(time.Now().Add(time.Hour))
		issue := func() string {
			t.Helper()
			text, expires, err := tickets.Issue(id, "/stream?pods=x")
			if err != nil || time.Until(expires) != TicketTime {
				t.Fatalf("%v, %v", expires, err)
			}
			return text
		}
		good := issue()
		got, err := tickets.Redeem(context.Background(), good, "/stream?pods=x")
		if diff := cmp.Diff(id, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if _, err := tickets.Redeem(context.Background(), good, "/stream?pods=x"); !errors.Is(err, auth.ErrBadToken) || !strings.Contains(err.Error(), "used before") {
			t.Errorf("twice: %v", err)
		}
		wrong := issue()
		if _, err := tickets.Redeem(context.Background(), wrong, "/stream?pods=y"); !errors.Is(err, auth.ErrBadToken) || !strings.Contains(err.Error(), "another request") {
			t.Errorf("another request: %v", err)
		}
		if _, err := tickets.Redeem(context.Background(), wrong, "/stream?pods=x"); !errors.Is(err, auth.ErrBadToken) {
			t.Errorf("after another request: %v", err)
		}
		late := issue()
		time.Sleep(TicketTime)
		if _, err := tickets.Redeem(context.Background(), late, "/stream?pods=x"); !errors.Is(err, auth.ErrTokenExpired) {
			t.Errorf("late: %v", err)
		}
		// A ticket does not last longer than the identity itself.
		id.ExpiresAt = time.Unix(time.Now().Add(5*time.Second).Unix(), 0)
		text, expires, err := tickets.Issue(id, "/")
		if err != nil || expires.After(id.ExpiresAt) {
			t.Errorf("%v, %v", expires, err)
		}
		time.Sleep(5 * time.Second)
		if _, err := tickets.Redeem(context.Background(), text, "/"); !errors.Is(err, auth.ErrTokenExpired) {
			t.Errorf("after its caller's end: %v", err)
		}
	})
}

func TestTicketIsTakenOnceByMany(t *testing.T) {
	tickets := NewTickets(mustSessions(t, keyA))
	text, _, err := tickets.Issue(janeUntil(time.Now().Add(time.Hour)), "/")
	if err != nil {
		t.Fatal(err)
	}
	var good atomic.Int32
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if _, err := tickets.Redeem(context.Background(), text, "/"); err == nil {
				good.Add(1)
			}
		})
	}
	wg.Wait()
	if n := good.Load(); n != 1 {
		t.Errorf("taken %d times", n)
	}
}

func TestUsedTicketsAreForgottenOnceTheyHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tickets := NewTickets(mustSessions(t, keyA))
		for range 10 {
			for range 100 {
				text, _, err := tickets.Issue(janeUntil(time.Now().Add(time.Hour)), "/")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tickets.Redeem(context.Background(), text, "/"); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(TicketTime + time.Second)
		}
		if n := len(tickets.used.used); n > 200 {
			t.Errorf("%d are remembered", n)
		}
	})
}

func TestKeysOfSessionsAreReadStrictly(t *testing.T) {
	line := func(key []byte) string { return base64.StdEncoding.EncodeToString(key) }
	keys, err := ReadKeys(writeFile(t, []byte(line(keyA)+"\n"+line(keyB)+"\n")))
	if err != nil || len(keys) != 2 || !bytes.Equal(keys[0], keyA) {
		t.Errorf("%v, %v", keys, err)
	}
	for want, text := range map[string]string{
		"no key": "\n", "key 1: allowed": line(keyA[1:]), "key 2: allowed": line(keyA) + "\n???", "32 random bytes": strings.Repeat("x", 32),
	} {
		if _, err := ReadKeys(writeFile(t, []byte(text))); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), line(keyA)) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	if _, err := NewSealer(); err == nil {
		t.Error("without a key")
	}
	if _, err := NewSealer(keyA, keyB[1:]); err == nil || !strings.Contains(err.Error(), "key 2") {
		t.Error(err)
	}
	if bytes.Equal(RandomKey(), RandomKey()) {
		t.Error("not random")
	}
}

func FuzzOpen(f *testing.F) {
	s := mustSessions(f, keyA)
	tickets := NewTickets(s)
	id := janeUntil(time.Now().Add(time.Hour))
	cookie := must(s.Seal(id))
	ticket, _, err := tickets.Issue(id, "/")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", cookie[1:], ticket[1:], cookie + ticket, fmt.Sprintf("%x", keyA)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == cookie || text == ticket {
			return
		}
		if id, err := s.Open(context.Background(), text); !errors.Is(err, auth.ErrBadToken) {
			t.Errorf("%v, %v", id, err)
		}
		if id, err := tickets.Redeem(context.Background(), text, "/"); !errors.Is(err, auth.ErrBadToken) {
			t.Errorf("%v, %v", id, err)
		}
	})
}
