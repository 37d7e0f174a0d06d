package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"
)

const (
	// attemptWithin is how long an attempt may take, from the connection to the answer.
	attemptWithin = 15 * time.Second
	// readMost is how many bytes of an answer are read, so that its connection can be used again.
	readMost = 64 << 10
	// keepMost is how many of them are kept for operators.
	keepMost = 1 << 10
)

// What became of an attempt, as labels of metrics.
const (
	delivered   = "delivered"
	refused     = "refused"     // another status
	held        = "held"        // 429 or 503 with Retry-After
	gone        = "gone"        // 410
	timedOut    = "timeout"     // no answer in time
	unreachable = "unreachable" // no answer
	unmade      = "unmade"      // the body cannot be made
)

// result is what became of an attempt.
type result struct {
	outcome string
	answer  string        // for operators
	after   time.Duration // for how long the target wants to be left alone
}

// newClient returns the client of one target, which shares nothing with those of others.
func newClient(concurrency int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: attemptWithin, KeepAlive: 15 * time.Second}).DialContext,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    concurrency,
			IdleConnTimeout:        30 * time.Second,
			TLSHandshakeTimeout:    attemptWithin,
			MaxResponseHeaderBytes: readMost,
			DisableCompression:     true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// attempt sends a body once.
func (t *target) attempt(ctx context.Context, id string, contentType string, body []byte) (got result) {
	ctx, cancel := context.WithTimeout(ctx, t.within)
	defer cancel()
	ctx, span := t.tracer.Start(ctx, "webhook", trace.SpanKindClient)
	span.Set("kubecast.webhook", t.Name)
	defer func() {
		span.Set("kubecast.outcome", got.outcome)
		if got.outcome != delivered {
			span.Fail(got.outcome)
		}
		span.End()
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return result{outcome: unreachable, answer: "the URL cannot be used"} // it was checked at the start
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", "kubecast")
	request.Header.Set("Webhook-Id", id)
	request.Header.Set("Webhook-Timestamp", timestamp)
	if signature := t.secrets.sign(id, timestamp, body); signature != "" {
		request.Header.Set("Webhook-Signature", signature)
	}
	t.tracer.Inject(ctx, request.Header)
	answer, err := t.client.Do(request)
	if err != nil {
		return failed(err)
	}
	defer answer.Body.Close()
	// The status is the answer. What follows it is only read if it comes, whatever it is and however it ends.
	text, _ := io.ReadAll(io.LimitReader(answer.Body, readMost))
	said := readable(answer.Status + ": " + string(text[:min(len(text), keepMost)]))
	switch after := retryAfter(answer, time.Now()); {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return result{outcome: delivered, answer: said}
	case answer.StatusCode == http.StatusGone:
		return result{outcome: gone, answer: said}
	case after > 0:
		return result{outcome: held, answer: said, after: after}
	}
	return result{outcome: refused, answer: said}
}

// failed is the result of an attempt that had no answer. The text does not have the URL.
func failed(err error) result {
	var about *url.Error
	if errors.As(err, &about) {
		err = about.Err
	}
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout() {
		return result{outcome: timedOut, answer: "no answer in time"}
	}
	return result{outcome: unreachable, answer: readable(err.Error())}
}

// readable is a text that databases accept, and that people read as it stands: one line, and no
// directions for a terminal.
func readable(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	return strings.TrimSpace(text)
}
