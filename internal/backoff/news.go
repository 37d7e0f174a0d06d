package backoff

import (
	"regexp"
	"time"
)

// News is what a loop has logged of the trouble that it has. The zero value has logged nothing. It is for one goroutine.
//
// An error is logged when it is another one than the last. What lasts is logged again after a minute, and then after
// twice as long each time, up to an hour. So are errors that take turns, once that many of them were logged.
type News struct {
	told  string // the last
	turns int    // how often another one than the last was logged
	again time.Time
	pause time.Duration
}

const (
	firstAgain = time.Minute
	mostAgain  = time.Hour
	mostTurns  = 8
)

// ownPort is the port of this end of a connection, in the texts of package net.
var ownPort = regexp.MustCompile(`:\d+->`)

// Is reports whether an error is to be logged. That another connection had it is no news: a database that is away would
// be told each second.
func (n *News) Is(err error) bool {
	text := ownPort.ReplaceAllString(err.Error(), "->")
	now := time.Now()
	switch {
	case text != n.told && n.turns < mostTurns:
		n.turns++
		n.pause = firstAgain
	case now.Before(n.again):
		return false
	default:
		n.pause = min(2*n.pause, mostAgain)
	}
	n.told, n.again = text, now.Add(n.pause)
	return true
}

// Over says that the trouble is over. It reports whether any was logged.
func (n *News) Over() (told bool) {
	told = n.told != ""
	*n = News{}
	return told
}
