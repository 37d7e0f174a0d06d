// Package audit keeps the log of who read what: one line of JSON for each list, get, stream (its begin and its end),
// sign-in and refusal.
//
// Nobody waits for it. Record puts an event into a bounded queue, and Run writes the queue: to a file, which may be moved
// away or truncated at any time (it is opened anew, and always appended to), or to standard output. What cannot be kept,
// since the queue or the disk is full, is lost, counted and told; the next line that can be written stands on a line of its
// own. Strangers cannot take the queue from those who are known: events without a user find only half of it.
package audit

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	queued = 16384 // events: what all streams of a replica that ends tell at once, and some
	// batchBytes is how much is written at once while there is more.
	batchBytes = 64 << 10
	// looks is how often a quiet log looks whether its file was moved away.
	looks = time.Second
	// atTheEnd is how long the end waits for what is queued: nobody may read the pipe.
	atTheEnd = 2 * time.Second
	tellLost = time.Minute // is told at most so often
)

// Log is an audit log.
type Log struct {
	path    string // "": standard output
	queue   chan *Event
	written prometheus.Counter
	lost    prometheus.Counter
	log     *slog.Logger

	// Of the one that writes.
	out      io.Writer
	file     *os.File // nil: standard output, or the file cannot be opened
	torn     bool     // the last line is not whole
	toldLost time.Time
}

// Open opens a log that is written to a file, which is made if it is not there; "" is standard output.
func Open(path string, registerer prometheus.Registerer, log *slog.Logger) (*Log, error) {
	lines := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubecast_audit_lines_total", Help: "Lines of the audit log, by result: written, lost (the disk or the queue was full).",
	}, []string{"result"})
	registerer.MustRegister(lines)
	l := &Log{
		path: path, queue: make(chan *Event, queued), log: log,
		written: lines.WithLabelValues("written"), lost: lines.WithLabelValues("lost"),
	}
	if path == "" {
		l.out = os.Stdout
		return l, nil
	}
	return l, l.reopen()
}

// Record keeps an event, which must not be changed afterwards. It never waits.
func (l *Log) Record(e *Event) {
	if e.User == nil && len(l.queue) >= queued/2 {
		l.lost.Inc()
		return
	}
	select {
	case l.queue <- e:
	default:
		l.lost.Inc()
	}
}

// Run writes until the context ends, and then what is left, if that can be done soon.
func (l *Log) Run(ctx context.Context) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write(ctx)
	}()
	<-ctx.Done()
	patience := time.NewTimer(atTheEnd)
	defer patience.Stop()
	select {
	case <-written:
	case <-patience.C:
		l.log.Error("the audit log cannot be written to its end", "lost", len(l.queue))
	}
}

func (l *Log) write(ctx context.Context) {
	look := time.NewTicker(looks)
	defer look.Stop()
	var batch []byte
	for {
		select {
		case <-ctx.Done():
			for len(l.queue) > 0 {
				batch = l.flush(batch[:0], <-l.queue)
			}
			l.close()
			return
		case <-look.C:
			l.follow()
		case e := <-l.queue:
			batch = l.flush(batch[:0], e)
		}
	}
}

// flush writes an event and those that wait behind it.
func (l *Log) flush(batch []byte, e *Event) []byte {
	if l.torn {
		batch = append(batch, '\n')
	}
	lines := 0
	for {
		if line, err := e.line(); err != nil {
			l.lose(1, err)
		} else {
			batch = append(batch, line...)
			lines++
		}
		if len(batch) >= batchBytes || len(l.queue) == 0 {
			break
		}
		e = <-l.queue // only this goroutine takes
	}
	l.follow()
	if l.out == nil {
		l.lose(lines, fs.ErrNotExist)
		return batch
	}
	n, err := l.out.Write(batch)
	if n > 0 {
		l.torn = batch[n-1] != '\n'
	}
	if err != nil {
		whole := 0
		for _, b := range batch[:n] {
			if b == '\n' {
				whole++
			}
		}
		if len(batch) > 0 && batch[0] == '\n' && whole > 0 {
			whole--
		}
		l.written.Add(float64(whole))
		l.lose(lines-whole, err)
		return batch
	}
	l.written.Add(float64(lines))
	return batch
}

func (l *Log) lose(lines int, err error) {
	l.lost.Add(float64(lines))
	if lines > 0 && time.Since(l.toldLost) >= tellLost {
		l.toldLost = time.Now()
		l.log.Error("the audit log cannot be written: lines are lost", "file", l.path, "error", err)
	}
}

// follow opens the file anew if another one, or none, is at its path by now.
func (l *Log) follow() {
	if l.path == "" {
		return
	}
	if l.file != nil {
		now, err := os.Stat(l.path)
		own, ownErr := l.file.Stat()
		if err == nil && ownErr == nil && os.SameFile(now, own) {
			return
		}
	}
	if err := l.reopen(); err != nil {
		l.lose(0, err)
	}
}

func (l *Log) reopen() error {
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		if l.file != nil {
			return nil // the old one is still there to be written to
		}
		return fmt.Errorf("audit.file: %w", err)
	}
	l.close()
	l.file, l.out, l.torn = file, file, false
	return nil
}

func (l *Log) close() {
	if l.file != nil {
		_ = l.file.Close() // what was written is written
		l.file, l.out = nil, nil
	}
}
