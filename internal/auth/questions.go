package auth

import (
	"context"
	"fmt"
	"sync/atomic"
)

// ErrTooManyQuestions: one request has asked as much as it may. It is an ErrUndecided, too.
var ErrTooManyQuestions = fmt.Errorf("%w: the request needs more questions to the API server than one may ask", ErrUndecided)

type questionsKey struct{}

// WithQuestions bounds how many questions may be put to an API server on behalf of a context. What is remembered, and what
// another one is asking already, does not count.
func WithQuestions(ctx context.Context, most int) context.Context {
	left := new(atomic.Int64)
	left.Store(int64(most))
	return context.WithValue(ctx, questionsKey{}, left)
}

// MayAsk takes one question off a context's account, for an authorizer that is about to put it.
func MayAsk(ctx context.Context) bool {
	left, bounded := ctx.Value(questionsKey{}).(*atomic.Int64)
	return !bounded || left.Add(-1) >= 0
}

type runningKey struct{}

// WhileRunning marks the questions of a context as being about what is running already. They do not wait for others of the
// same user: or whoever is to lose a permission could put that off by asking for much.
func WhileRunning(ctx context.Context) context.Context {
	return context.WithValue(ctx, runningKey{}, true)
}

// IsRunning reports whether a context is WhileRunning's.
func IsRunning(ctx context.Context) bool { return ctx.Value(runningKey{}) != nil }
