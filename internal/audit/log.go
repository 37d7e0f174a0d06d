// Package audit keeps the log of who read what: one line of JSON for each list, get, sign-in and refusal, and two for
// each stream, for its beginning and its end.
//
// No request waits for it. Record puts an event into a bounded queue, and Run writes the queue to a file or to
// standard output. The file may be moved away or truncated at any time: it is always appended to, and opened anew
// when it has been moved. Events for which the queue or the disk has no room are lost; they are counted, and the
// gateway's own log says so. After a line that was written in part, the next one begins on a new line. Strangers
// cannot take the queue from known users: events without a user may fill only half of it.
package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	queued = 16384 // events: room for the ends of all streams when a replica stops, and some more
	// batchBytes is how many bytes are collected before they are written, while more events are queued.
	batchBytes = 64 << 10
	// looks is how often a quiet log checks whether its file was moved away.
	looks = time.Second
	// atTheEnd is how long Run waits at its end for the queue to be written: if the output is a pipe, nothing may be
	// reading it.
	atTheEnd = 2 * time.Second
	tellLost = time.Minute // how often at most the gateway's log says that lines are lost
)

// Log is an audit log.
type Log struct {
	path    string // "": standard output
	queue   chan *Event
	written prometheus.Counter
	lost    prometheus.Counter
	log     *slog.Logger

	// The rest is used only by the goroutine that writes.
	out      io.Writer
	file     *os.File // nil: standard output, or the file cannot be opened
	torn     bool     // the last line was written only in part
	toldLost time.Time
}

// Open opens a log that is written to a file, which is created if it does not exist. The path "" means standard
// output.
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

// Check reports whether Open could open a file, and makes none.
func Check(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		directory := filepath.Dir(path)
		switch info, missing := os.Stat(directory); {
		case missing != nil:
			return fmt.Errorf("audit.file: %w", missing)
		case !info.IsDir():
			return fmt.Errorf("audit.file: %s is no directory", directory)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("audit.file: %w", err)
	}
	return file.Close()
}

// Record queues an event, which must not be changed afterwards. It never waits.
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

// Run writes until the context ends. It then writes the rest of the queue, for which it takes atTheEnd at most.
func (l *Log) Run(ctx context.Context) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write(ctx)
	}()
	<-ctx.Done()
	end := time.NewTimer(atTheEnd)
	defer end.Stop()
	select {
	case <-written:
	case <-end.C:
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

// flush writes an event and those that are queued behind it.
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
		e = <-l.queue // there is one: only this goroutine takes events
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

// follow opens the file anew if its path by now names another file, or none.
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
			return nil // the old file can still be written to
		}
		return fmt.Errorf("audit.file: %w", err)
	}
	l.close()
	l.file, l.out, l.torn = file, file, false
	return nil
}

func (l *Log) close() {
	if l.file != nil {
		_ = l.file.Close() // nothing is buffered here
		l.file, l.out = nil, nil
	}
}
