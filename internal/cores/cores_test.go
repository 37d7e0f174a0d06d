package cores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// answers are the answers of cores, by host: a status, or an error. What is not in it hangs.
type answers struct {
	by    map[string]any
	asked []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		text, _ := io.ReadAll(r.Body)
		body = " " + string(text)
	}
	a.asked = append(a.asked, r.URL.String()+body)
	switch answer := a.by[r.URL.Host].(type) {
	case int:
		return &http.Response{StatusCode: answer, Body: io.NopCloser(strings.NewReader(r.URL.Host))}, nil
	case error:
		return nil, answer
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAnotherCoreIsAskedWhereOneDoesNotAnswer(t *testing.T) {
	refused := errors.New("connection refused")
	for _, test := range []struct {
		a, b  any
		want  any // status and host, or the error
		asked string
	}{
		{200, 200, "200 a", "aa"},
		{404, 200, "404 a", "aa"},
		{410, 200, "410 a", "aa"},
		{504, 200, "504 a", "aa"}, // as of a version that nobody has
		{refused, 200, "200 b", "abb"},
		{429, 200, "200 b", "abb"},
		{502, 403, "403 b", "abb"},
		{503, 200, "200 b", "abb"},
		{503, refused, "503 a", "abab"}, // an answer says more than none
		{refused, 503, "503 b", "abab"},
		{503, 429, "429 b", "abab"},
		{refused, refused, refused, "abab"},
	} {
		t.Run(fmt.Sprint(test.a, test.b), func(t *testing.T) {
			c, err := New([]string{"https://a/clusters/default", "https://b/below/clusters/default/"})
			if err != nil {
				t.Fatal(err)
			}
			base := &answers{by: map[string]any{"a": test.a, "b": test.b}}
			for range 2 { // the second one goes to whichever answered the first
				request, _ := http.NewRequest(http.MethodPost, "https://a/clusters/default/api/v1/pods?watch=true", strings.NewReader("review"))
				response, err := c.Wrap(base).RoundTrip(request)
				if want, is := test.want.(error); is {
					if !errors.Is(err, want) {
						t.Error(err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(response.Body)
				if got := fmt.Sprintf("%d %s", response.StatusCode, body); got != test.want {
					t.Errorf("%s, and not %s", got, test.want)
				}
			}
			asked := ""
			for _, address := range base.asked {
				switch address {
				case "https://a/clusters/default/api/v1/pods?watch=true review":
					asked += "a"
				case "https://b/below/clusters/default/api/v1/pods?watch=true review":
					asked += "b"
				default:
					t.Errorf("%s was asked", address)
				}
			}
			if asked != test.asked {
				t.Errorf("%s were asked, and not %s", asked, test.asked)
			}
		})
	}
}

// A core that does not answer at all keeps whoever comes later waiting no more.
func TestACoreThatHangsIsNotAskedFirstAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New([]string{"https://a", "https://b"})
		if err != nil {
			t.Fatal(err)
		}
		base := &answers{by: map[string]any{"b": 200}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for i, ctx := range []context.Context{ctx, t.Context()} {
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://a/livez", nil)
			response, err := c.Wrap(base).RoundTrip(request)
			if i == 0 && !errors.Is(err, context.DeadlineExceeded) || i == 1 && (err != nil || response.StatusCode != 200) {
				t.Error(i, response, err)
			}
		}
	})
}

// A caller who has gone says nothing of a core.
func TestACancelledRequestLeavesTheChoiceAsItIs(t *testing.T) {
	c, err := New([]string{"https://a", "https://b"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://a/livez", nil)
	base := &answers{by: map[string]any{"b": 200}}
	if _, err := c.Wrap(base).RoundTrip(request); !errors.Is(err, context.Canceled) || len(base.asked) != 1 || c.first.Load() != 0 {
		t.Error(err, base.asked, c.first.Load())
	}
}

// slowBody is the body of a refusal of which no byte comes.
type slowBody struct {
	closed chan struct{}
	once   *sync.Once
}

func (b slowBody) Read([]byte) (int, error) {
	<-b.closed
	return 0, io.ErrClosedPipe
}

func (b slowBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// A core that refuses, and vanishes in the middle of saying so, keeps nobody from the answer of another one: a watch has no
// deadline by which it would end.
func TestARefusalThatDoesNotEndIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New([]string{"https://a", "https://b"})
		if err != nil {
			t.Fatal(err)
		}
		refusal := slowBody{make(chan struct{}), &sync.Once{}}
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "a" {
				return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: refusal}, nil
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		answered := make(chan error, 1)
		go func() {
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://a/api/v1/pods?watch=true", nil)
			response, err := c.Wrap(base).RoundTrip(request)
			if err == nil && response.StatusCode != http.StatusOK {
				err = errors.New(http.StatusText(response.StatusCode))
			}
			answered <- err
		}()
		synctest.Wait()
		select {
		case err := <-answered:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the answer of the other core is kept back until the refusal has been read")
			_ = refusal.Close()
			return
		}
		<-refusal.closed // or the bubble ends in a deadlock
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
