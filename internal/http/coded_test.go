package http

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
)

// compressed lets the gateway offer codings.
func compressed(codings ...string) option {
	return options(func(o *Options) { o.Compress = codings })
}

// decoded is what others' programs make of a body; an error is anything that the coding does not allow.
func decoded(t testing.TB, coding, body string) string {
	t.Helper()
	var plain []byte
	var err error
	switch coding {
	case "":
		return body
	case "gzip":
		var r *gzip.Reader
		if r, err = gzip.NewReader(strings.NewReader(body)); err == nil {
			r.Multistream(false)
			plain, err = io.ReadAll(r)
		}
	case "zstd":
		program, missing := exec.LookPath("zstd")
		if missing != nil {
			t.Skip("there is no zstd")
		}
		command := exec.Command(program, "-dc", "-M8MB")
		command.Stdin = strings.NewReader(body)
		var out bytes.Buffer
		command.Stdout = &out
		err, plain = command.Run(), nil
		plain = out.Bytes()
	}
	if err != nil {
		t.Fatalf("%s: %v", coding, err)
	}
	return string(plain)
}

// A page that is told a list by half, or a proxy that gives zstd to who cannot read it, shows less than there is.
func TestCompressedAnswersAreThoseThatAreNot(t *testing.T) {
	const pods = 500
	g := newGateway(t, manyPods(pods), compressed("zstd", "gzip"), cached(streamOptions(), "pods"))
	g.eventually("pods are there", func() bool { return len(g.list("/api/v1/pods?fields=metadata.name").Items) == pods })
	for _, path := range []string{
		"/api/v1/pods", "/api/v1/pods?limit=100", "/api/v1/pods?fields=metadata.name,spec", "/api/v1/pods?countBy=metadata.name&limit=400", "/apis",
		"/openapi/v2", "/clusters/default/openapi/v3", "/api/v1/pods?sort=-metadata.name",
	} {
		plain := g.get(path, "Accept-Encoding: identity")
		if plain.code != 200 || plain.header.Get("Content-Encoding") != "" || !strings.Contains(plain.header.Get("Vary"), "Accept-Encoding") {
			t.Fatalf("%s: %d %v", path, plain.code, plain.header)
		}
		for range 3 { // the third time, it is one that was kept
			for _, coding := range []string{"zstd", "gzip"} {
				a := g.get(path, "Accept-Encoding: "+coding)
				want := coding
				if len(plain.body) < 1024 {
					want = ""
				}
				if a.header.Get("Content-Encoding") != want || a.header.Get("ETag") != plain.header.Get("ETag") || a.header.Get("Vary") != plain.header.Get("Vary") {
					t.Errorf("%s as %s: %v, not %v", path, coding, a.header, plain.header)
				}
				if decoded(t, want, a.body) != plain.body {
					t.Errorf("%s as %s is another answer", path, coding)
				}
				if want != "" && len(a.body) >= len(plain.body) {
					t.Errorf("%s as %s has %d bytes, not %d", path, coding, len(a.body), len(plain.body))
				}
				if tag := a.header.Get("ETag"); tag != "" {
					again := g.get(path, "Accept-Encoding: "+coding, "If-None-Match: "+tag)
					if !strings.HasPrefix(tag, "W/") || again.code != 304 || again.header.Get("Content-Encoding") != "" || again.header.Get("Vary") != plain.header.Get("Vary") {
						t.Errorf("%s as %s again: %d %v", path, coding, again.code, again.header)
					}
				}
			}
		}
	}
	r := g.newRequest(t.Context(), http.MethodHead, "/api/v1/pods", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	head, err := g.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer head.Body.Close()
	if head.StatusCode != 200 || head.Header.Get("Content-Encoding") != "gzip" || head.ContentLength > 0 {
		t.Errorf("HEAD: %d %v", head.StatusCode, head.Header)
	}
	if refused := g.get("/api/v1/pods?limit="+strings.Repeat("x", 2000), "Accept-Encoding: gzip"); refused.code != 400 || refused.header.Get("Content-Encoding") != "" {
		t.Errorf("%d %v", refused.code, refused.header)
	}
}

// Pages of the history are compressed like lists. What says who somebody is, beside kinds that a
// page may have chosen, is not.
func TestPagesOfTheHistoryAreCompressed(t *testing.T) {
	c := newChronicle(t, compressed("zstd", "gzip"))
	for i := range 200 {
		c.lives(fmt.Sprintf("a/job-%d", i), "alice", "", jobs.Running, jobs.Deleted) // how long it runs is the same in each answer
	}
	const jobs = "/history/apis/batch/v1/jobs"
	for _, path := range []string{jobs + "?limit=300", jobs + "?view=transitions&limit=300", jobs + "/none", "/auth/me?kinds=pods," + strings.Repeat("pods,", 60) + "pods"} {
		plain := c.get(path, "Accept-Encoding: identity")
		for _, coding := range []string{"zstd", "gzip"} {
			for range 3 { // the third time, it is one that was kept
				a := c.get(path, "Accept-Encoding: "+coding)
				want := ""
				if strings.Contains(path, "limit") {
					want = coding
				}
				if a.code != plain.code || a.header.Get("Content-Encoding") != want || want != "" && !strings.Contains(a.header.Get("Vary"), "Accept-Encoding") {
					t.Fatalf("%s as %s: %d, not %d; %v", path, coding, a.code, plain.code, a.header)
				}
				if decoded(t, want, a.body) != plain.body {
					t.Errorf("%s as %s is another answer", path, coding)
				}
				if want != "" && 3*len(a.body) > len(plain.body) {
					t.Errorf("%s as %s has %d bytes, not %d", path, coding, len(a.body), len(plain.body))
				}
			}
		}
	}
	if small := c.get(jobs+"?limit=1&owner=bob", "Accept-Encoding: gzip"); small.code != 200 || small.header.Get("Content-Encoding") != "" || small.header.Get("Vary") == "" {
		t.Errorf("%d %v", small.code, small.header)
	}
}

func TestNothingIsCompressedThatIsNotToBe(t *testing.T) {
	g := newGateway(t, manyPods(50), compressed(), cached(streamOptions(), "pods"))
	g.eventually("pods are there", func() bool { return len(g.list("/api/v1/pods?fields=metadata.name").Items) == 50 })
	if a := g.get("/api/v1/pods", "Accept-Encoding: gzip, zstd"); a.header.Get("Content-Encoding") != "" || !strings.Contains(a.body, `"items":[`) {
		t.Errorf("%v", a.header)
	}
}
