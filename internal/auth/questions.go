package auth

import (
	"context"
	"fmt"
	"sync/atomic"
)

// ErrTooManyQuestions means that one request has asked as many questions as it may. It is an ErrUndecided, too.
var ErrTooManyQuestions = fmt.Errorf("%w: the request needs more questions to the API server than one may ask", ErrUndecided)

type questionsKey struct{}

// WithQuestions bounds how many questions an API server may be asked on behalf of a context. Answers that are
// remembered do not count, nor do questions that another request is already asking.
func WithQuestions(ctx context.Context, most int) context.Context {
	left := new(atomic.Int64)
	left.Store(int64(most))
	return context.WithValue(ctx, questionsKey{}, left)
}

// MayAsk counts one question of a context, and reports whether it may be asked. An authorizer calls it before it
// asks.
func MayAsk(ctx context.Context) bool {
	left, bounded := ctx.Value(questionsKey{}).(*atomic.Int64)
	return !bounded || left.Add(-1) >= 0
}

type runningKey struct{}

// WhileRunning marks the questions of a context as being about a running stream. They do not wait for other questions
// of the same user. Otherwise a user who is about to lose a permission could delay that by asking for much.
func WhileRunning(ctx context.Context) context.Context {
	return context.WithValue(ctx, runningKey{}, true)
}

// IsRunning reports whether a context was marked by WhileRunning.
func IsRunning(ctx context.Context) bool { return ctx.Value(runningKey{}) != nil }
