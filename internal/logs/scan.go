package logs

import (
	"context"
	"errors"
	"io"
	"time"
)

// Scanned is a line of a log that is read for one question.
type Scanned struct {
	Time time.Time
	Text string // valid UTF-8, without the end of the line
	Cut  bool   // the line was longer
}

// Scan reads what is there of a run's log, from its first line on, once. It has a connection of its own.
type Scan struct {
	body  io.ReadCloser
	lines *lineReader
	ended bool
}

// OpenScan begins to read. Of a run that has ended nothing follows. The Scan must
// be closed, and ends with the context. An error is the Backend's.
func OpenScan(ctx context.Context, source Backend, run ContainerRun, ended bool) (*Scan, error) {
	body, err := source.Read(ctx, run, ReadOptions{Tail: -1})
	if err != nil {
		return nil, err
	}
	return &Scan{body: body, lines: newLineReader(body), ended: ended}, nil
}

// Next returns the next line. At the end of the log the error is io.EOF; a NodeError where the node
// says that it cannot tell the rest.
func (s *Scan) Next() (Scanned, error) {
	for {
		line, some, err := s.lines.next()
		switch {
		case some && !line.own:
			if said := notOwn(line, err); said != nil {
				return Scanned{}, said
			}
		// A line without an end is one only if nothing can follow.
		case some && (err == nil || s.ended && errors.Is(err, io.EOF)):
			return Scanned{line.at, line.text, line.cut}, nil
		}
		if err != nil {
			return Scanned{}, err
		}
	}
}

// Close gives up the connection.
func (s *Scan) Close() { _ = s.body.Close() }
