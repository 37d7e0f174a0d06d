package cores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
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
