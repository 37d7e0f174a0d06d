package logstream

import (
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/logs"
)

// container is a container that is followed, run after run.
type container struct {
	key                       string
	namespace, pod, uid, name string
	status                    status
	gone                      time.Time    // since when its pod is; zero: it is not
	reader                    *logs.Reader // of the run; nil: it is not read, or was read to its end
	run                       int          // its number; -1: none was read
	begins                    time.Time    // since when its reader waits for more of what is there
	settled                   bool         // what was there has been told
	late                      bool         // or has not come within a while, and nobody says why: synced does not wait for it
	troubled                  bool         // the client was told that the log cannot be read
	fails                     time.Time    // since when the node says that it cannot tell the log; zero: it does not
	unreadable                bool         // its run ended, and could not be read to its end: nobody is told that it was
	finished                  time.Time    // since when its reader has come to the end; zero: it has not
	ended                     bool         // the client was told so
	told                      *logs.LinePosition
	batch, ready              []*logs.Line // read, and not told yet
	text                      string       // its position, in event ids; "": to be made
}

// batchLines is how many lines of a container are read at once, which a client that does not read keeps in memory.
const batchLines = 16

func newContainer(o *cluster.Object, s status) *container {
	return &container{ // of copies, since a feed may outlive the pod's text
		key: keyOf(o.UID(), s.container), namespace: strings.Clone(o.GetNamespace()), pod: strings.Clone(o.GetName()), uid: strings.Clone(o.UID()),
		name: strings.Clone(s.container), status: s, run: -1,
	}
}

// of is a run as it is read.
func (c *container) of(cluster string) logs.ContainerRun {
	return logs.ContainerRun{Cluster: cluster, Namespace: c.namespace, Pod: c.pod, UID: c.uid, Container: c.name, Restart: c.run}
}

// fill reads lines, if none are left. The error is of the Reader.
func (c *container) fill(w logs.Waiter) error {
	if len(c.ready) > 0 || c.reader == nil {
		return nil
	}
	if c.batch == nil {
		c.batch = make([]*logs.Line, 0, batchLines)
	}
	clear(c.batch[:cap(c.batch)])
	var err error
	c.ready, err = c.reader.Next(c.batch, w)
	if len(c.ready) > 0 && !c.settled {
		c.begins = time.Now()
	}
	if err == nil && len(c.ready) < cap(c.batch) && c.reader.Settled() && len(c.ready) == 0 {
		c.settled = true
	}
	return err
}

// lost says that the pod is gone.
func (c *container) lost() {
	if c.gone.IsZero() {
		c.gone = time.Now()
	}
}

// isLeft reports whether nothing more is to be told.
func (c *container) isLeft() bool {
	return !c.gone.IsZero() && c.reader == nil && c.finished.IsZero()
}

// close gives up the reader.
func (c *container) close() {
	if c.reader != nil {
		c.reader.Close()
		c.reader = nil
	}
}

// position is how much the client has been told; ok is false if that is nothing.
func (c *container) position() (p containerPosition, ok bool) {
	return containerPosition{restart: c.run, ended: c.ended, told: c.told}, c.run >= 0
}

// changed says that the position is another one.
func (c *container) changed() { c.text = "" }

// idText is the position in an event id.
func (c *container) idText() string {
	if p, ok := c.position(); ok && c.text == "" {
		c.text = p.text(c.key)
	}
	return c.text
}

// over reports whether an error is the end of a reader's run, or of its log.
func over(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, logs.ErrGone) || errors.Is(err, logs.ErrUnreadable)
}

// event is the data of started and ended.
type event struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Restart   int    `json:"restart"`
	Reason    string `json:"reason,omitempty"`
	ExitCode  *int64 `json:"exitCode,omitempty"`
}

// missing is the data of reset.
type missing struct {
	Reason    string `json:"reason"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Message   string `json:"message,omitempty"` // of the node
}

// line is the data of line.
type line struct {
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	Container string    `json:"container"`
	Time      time.Time `json:"time"`
	Text      string    `json:"text"`
	Cut       bool      `json:"cut,omitempty"`
}

// startedData is the data of started.
func (c *container) startedData() string {
	return reply.MustJSON(event{Namespace: c.namespace, Pod: c.pod, Container: c.name, Restart: c.run})
}

// endedData is the data of ended; ok is false if the pod has not said yet how the run ended.
func (c *container) endedData() (data string, ok bool) {
	e := event{Namespace: c.namespace, Pod: c.pod, Container: c.name, Restart: c.run}
	if r, found := c.status.find(c.run); found && r.ended {
		e.Reason, e.ExitCode, ok = r.reason, &r.exitCode, true
	} else if !c.gone.IsZero() {
		e.Reason, ok = "Deleted", true
	}
	return reply.MustJSON(e), ok
}

// lineData is the data of a line, the same for all who are told it.
func (c *container) lineData(l *logs.Line) string {
	return l.Made(func(l *logs.Line) string {
		return reply.MustJSON(line{c.namespace, c.pod, c.name, l.Time, l.Text, l.Cut})
	})
}

func (c *container) missingData(reason, message string) string {
	return reply.MustJSON(missing{reason, c.namespace, c.pod, c.name, message})
}

// byName orders containers as they are asked for.
func byName(a, b *container) int {
	for _, order := range []int{strings.Compare(a.namespace, b.namespace), strings.Compare(a.pod, b.pod), strings.Compare(a.key, b.key)} {
		if order != 0 {
			return order
		}
	}
	return 0
}

// sorted are containers in their order.
func sorted(all map[string]*container) []*container {
	list := make([]*container, 0, len(all))
	for _, c := range all {
		list = append(list, c)
	}
	slices.SortFunc(list, byName)
	return list
}
