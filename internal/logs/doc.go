// Package logs follows the logs of containers, each once for however many read it.
//
// What it promises: every reader is told the lines of a run in the order of the file, each once, or is told where lines are
// missing (a Line with a Reset). That holds when the connection to the API server breaks, also among lines of one time, and
// when the node's clock jumps, back by ten minutes at the least. A reader that is slow delays nobody: it has a place in a ring, and no queue.
//
// How a connection that broke is resumed: all that can be asked for is the lines from a second on. So it is counted, for each
// second, how many lines were told of it, with the sum of their hashes. What the API server answers must
// begin with as many lines of these seconds, of the same sum; what comes behind them is new. If it does not, the file was rotated meanwhile, and lines may
// be missing. A Position is that count, and means the same at every replica.
//
// What it refuses: to hold more than the ring of each run, and of a line more than its first 64 KiB; to follow more runs than it may, in
// all and for one user. It knows neither who may read a log nor which runs a pod has: its callers do.
package logs

import (
	"context"
	"errors"
	"io"
	"time"
)

// Run is one run of a container: from its start, or restart, to its end.
type Run struct {
	Cluster, Namespace, Pod, UID, Container string
	Restart                                 int
}

// Source is where logs are read: an API server.
type Source interface {
	// Read opens the log of a run: its last tail lines (negative: all), of these only such from a second on (the zero time: all). Each line
	// begins with its time (RFC 3339) and a space. It goes on while the run does. An error wraps ErrGone if that log will never be had.
	Read(ctx context.Context, run Run, since time.Time, tail int) (io.ReadCloser, error)
	// Ended reports whether the run has ended; then Read returns all of its log. An error is as Read's.
	Ended(ctx context.Context, run Run) (bool, error)
}

// Waiter is a reader that waits, with any number of cursors at once.
type Waiter interface {
	// Wake says that an armed cursor may have something to read. It must not wait, and must not call the cursor.
	Wake()
}

// Errors of Open and Next.
var (
	// ErrGone means that the log cannot be had any more: the pod is gone, or the run's log is.
	ErrGone = errors.New("the log is gone")
	// ErrSlow means that lines were evicted before the reader came to them.
	ErrSlow = errors.New("the reader is too slow for the log")
	// ErrExpired means that the ring does not hold what follows a position.
	ErrExpired = errors.New("the ring does not reach back to the position")
	// ErrLimit means that too many logs are followed already.
	ErrLimit = errors.New("too many logs are followed")
	// ErrClosed means that no logs are followed any more, or not yet.
	ErrClosed = errors.New("no logs are followed")
)

// Line is a line of a log, or says that lines are missing. It never changes.
type Line struct {
	Time  time.Time
	Text  string // valid UTF-8, without the end of the line
	Cut   bool   // the line was longer
	Reset string // not empty: lines may be missing here, and why: ResetRotated or ResetClock; there is no text
	After Position
}

// Why lines may be missing.
const (
	ResetRotated = "expired" // the file was replaced while nothing could be read
	ResetClock   = "clock"   // it cannot be told what was read: the clock jumped back so far, or too much is of the first second
)

// size is about how much memory a line takes, in bytes.
func (l *Line) size() int { return len(l.Text) + 128 }
