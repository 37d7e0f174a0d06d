package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// frame is one frame of an event stream: an event, a comment, or a retry.
type frame struct {
	event, id, data string
	retry           string
	comment         string // with its colon; ":" for an empty one
}

// errTorn means that a stream ended inside a frame.
var errTorn = errors.New("the stream ended inside a frame")

// frames reads an event stream strictly by docs/wire.md, rule 2, where an SSE parser would be lenient: UTF-8, only
// LF, each field once, JSON on one line, and an end only between two frames.
type frames struct {
	response *http.Response
	reader   *bufio.Reader
	raw      bytes.Buffer // all that was read
}

// errStatus is an answer that is not a stream.
type errStatus struct{ answer }

func (e errStatus) Error() string { return fmt.Sprintf("answered %d %s", e.code, e.body) }

// openFrames begins a stream. An answer other than 200 is an errStatus.
func openFrames(ctx context.Context, url string, header http.Header) (*frames, error) {
	return openFramesBy(ctx, http.DefaultClient, url, header)
}

func openFramesBy(ctx context.Context, client *http.Client, url string, header http.Header) (*frames, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	request.Header.Set("Accept", "text/event-stream")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(response.Body)
		return nil, errors.Join(errStatus{answer{response.StatusCode, response.Header, string(body)}}, err, response.Body.Close())
	}
	return &frames{response: response, reader: bufio.NewReaderSize(response.Body, 64<<10)}, nil
}

func (f *frames) close() { _ = f.response.Body.Close() }

// next reads one frame. Its error is io.EOF at a clean end; otherwise errTorn, or the connection's.
func (f *frames) next() (frame, error) {
	var read frame
	for lines := 0; ; lines++ {
		line, err := f.reader.ReadString('\n')
		f.raw.WriteString(line)
		switch {
		case err == io.EOF && lines == 0 && line == "":
			return frame{}, io.EOF
		case err == io.EOF:
			return frame{}, fmt.Errorf("%w: after %d lines, at %q", errTorn, lines, line)
		case err != nil:
			return frame{}, err
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" && lines > 0 {
			return read, nil
		}
		if err := read.add(line); err != nil {
			return frame{}, err
		}
	}
}

func (f *frame) add(line string) error {
	if !utf8.ValidString(line) || strings.ContainsAny(line, "\r\x00") {
		return fmt.Errorf("line %q has what must not be in one", line)
	}
	if strings.HasPrefix(line, ":") {
		f.comment = strings.TrimSpace(line)
		return nil
	}
	name, value, found := strings.Cut(line, ": ")
	field := map[string]*string{"event": &f.event, "id": &f.id, "data": &f.data, "retry": &f.retry}[name]
	switch {
	case !found || field == nil:
		return fmt.Errorf("line %q is no field of a frame", line)
	case *field != "":
		return fmt.Errorf("line %q repeats a field of its frame", line)
	}
	*field = value
	return nil
}
