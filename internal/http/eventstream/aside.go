package eventstream

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/kubecast/kubecast/internal/http/reply"
)

// Aside is a question that a source asks beside its stream, of somebody who may take long to
// answer. The other sources of the stream go on meanwhile. A source embeds it. The zero value asks
// nothing.
type Aside struct {
	asked *asked
	then  func(err error) ReadResult
}

type asked struct {
	cancel context.CancelFunc
	done   atomic.Bool
	err    error // counts once done
}

// Ask begins to ask, in place of what was asked before. It returns the ReadResult of the Read that
// calls it. Once there is an answer, Read is called again, and Answered calls then. What ask finds,
// it keeps where only then looks for it.
func (a *Aside) Ask(to Sink, ask func(ctx context.Context) error, then func(err error) ReadResult) ReadResult {
	a.Drop()
	question := &asked{}
	a.asked, a.then = question, then
	question.cancel = to.Spawn(func(ctx context.Context) {
		question.err = ask(ctx)
		question.done.Store(true)
		to.Wake()
	})
	return ReadResult{Behind: true}
}

// Answered reports whether something is asked: then it returns what Read is to return.
func (a *Aside) Answered() (p ReadResult, asking bool) {
	switch question := a.asked; {
	case question == nil:
		return p, false
	case !question.done.Load():
		return ReadResult{Behind: true}, true
	default:
		then := a.then
		a.asked, a.then = nil, nil
		return then(question.err), true
	}
}

// FailureOf is the ReadResult of a source that cannot be read, since what it asked failed. That its
// caller asks for much else just now ends a stream of this source alone; on a stream of several it
// concerns no other source.
func FailureOf(err error, prefix string) ReadResult {
	if prefix == "" && reply.To(err).Code == http.StatusTooManyRequests {
		return ReadResult{Outcome: Limit}
	}
	return ReadResult{Outcome: Unavailable}
}

// Drop gives up what is asked.
func (a *Aside) Drop() {
	if a.asked != nil {
		a.asked.cancel()
		a.asked, a.then = nil, nil
	}
}

// aside has a goroutine do something until the server ends.
func (h *Hub) aside(do func(ctx context.Context)) (cancel context.CancelFunc) {
	ctx, cancel := context.WithCancel(h.serving)
	h.spawn(func() {
		defer cancel()
		do(ctx)
	})
	return cancel
}
