// Package logstream owns the event streams of logs: of a pod, of a selection of pods, of all that
// belong to a job or to whoever owns pods; and the answers to questions about them.
//
// What it promises: a client is told each line of each container once, in the order of its file, or
// that lines are missing. It is told when each run began and ended. That includes pods and runs
// that come later. A client goes on where it was, at any replica. It is told of the pods whose logs
// its caller may get at that time, and of no others.
//
// A question (answer.go) reads logs from their beginning while its caller waits, within bounds.
//
// What it refuses: more than maxContainers on one stream, or maxScanned in one question. Which connections there are to API
// servers, and what is kept of the lines, is the concern of internal/logs.
package logstream

import (
	"context"
	"net/url"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/ratelimit"
	"github.com/kubecast/kubecast/internal/logs"
)

// Options configure a Handler; all are required.
type Options struct {
	Access *access.Access
	Feeds  *logs.Feeds
	// Take counts a connection on which a question reads; it fails if a user has too many, or all have. What it returns ends that.
	Take         func(user string) (leave func(), err error)
	Turns        *ratelimit.Turns // bounds the questions of a user that are answered at a time
	WriteTimeout time.Duration    // a client that takes no byte for so long is cut
}

// Handler opens streams of logs.
type Handler struct{ opts Options }

// New returns a Handler.
func New(opts Options) *Handler { return &Handler{opts} }

// Prefix is what stands before the Kubernetes path of the pods, or of their owner.
const Prefix = "/logs"

// Stream is an eventstream.Parser: it reads what is asked of a stream of logs.
func (h *Handler) Stream(name, path string, query url.Values) (eventstream.Opener, error) {
	return h.parse(name, path, query, false)
}

// Text is Stream for a client that takes lines of text: the data of each event that is called line is such a line.
func (h *Handler) Text(name, path string, query url.Values) (eventstream.Opener, error) {
	return h.parse(name, path, query, true)
}

func (h *Handler) parse(name, path string, query url.Values, plain bool) (eventstream.Opener, error) {
	q, err := parse(path, query)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, id auth.Identity) (eventstream.Source, error) {
		return h.open(ctx, id, name, q, plain)
	}, nil
}
