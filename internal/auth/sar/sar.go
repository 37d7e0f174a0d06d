// Package sar decides by asking the API server of the cluster in question: one SubjectAccessReview for each question
// whose answer is not remembered. Users take turns, and the questions of one request are bounded, so that a user who
// asks for much delays no others. The age of an answer counts from when it was asked for. An error is never an
// answer.
//
// Kubernetes does not notify of changed answers, so neither does this package: a caller that has to know asks again.
package sar

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
)

// Reviewer asks one cluster. client-go's AuthorizationV1().SubjectAccessReviews() implements it.
type Reviewer interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, opts metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// Options configure an Authorizer.
type Options struct {
	CacheAllow time.Duration // how long an allow is remembered, from when it was asked for; 0: not at all
	CacheDeny  time.Duration // the same for a deny
	Timeout    time.Duration // for one question to the API server; 0: 5 s
	CacheSize  int           // how many decisions are remembered; the least recently used is dropped first; 0: 16384
}

// Authorizer is the auth.Authorizer that asks the API server by SubjectAccessReview. Decisions are remembered for a
// short time. Callers that have the same question at the same time share one review.
type Authorizer struct {
	namespaces auth.Namespaces
	opts       Options
	decisions  *cache.LRUExpireCache
	turns      [lines]*budget.Queue // users take turns to ask

	mu        sync.Mutex
	reviewers map[string]*reviewedCluster
	added     uint64                    // number of clusters added so far
	questions map[underWayKey]*question // under way
}

const (
	// reviewsAtOnce bounds the concurrent reviews of one line. When all clients come at once, as after a restart,
	// questions wait here, where their time-outs have not begun. In each line users take turns, so that a user who
	// asks for much waits behind those who ask for little.
	reviewsAtOnce  = 32
	reviewsPerUser = 8
	waitingPerUser = 4096
)

// line is where a question waits.
type line int

const (
	oneLine     line = iota // questions about one namespace, one object, or the cluster
	scopeLine               // questions about the namespaces of a Scope, which other questions do not wait for
	runningLine             // questions about what is already running (auth.WhileRunning)
	lines
)

// questionKey identifies an identity and a request. It is a hash, so that a caller with a thousand groups takes no
// more room than any other. The hash must have no known collisions, since two questions with the same key share an
// answer.
type questionKey [sha256.Size]byte

// underWayKey is a questionKey in one line: the same question may be under way once in each.
type underWayKey struct {
	questionKey
	line line
}

// question is a question that the API server is being asked.
type question struct {
	done chan struct{} // closed at the end; only then may the other fields be read
	// abandoned means that the caller that asked has gone, so there is no answer.
	abandoned bool
	decision  auth.Decision
	err       error
}

// New returns an Authorizer without clusters.
func New(namespaces auth.Namespaces, opts Options) *Authorizer {
	if opts.Timeout <= 0 {
		opts.Timeout = 5 * time.Second
	}
	if opts.CacheSize <= 0 {
		opts.CacheSize = 16384
	}
	s := &Authorizer{
		reviewers:  map[string]*reviewedCluster{},
		namespaces: namespaces,
		opts:       opts,
		decisions:  cache.NewLRUExpireCache(opts.CacheSize),
		questions:  map[underWayKey]*question{},
	}
	for i := range s.turns {
		s.turns[i] = budget.NewQueue(reviewsAtOnce, reviewsPerUser, waitingPerUser)
	}
	return s
}

// reviewedCluster is a cluster that can be asked.
type reviewedCluster struct {
	Reviewer
	// serial distinguishes clusters that had the same name: the answer of one must not be taken for the next one's.
	serial uint64
}

// Add adds a cluster by the gateway's name for it. The returned function removes it, unless another one of the same
// name has replaced it.
func (s *Authorizer) Add(cluster string, reviewer Reviewer) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.added++
	mine := &reviewedCluster{reviewer, s.added}
	s.reviewers[cluster] = mine
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.reviewers[cluster] == mine {
			delete(s.reviewers, cluster)
		}
	}
}

// Authorize implements auth.Authorizer. An error wraps auth.ErrUndecided, or is ctx's. Errors are not remembered.
func (s *Authorizer) Authorize(ctx context.Context, id auth.Identity, req auth.Request) (auth.Decision, error) {
	return s.authorize(ctx, oneLine, id, req)
}

func (s *Authorizer) authorize(ctx context.Context, in line, id auth.Identity, req auth.Request) (auth.Decision, error) {
	if auth.IsRunning(ctx) {
		in = runningLine
	}
	s.mu.Lock()
	reviewer, ok := s.reviewers[req.Cluster]
	s.mu.Unlock()
	if !ok {
		return auth.Decision{}, fmt.Errorf("%w: there is no cluster %q", auth.ErrUndecided, req.Cluster)
	}
	if id.Username == "" {
		return auth.Decision{}, fmt.Errorf("%w: the identity has no name", auth.ErrUndecided)
	}
	id.Groups = slices.Sorted(slices.Values(id.Groups))
	key := underWayKey{keyOf(reviewer.serial, id, req), in}
	for {
		decision, q, mine := s.join(key)
		switch {
		case q == nil:
			return decision, nil
		case mine:
			s.ask(ctx, reviewer, key, q, id, req)
			return q.decision, q.err
		}
		select {
		case <-ctx.Done():
			return auth.Decision{}, fmt.Errorf("wait for authorization: %w", ctx.Err())
		case <-q.done:
		}
		// The caller that asked has gone, which is no answer: ask again.
		if !q.abandoned {
			return q.decision, q.err
		}
	}
}

// join returns the remembered decision, else the question that is under way, else a new one that the caller has to
// ask.
func (s *Authorizer) join(key underWayKey) (_ auth.Decision, q *question, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, ok := s.decisions.Get(key.questionKey); ok {
		return d.(auth.Decision), nil, false
	}
	if q, ok := s.questions[key]; ok {
		return auth.Decision{}, q, false
	}
	q = &question{done: make(chan struct{}), abandoned: true}
	s.questions[key] = q
	return auth.Decision{}, q, true
}

// ask asks the question, remembers the decision, and wakes the callers that wait for it, even on a panic.
func (s *Authorizer) ask(ctx context.Context, reviewer Reviewer, key underWayKey, q *question, id auth.Identity, req auth.Request) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.questions, key)
		close(q.done)
	}()
	if !auth.MayAsk(ctx) {
		q.err = auth.ErrTooManyQuestions // other requests may still ask it
		return
	}
	release, err := s.turns[key.line].Take(ctx, id.QuotaOwner())
	if err != nil {
		q.err, q.abandoned = fmt.Errorf("wait for authorization: %w", err), ctx.Err() != nil
		return
	}
	defer release()
	asked := time.Now()
	q.decision, q.err = s.review(ctx, reviewer, id, req)
	q.abandoned = q.err != nil && ctx.Err() != nil
	if q.err != nil {
		return
	}
	ttl := s.opts.CacheDeny
	if q.decision.Allowed {
		ttl = s.opts.CacheAllow
	}
	// The time counts from the question, not from the answer: the knowledge is that old.
	if ttl -= time.Since(asked); ttl > 0 {
		s.decisions.Add(key.questionKey, q.decision, ttl)
	}
}

func (s *Authorizer) review(ctx context.Context, reviewer Reviewer, id auth.Identity, req auth.Request) (auth.Decision, error) {
	limited, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	spec := authorizationv1.SubjectAccessReviewSpec{User: id.Username, Groups: id.Groups}
	if req.Path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: req.Verb, Path: req.Path}
	} else {
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb:        req.Verb,
			Group:       req.Group,
			Version:     req.Version,
			Resource:    req.Resource,
			Subresource: req.Subresource,
			Namespace:   req.Namespace,
			Name:        req.Name,
		}
	}
	answer, err := reviewer.Create(limited, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	switch {
	case ctx.Err() != nil:
		return auth.Decision{}, fmt.Errorf("ask cluster %s for authorization: %w", req.Cluster, ctx.Err())
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return auth.Decision{}, fmt.Errorf("%w: cluster %s does not let the gateway create subjectaccessreviews (bind it to the ClusterRole system:auth-delegator): %w", auth.ErrUndecided, req.Cluster, err)
	case err != nil:
		return auth.Decision{}, fmt.Errorf("%w: cluster %s: %w", auth.ErrUndecided, req.Cluster, err)
	case answer == nil:
		return auth.Decision{}, fmt.Errorf("%w: cluster %s: empty answer", auth.ErrUndecided, req.Cluster)
	}
	status := answer.Status
	decision := auth.Decision{Allowed: status.Allowed && !status.Denied, Reason: status.Reason}
	// An evaluation error beside a deny mostly means a binding whose role is gone. It is a deny like any other.
	if status.EvaluationError != "" {
		decision.Reason = fmt.Sprintf("%s (evaluation error: %s)", status.Reason, status.EvaluationError)
	}
	return decision, nil
}

// keyOf hashes all that the answer depends on. Each string follows its length, so that no two questions are encoded
// alike, whatever the names contain.
func keyOf(cluster uint64, id auth.Identity, req auth.Request) questionKey {
	buf := binary.AppendUvarint(make([]byte, 0, 512), cluster)
	add := func(s string) {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	for _, s := range []string{req.Verb, req.Group, req.Version, req.Resource, req.Subresource, req.Namespace, req.Name, req.Path, id.Username} {
		add(s)
	}
	for _, g := range id.Groups {
		add(g)
	}
	return sha256.Sum256(buf)
}
