package logs

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/stream"
)

// A line is a container's own if it begins with a time, however that is written; all else is what a
// kubelet or a runtime says.
func TestOnlyWhatBeginsWithATimeIsALine(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	const second = "2026-01-02T03:04:05Z"
	for text, want := range map[string]struct {
		own  bool
		at   time.Time
		text string
	}{
		second + " hello":                               {true, at(second), "hello"},
		second + "  two spaces":                         {true, at(second), " two spaces"},
		second + " ":                                    {true, at(second), ""},
		second:                                          {true, at(second), ""},
		second + "\r":                                   {true, at(second), "\r"},
		second + " hello\r":                             {true, at(second), "hello\r"},
		second + "no space":                             {true, at(second), "no space"},
		"2026-01-02T03:04:05.1Z hello":                  {true, at("2026-01-02T03:04:05.1Z"), "hello"},
		"2026-01-02T03:04:05.123456789Z hello":          {true, at("2026-01-02T03:04:05.123456789Z"), "hello"},
		"2026-01-02T03:04:05.123456789+05:45 hello":     {true, at("2026-01-02T03:04:05.123456789+05:45"), "hello"},
		"2026-01-02T03:04:05.123456789012-11:00 x":      {true, at("2026-01-02T03:04:05.123456789-11:00"), "x"},
		"1970-01-01T00:00:00Z a clock that was not set": {true, at("1970-01-01T00:00:00Z"), "a clock that was not set"},
		"unable to retrieve container logs for containerd://0123":  {false, time.Time{}, "unable to retrieve container logs for containerd://0123"},
		"failed to watch file \"/var/log/pods/x/0.log\": no space": {false, time.Time{}, "failed to watch file \"/var/log/pods/x/0.log\": no space"},
		"2026-13-45T99:00:00Z no time":                             {false, time.Time{}, "2026-13-45T99:00:00Z no time"},
		"2026-01-02T03:04:05 no offset":                            {false, time.Time{}, "2026-01-02T03:04:05 no offset"},
		"2026-01-02 03:04:05Z no T":                                {false, time.Time{}, "2026-01-02 03:04:05Z no T"},
		" " + second + " indented":                                 {false, time.Time{}, " " + second + " indented"},
		"time=" + second + " level=error":                          {false, time.Time{}, "time=" + second + " level=error"},
		"":                                                         {},
	} {
		line, any, err := newLineReader(strings.NewReader(text + "\n")).next()
		if !any || err != nil || line.own != want.own || !line.at.Equal(want.at) || line.text != want.text {
			t.Errorf("%q: %+v", text, line)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add("2026-01-02T03:04:05.678Z hello\r\nunable to retrieve container logs\n2026-01-0")
	f.Add("2026-01-02T03:04:05,6+25:99 hello\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		in := newLineReader(strings.NewReader(text))
		for rest := text; ; {
			line, any, err := in.next()
			if !any {
				if rest != "" {
					t.Errorf("%q is left", rest)
				}
				return
			}
			whole, left, _ := strings.Cut(rest, "\n")
			rest = left
			if line.own && (!strings.HasPrefix(whole, line.at.Format("2006-01-02T15:04:05")) || len(whole) < len(line.text) && !line.cut && !strings.Contains(line.text, "\uFFFD")) {
				t.Errorf("%q is %+v", whole, line)
			}
			if !line.own && !line.at.IsZero() {
				t.Errorf("%q has a time: %v", whole, line.at)
			}
			if err != nil {
				return
			}
		}
	})
}

// script is a node that answers what it is told to answer.
type script struct {
	mu     sync.Mutex
	answer string
	ended  bool
}

func (s *script) says(answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *script) Ended(context.Context, ContainerRun) (bool, error) { return s.ended, nil }
func (s *script) Read(context.Context, ContainerRun, ReadOptions) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return io.NopCloser(strings.NewReader(s.answer)), nil
}

// told reads for a while: the lines, with resets in brackets, and how it ended.
func told(c *Reader, within time.Duration) (all []string, err error) {
	wakes := stream.NewWakeChannel()
	for deadline := time.After(within); ; {
		got, err := c.Next(make([]*Line, 0, 8), wakes)
		for _, line := range got {
			if line.Reset != "" {
				all = append(all, "["+line.Reset+" "+line.Text+"]")
			} else {
				all = append(all, line.Time.Format("05 ")+line.Text)
			}
		}
		if err != nil {
			return all, err
		}
		if len(got) > 0 {
			continue
		}
		select {
		case <-wakes.C:
		case <-deadline:
			return all, nil
		}
	}
}

// What a node says where it cannot tell a log, or no more of it, is no line, and its answer is not
// all of the log: that was told in front of it is, and so is what comes once it can be read again.
func TestWhatANodeSaysIsNoLine(t *testing.T) {
	const words = "unable to retrieve container logs for containerd://0123"
	const one, two = "2026-01-02T03:04:01Z one\n", "2026-01-02T03:04:02Z two\n"
	for name, test := range map[string]struct {
		answer        string
		first, second string // told while it says so, and once it answers one and two
	}{
		"nothing else":            {words, "", "01 one, 02 two"},
		"nothing else, a line":    {words + "\n", "", "01 one, 02 two"},
		"behind a line":           {one + words, "01 one", "02 two"},
		"between lines":           {one + words + "\n" + two, "01 one, 02 two", ""},
		"cut within a time":       {one + "2026-01-02T03", "01 one", "02 two"},
		"behind one without text": {one + "2026-01-02T03:04:01Z\n" + words + "\r\n", "01 one, 01 ", "[expired ], 02 two"},
	} {
		for _, ended := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				node := &script{answer: test.answer, ended: ended}
				c := open(t, feedsFor(t, 1<<20), node, "web", "alice", 10)
				all, err := told(c, gaveUp/2)
				if got := strings.Join(all, ", "); got != test.first || err != nil || c.Settled() {
					t.Errorf("%s: told %q, %v, settled: %t", name, got, err, c.Settled())
				}
				var said *NodeError
				if trouble := c.Trouble(); trouble == nil || strings.Contains(test.answer, words) && (!errors.As(trouble, &said) || said.Words != words) {
					t.Errorf("%s: trouble %v", name, trouble)
				}
				if strings.Contains(name, "without text") {
					return
				}
				node.says(one + two)
				if all, err = told(c, gaveUp); strings.Join(all, ", ") != test.second || ended != errors.Is(err, io.EOF) || !c.Settled() || c.Trouble() != nil {
					t.Errorf("%s: afterwards %q, %v", name, all, err)
				}
			})
		}
	}
}

// A run that has ended, and whose log cannot be read for long, is not told as one that was.
func TestLogThatCannotBeReadDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &script{answer: "2026-01-02T03:04:01Z one\nfailed to read: no such file", ended: true}
		all, err := told(open(t, feedsFor(t, 1<<20), node, "web", "alice", 10), 2*gaveUp)
		if got := strings.Join(all, ", "); got != "01 one, [unavailable failed to read: no such file]" || !errors.Is(err, ErrUnreadable) {
			t.Errorf("%q, %v", got, err)
		}
	})
}
