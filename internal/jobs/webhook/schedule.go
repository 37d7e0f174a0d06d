package webhook

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
)

// schedule is how long after each failed attempt the next one comes, as Standard Webhooks recommends it. After the last
// of them a message is a dead letter.
var schedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

const (
	// mostHold bounds for how long a target may ask to be left alone.
	mostHold = 24 * time.Hour
	// uncounted is for how long the attempts of a message do not count to which the target answers
	// when it wants to be asked again. After that they do, or a target that always says so would
	// never be given up.
	uncounted = 4 * 24 * time.Hour
)

// jittered is a duration of 80 to 120 % of this one.
func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// next is when a message is tried again after so many failed attempts. If it is not, ok is false.
func next(attempts int, now time.Time) (due jobs.Time, ok bool) {
	if attempts > len(schedule) {
		return 0, false
	}
	return jobs.At(now.Add(jittered(schedule[attempts-1]))), true
}

// retryAfter reads the header of an answer with status 429 or 503: seconds, or a date. 0: there is none.
func retryAfter(answer *http.Response, now time.Time) time.Duration {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	text := answer.Header.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), mostHold)
}
