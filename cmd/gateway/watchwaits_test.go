package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Beside transitions it is printed why jobs wait, at which place, and until when: what was asked for with the stream's own
// filters and token, once as long as it is the same, and in a terminal that no stranger controls.
func TestWatchPrintsWhyJobsWait(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "application/json" {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, r.URL.RequestURI()+" "+r.Header.Get("Authorization"))
			from := time.Now().Add(10*time.Minute + 30*time.Second)
			fmt.Fprintf(w, `{"items":[{"uid":"u","resource":"jobs.batch","namespace":"a","name":"t","state":"Queued","reason":"Pending","reasons":[{"reason":"Old","text":"no"},{"reason":"Pending","text":"no\u001b[2J quota"}],`+
				`"queue":{"name":"gpu","position":2,"clusterPosition":7,"starts":{"from":%q,"to":%q,"confidence":0.8}}},`+
				`{"uid":"v","resource":"jobs.batch","namespace":"a","name":"quiet","state":"Pending","reason":"","reasons":[{"reason":"Old","text":"no"}],"queue":"gpu"}]}`,
				from.Format(time.RFC3339), from.Add(time.Hour).Format(time.RFC3339))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": kubecast\n\nid: h-1\nevent: synced\ndata: {\"seq\":\"1\",\"count\":0}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer gateway.Close()
	ctx, stop := context.WithCancel(t.Context())
	printed := make(chan string, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- watch(ctx, []string{"--server", gateway.URL, "--token", "secret", "/history/apis/batch/v1/jobs?owner=me&limit=10"}, lines(printed))
	}()
	for said := ""; !strings.Contains(said, "waits"); {
		select {
		case line := <-printed:
			if said = line; strings.Contains(line, "waits") && !strings.HasSuffix(line, "waits      jobs.batch a/t Queued: no[2J quota; place 2 in gpu (7 in the cluster); starts in 10m to 1h11m (80 % sure)\n") {
				t.Errorf("printed %q", line)
			}
		case <-time.After(time.Minute):
			t.Fatal("it does not print why a job waits")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := "/history/apis/batch/v1/jobs?limit=1000&owner=me&state=Submitted%2CQueued%2CSuspended%2CPending%2CRetrying Bearer secret"; asked[0] != want {
		t.Errorf("asked %q, not %q", asked[0], want)
	}
}

type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// It is told again when the reason or the place is another, and not when only time has passed.
func TestWhyAJobWaitsIsPrintedOnceForEachChange(t *testing.T) {
	one, two := 1, 2
	now := time.Now()
	job := func(text string, position *int) toldWait {
		queue := `"gpu"`
		if position != nil {
			queue = fmt.Sprintf(`{"name":"gpu","position":%d,"starts":{"from":%q,"to":%q,"confidence":0.8}}`, *position, now.Add(time.Hour).Format(time.RFC3339), now.Add(2*time.Hour).Format(time.RFC3339))
		}
		return toldWait{UID: "u", Reason: "r", Queue: []byte(queue), Reasons: []struct{ Reason, Text string }{{"r", text}}}
	}
	told, n := map[string]string{}, 0
	for i, step := range []struct {
		job   toldWait
		print int
	}{{job("a", nil), 1}, {job("a", nil), 1}, {job("b", nil), 2}, {job("b", &two), 3}, {job("b", &two), 3}, {job("b", &one), 4}, {toldWait{UID: "u"}, 4}, {job("b", &one), 5}} {
		told = tellWaits([]toldWait{step.job}, told, now.Add(time.Duration(i)*time.Minute), func(string) error { n++; return nil })
		if n != step.print {
			t.Errorf("step %d: %d lines, not %d", i, n, step.print)
		}
	}
}

// Only transitions of jobs have waits beside them.
func TestWaitsAreAskedForBesideTransitionsOnly(t *testing.T) {
	const at, state = "https://h/base", "limit=1000&state=Submitted%2CQueued%2CSuspended%2CPending%2CRetrying"
	for path, want := range map[string]string{
		"/history/apis/batch/v1/jobs":                                        at + "/history/apis/batch/v1/jobs?" + state,
		"/clusters/x/history/apis/batch/v1/jobs?view=transitions&queue=a,b":  at + "/clusters/x/history/apis/batch/v1/jobs?limit=1000&queue=a%2Cb&" + strings.TrimPrefix(state, "limit=1000&"),
		"/history/apis/batch/v1/namespaces/n/jobs/j?uid=u&limit=0&since=24h": at + "/history/apis/batch/v1/namespaces/n/jobs/j?" + state + "&uid=u",
		"/history/apis/batch/v1/jobs?view=runs":                              "",
		"/history/apis/batch/v1/jobs?state=Failed":                           "",
		"/history/apis/batch/v1/jobs?cause=OOMKilled":                        "",
		"/api/v1/namespaces/history/pods":                                    "",
		"/queues/history/x":                                                  "",
		"/stream?past=/history/apis/batch/v1/jobs":                           "",
	} {
		if got := waitsURL(at+path, path); got != want {
			t.Errorf("%s: %q, not %q", path, got, want)
		}
	}
}

// Why jobs wait cannot be asked for, or not of all of them: that is told, and not every ten seconds.
func TestThatItIsNotKnownWhyJobsWaitIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []string{"503", "503", "403", "", "", "403", `{"items":[],"continue":"x"}`, `{"items":[],"continue":"x"}`, "403"}
		client := &http.Client{Transport: roundTrips(func(*http.Request) (*http.Response, error) {
			answer := "503"
			if len(answers) > 0 {
				answer, answers = answers[0], answers[1:]
			}
			if strings.HasPrefix(answer, "{") {
				return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Body: io.NopCloser(strings.NewReader(answer))}, nil
			}
			if answer == "" { // from another port each time
				return nil, &net.OpError{Op: "read", Net: "tcp", Addr: &net.TCPAddr{Port: len(answers)}, Err: syscall.ECONNRESET}
			}
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Status: answer, Body: http.NoBody}, nil
		})}
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(len(answers))*askAboutWaits-time.Second)
		defer stop()
		var told []string
		printWaits(ctx, client, "http://gateway", func() (string, error) { return "", nil }, func(string) error { return nil }, func(problem string) {
			told = append(told, problem[strings.LastIndex(problem, ": ")+2:])
		})
		want := []string{"503", "403", "connection reset by peer", "403", "of the newest 1000 only it is printed why", "403"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q", told)
		}
	})
}

type roundTrips func(*http.Request) (*http.Response, error)

func (r roundTrips) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
