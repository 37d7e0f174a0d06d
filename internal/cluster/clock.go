package cluster

import (
	"net/http"
	"sync"
	"time"
)

// The API server dates what is created. Gateways' clocks, and those of controllers and kubelets,
// may say something else. Whatever is to be compared with such dates, or with what another gateway
// has seen, is told in the API server's time.

// clock knows by how much the API server's clock is ahead of this one. Each answer bounds that: the
// API server's Date is a whole second that had begun, and had not ended, at some time between the
// request and the answer. The bounds of many answers together are narrow.
type clock struct {
	mu        sync.Mutex
	low, high time.Duration // the API server is ahead by no less and no more; negative: behind
	began     time.Time     // when these bounds were begun; zero: nothing is known
}

// keepBounds is how long bounds are kept: clocks drift, and are set.
const keepBounds = 10 * time.Minute

// learn takes what an answer says.
func (c *clock) learn(sent, answered time.Time, header http.Header) {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return // there may be none
	}
	low, high := date.Sub(answered.Round(0)), date.Add(time.Second).Sub(sent.Round(0)) // of the clocks on the wall
	c.mu.Lock()
	defer c.mu.Unlock()
	c.low, c.high = max(c.low, low), min(c.high, high)
	if c.began.IsZero() || answered.Sub(c.began) > keepBounds || c.low > c.high { // one of the clocks was set, or another API server has answered
		c.low, c.high, c.began = low, high, answered
	}
}

// ahead is by how much the API server's clock is ahead at least; 0 if the clocks may agree.
func (c *clock) ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.low > 0:
		return c.low
	case c.high < 0:
		return c.high
	}
	return 0
}

// Time is what the API server's clock says at a time of this gateway's, as far as its answers tell.
func (c *Cluster) Time(at time.Time) time.Time { return at.Add(c.breaker.clock.ahead()) }

// Now is what the API server's clock says now.
func (c *Cluster) Now() time.Time { return c.Time(time.Now()) }
