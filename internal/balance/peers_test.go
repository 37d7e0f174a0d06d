package balance

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const token = "0123456789abcdef"

func shared() (string, error) { return token, nil }

// replicaOf answers as a replica with some tokens.
func replicaOf(load Load, tokens ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		by, is := AskerOf(r, tokens, time.Now())
		if !is {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		by.Answer(w, load)
	}
}

// TestReplicasAreAskedByAllAddressesOfTheirNames, and what is no answer is none.
func TestReplicasAreAskedByAllAddressesOfTheirNames(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"good":           replicaOf(Load{"x", 7}, token),
		"rotated":        replicaOf(Load{"r", 3}, "another token of it", token),
		"another secret": replicaOf(Load{"s", 3}, "not the same token"),
		"not ready":      func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "waiting", http.StatusServiceUnavailable) },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"no name":  replicaOf(Load{"", 7}, token),
		"negative": replicaOf(Load{"y", -7}, token),
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.Repeat(" ", 1<<20)+`{"instance":"z"}`)
		},
	}
	r := &Replicas{Token: shared, Log: silent}
	for _, answer := range answers {
		server := httptest.NewServer(answer)
		defer server.Close()
		r.Addresses = append(r.Addresses, server.Listener.Addr().String())
	}
	r.Addresses = append(r.Addresses, strings.Replace(r.Addresses[0], "127.0.0.1", "localhost", 1), "127.0.0.1:1")
	all, complete := r.Ask(t.Context())
	streams := map[string]int{}
	for _, l := range each(all) {
		streams[l.Instance] = l.Streams
	}
	if len(streams) != 2 || streams["x"] != 7 || streams["r"] != 3 || complete {
		t.Errorf("%+v, complete: %v", all, complete)
	}
}

// TestWhoHasTheReplicasNameLearnsNoSecret, and cannot tell loads: who can change DNS gets the questions.
func TestWhoHasTheReplicasNameLearnsNoSecret(t *testing.T) {
	var seen []string
	var proof string
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, fmt.Sprint(r.URL, r.Header))
		if proof == "" { // of the answer to an earlier question
			good := httptest.NewRecorder()
			replicaOf(Load{"x", 7}, token)(good, r)
			proof = good.Header().Get(proofHeader)
		}
		w.Header().Set(proofHeader, proof)
		fmt.Fprint(w, `{"instance":"x","streams":7}`)
	}))
	defer listener.Close()
	r := &Replicas{Addresses: []string{listener.Listener.Addr().String()}, Token: shared, Log: silent}
	if all, complete := r.Ask(t.Context()); len(all) != 1 || !complete {
		t.Fatalf("what is repeated is no good answer: %+v", all)
	}
	if all, complete := r.Ask(t.Context()); len(all) > 0 || complete {
		t.Errorf("an answer to an earlier question counts: %+v", all)
	}
	if strings.Contains(strings.Join(seen, " "), token) || seen[0] == seen[1] {
		t.Errorf("%q", seen)
	}
}

// TestOldQuestionsAreNotAnswered, nor those that were changed.
func TestOldQuestionsAreNotAnswered(t *testing.T) {
	now := time.Now()
	r := httptest.NewRequest(http.MethodGet, Path, nil)
	sign(r, token, now)
	signed := r.Header.Get("Authorization")
	for name, test := range map[string]struct {
		header string
		now    time.Time
		want   bool
	}{
		"new":            {signed, now, true},
		"by a slow one":  {signed, now.Add(4 * time.Minute), true},
		"old":            {signed, now.Add(6 * time.Minute), false},
		"of the future":  {signed, now.Add(-6 * time.Minute), false},
		"later time":     {strings.Replace(signed, " ", " 1", 1), now, false},
		"another nonce":  {strings.Replace(signed, ":", ":A", 1), now, false},
		"cut":            {signed[:len(signed)-1], now, false},
		"without a mac":  {signed[:strings.LastIndex(signed, ":")+1], now, false},
		"bearer":         {"Bearer " + token, now, false},
		"nothing":        {"", now, false},
		"no time at all": {scheme + " x:y:z", now, false},
	} {
		r.Header.Set("Authorization", test.header)
		if _, is := AskerOf(r, []string{"another of the tokens", token}, test.now); is != test.want {
			t.Errorf("%s: %v", name, is)
		}
	}
	if _, is := AskerOf(r, nil, now); is {
		t.Error("without a token")
	}
}

// TestSilenceIsToldOnce, and again when it is over or another: refusals for good would keep streams where they are with
// nobody knowing. After a while it is not waited for any more.
func TestSilenceIsToldOnce(t *testing.T) {
	var log strings.Builder
	r := &Replicas{Log: slog.New(slog.NewTextHandler(&log, nil))}
	now, told := time.Now(), 0
	hear := func(err error, missing bool, text string) {
		t.Helper()
		now = now.Add(10 * time.Second)
		known, waits := r.hear("a:1", err, now)
		r.mute = map[string]*silence{}
		if known != nil {
			r.mute["a:1"] = known
		}
		lines := strings.Split(log.String(), "\n")
		if waits != missing || text == "" && len(lines)-1 != told || text != "" && (len(lines)-1 != told+1 || !strings.Contains(lines[told], text)) {
			t.Fatalf("missing: %v; %q", waits, lines[told:])
		}
		told = len(lines) - 1
	}
	refused := func(port int) error { return fmt.Errorf("read tcp 127.0.0.1:%d: connection reset", port) }
	hear(nil, false, "")
	hear(refused(1), true, "")
	hear(nil, false, "") // one that has just ended is no news
	for i := range 3 {
		hear(answerError("it answers 401 Unauthorized"), true, "")
		_ = i
	}
	hear(answerError("it answers 401 Unauthorized"), true, "level=WARN msg=\"no streams are moved to other replicas: one does not tell its load\" address=a:1 error=\"it answers 401")
	hear(answerError("it answers 401 Unauthorized"), true, "")
	hear(refused(2), true, "connection reset")
	hear(refused(3), true, "")
	hear(nil, false, "level=INFO msg=\"a replica tells its load again\"")
	hear(nil, false, "")
	hear(refused(4), true, "")
	for range 2 {
		hear(refused(5), true, "")
	}
	hear(refused(6), true, "level=WARN")
	now = now.Add(leftOutAfter)
	hear(refused(7), false, "without regard to a replica")
	hear(refused(8), false, "")
	hear(nil, false, "again")
}

// hosts is a DNS of names without ports. Of those that it does not know, "slow" is never answered.
type hosts map[string]string

func (h hosts) resolve(ctx context.Context, host string) ([]string, error) {
	if address, known := h[host]; known {
		return []string{address}, nil
	}
	if host == "slow" {
		<-ctx.Done()
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// TestNameThatIsGoneIsLeftOut as an address is that does not answer, though its lookups take long: the replicas of other names
// are asked meanwhile, and once it has been gone for long, it is not waited for any more.
func TestNameThatIsGoneIsLeftOut(t *testing.T) {
	for _, gone := range []string{"gone", "slow"} {
		t.Run(gone, func(t *testing.T) {
			answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"instance":"x","streams":7}`) }))
			defer answers.Close()
			_, port, _ := net.SplitHostPort(answers.Listener.Addr().String())
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				dns := hosts{"here": "127.0.0.1"}
				r := &Replicas{Addresses: []string{gone + ":" + port, "here:" + port}, Log: slog.New(slog.NewTextHandler(&log, nil)), resolve: dns.resolve,
					Token: func() (string, error) { return "", nil }}
				ask := func(complete bool, told string) {
					t.Helper()
					log.Reset()
					all, is := r.Ask(t.Context())
					if len(each(all)) != 1 || is != complete {
						t.Errorf("%+v, complete: %v", all, is)
					}
					if lines := strings.Count(log.String(), "\n"); told == "" && lines > 0 || told != "" && (lines != 1 || !strings.Contains(log.String(), told)) {
						t.Errorf("not %q, but: %s", told, &log)
					}
				}
				ask(false, "")
				time.Sleep(toldAfter)
				ask(false, "level=WARN msg=\"no streams are moved to other replicas: one does not tell its load\" address="+gone+":"+port+" error=\"lookup "+gone)
				time.Sleep(toldAfter)
				ask(false, "")
				time.Sleep(leftOutAfter)
				ask(true, "without regard to a replica")
				ask(true, "")
				dns[gone] = "127.0.0.1"
				ask(true, "level=INFO msg=\"a replica's name is found again\" name="+gone+":"+port)
				ask(true, "")
			})
		})
	}
}

// TestSilenceOutlastsAFailedLookup: an address that has been mute for long is not waited for again since its name was not found
// for a moment. But of a name that is gone nothing is kept: whoever has the address later is another one.
func TestSilenceOutlastsAFailedLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := hosts{"here": "127.0.0.1"}
		r := &Replicas{Addresses: []string{"here:1"}, Log: silent, resolve: dns.resolve, Token: func() (string, error) { return "", nil }}
		ask := func(want bool) {
			t.Helper()
			if _, complete := r.Ask(t.Context()); complete != want {
				t.Errorf("complete: %v", complete)
			}
		}
		ask(false)
		time.Sleep(leftOutAfter)
		ask(true)
		delete(dns, "here")
		ask(false)
		time.Sleep(time.Minute)
		ask(false)
		dns["here"] = "127.0.0.1"
		ask(true)
		delete(dns, "here")
		ask(false)
		time.Sleep(leftOutAfter)
		ask(true)
		dns["here"] = "127.0.0.1"
		ask(false)
	})
}
