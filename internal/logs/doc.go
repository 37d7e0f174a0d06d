// Package logs follows the logs of containers, each once for however many read it.
//
// What it promises: every reader is told the lines of a run in the order of the file, each once, or
// is told where lines are missing (a Line with a Reset). That holds when the connection to the API
// server breaks, also among lines of one time, when a reader goes on at another replica, and when
// the node's clock jumps, back by ten minutes at the least. A reader that is slow delays nobody: it
// has a place in a ring, and no queue.
//
// How a log is read on from where somebody is: all that can be asked for is the lines from a second
// on. So it is counted, for each second, how many lines were told of it, with the sum of their
// hashes. What the API server answers must begin with as many lines of these seconds, of the same
// sum; what comes behind them is new. If it does not, the file was rotated meanwhile, and lines may
// be missing. A LinePosition is that count, and means the same at every replica.
//
// A reader that was away for long, or asks for more lines than the ring holds, reads them on a
// connection of its own (catchUp), until it has come to the ring.
//
// A text that does not begin with a time is no line of the container. It is what a node says that
// cannot tell the log (NodeError). Readers are told it as the reason (Reader.Trouble), and such an
// answer never counts as complete.
//
// What it refuses: to hold more than the ring of each run, and of a line more than its first 64
// KiB; to have more connections than it may, in all, and more readers of one user. It knows neither
// who may read a log nor which runs a pod has: its callers do.
package logs

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// ContainerRun is one run of a container: from its start, or restart, to its end.
type ContainerRun struct {
	Cluster, Namespace, Pod, UID, Container string
	Restart                                 int
}

// Backend is where logs are read: an API server.
type Backend interface {
	// Read opens the log of a run. Each line begins with its time (RFC 3339) and a space. An error
	// wraps ErrGone if that log will never be had.
	Read(ctx context.Context, run ContainerRun, q ReadOptions) (io.ReadCloser, error)
	// Ended reports whether the run has ended; then Read returns all of its log. An error is as Read's.
	Ended(ctx context.Context, run ContainerRun) (bool, error)
}

// ReadOptions is how much is read of a log.
type ReadOptions struct {
	Since  time.Time // only lines of this second and later ones; the zero time: all
	Tail   int       // only so many lines, the last ones; negative: all
	Follow bool      // and what is written from then on, until the run ends
}

// Waiter is a reader that waits, with any number of logs at once.
type Waiter interface {
	// Wake says that there may be something to read. It must not wait, and must not call the Reader.
	Wake()
}

// Errors of Open and Next.
var (
	// ErrGone means that the log cannot be had any more: the pod is gone, or the run's log is.
	ErrGone = errors.New("the log is gone")
	// ErrSlow means that lines were evicted before the reader came to them.
	ErrSlow = errors.New("the reader is too slow for the log")
	// ErrUnreadable means that the run has ended, and its log could not be read for long, or not to its end.
	ErrUnreadable = errors.New("the log cannot be read")
	// ErrLimit means that too many logs are read already.
	ErrLimit = errors.New("too many logs are read")
	// ErrClosed means that no logs are followed any more.
	ErrClosed = errors.New("no logs are followed")
)

// NodeError is what a kubelet or a runtime says where it cannot tell a log, or no more of it. The
// status of such an answer is that of one that is well.
type NodeError struct{ Words string }

func (e *NodeError) Error() string { return "the node says: " + e.Words }

// Line is a line of a log, or says that lines are missing. Its fields never change.
type Line struct {
	Time  time.Time
	Text  string // valid UTF-8, without the end of the line
	Cut   bool   // the line was longer
	Reset string // not empty: lines may be missing here, and why; there is no text, but for what a node says with ResetUnreadable
	After LinePosition

	once sync.Once
	made string
}

// Made is the line in the form in which all readers are told it, which is made once. It must be the
// same whoever makes it.
func (l *Line) Made(in func(*Line) string) string {
	l.once.Do(func() { l.made = in(l) })
	return l.made
}

// Why lines may be missing.
const (
	ResetRotated    = "expired"     // the file was replaced while nothing could be read
	ResetUnreadable = "unavailable" // it could not be read, though the run is over
	ResetClock      = "clock"       // it cannot be told what was read: the clock jumped back so far, or too much is of the first second
)

// size is about how much memory a line takes with what is made of it, in bytes.
func (l *Line) size() int { return 2*len(l.Text) + 256 }
