package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
)

// Jobs is the kind that is always recorded.
const Jobs = "jobs.batch"

// KindRules is a kind with its expressions. What has no expression is read by the kind's built-in
// rule, if there is one.
type KindRules struct {
	Resource string // resource.group, as in trainjobs.trainer.kubeflow.org
	State    string
	Reason   string
	Message  string
	Queue    string
}

// Options say which kinds there are beside Jobs. Errors of New name keys below Key.
type Options struct {
	Key   string // history
	Owner string // an expression for the owner of objects of all kinds; empty: annotation or label kubecast.io/owner, then the kind's own
	Kinds []KindRules
}

// Set has the rules of all kinds. It may be used concurrently, and so may its rules.
type Set struct {
	rules map[string]*Rule
	owner *expression // nil: not configured
}

// New compiles and checks all expressions. Its error names each key that is wrong.
func New(opts Options) (*Set, error) {
	environment, err := newEnvironment()
	if err != nil {
		return nil, err
	}
	var errs []error
	compile := func(key, text string) *expression {
		e, err := environment.compile(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
		return e
	}
	owner := compile(opts.Key+".owner", opts.Owner)
	s := &Set{owner: owner, rules: map[string]*Rule{Jobs: {builtin: builtins[Jobs], owner: owner}}}
	for i, kind := range opts.Kinds {
		key := fmt.Sprintf("%s.kinds[%d]", opts.Key, i)
		ready, known := builtins[kind.Resource]
		switch {
		case kind.Resource == "":
			errs = append(errs, fmt.Errorf("%s.resource: is missing", key))
			continue
		case kind.Resource == Jobs:
			errs = append(errs, fmt.Errorf("%s.resource: %s is always recorded, by its own rule", key, Jobs))
			continue
		case s.rules[kind.Resource] != nil:
			errs = append(errs, fmt.Errorf("%s.resource: %s stands there twice", key, kind.Resource))
			continue
		case !known && kind.State == "":
			errs = append(errs, fmt.Errorf("%s.state: is missing; built in are the rules of %v", key, Ready()))
			continue
		}
		r := &Rule{
			builtin: ready, owner: owner,
			state: compile(key+".state", kind.State), reason: compile(key+".reason", kind.Reason),
			message: compile(key+".message", kind.Message), queue: compile(key+".queue", kind.Queue),
		}
		if r.state != nil {
			if err := r.state.checkStates(); err != nil {
				errs = append(errs, fmt.Errorf("%s.state: %w", key, err))
			}
		}
		s.rules[kind.Resource] = r
	}
	return s, errors.Join(errs...)
}

// Kinds are the kinds that have rules, in order.
func (s *Set) Kinds() []string { return slices.Sorted(maps.Keys(s.rules)) }

// For is the rule of a kind; nil if it has none.
func (s *Set) For(kind string) *Rule { return s.rules[kind] }

// Rule reads the objects of one kind.
type Rule struct {
	builtin builtin // without a state if the kind has none
	owner   *expression
	state   *expression
	reason  *expression
	message *expression
	queue   *expression
}

// ErrState means that an expression's result is no state.
var ErrState = errors.New("no state")

// Read is what an object says of a job as it was; nil for a job that was never seen. An error says what could not be
// evaluated. The rest of the result holds. If the state could not be evaluated, it is "".
//
// If the object is still in the state it was in, nothing else of the result would be used but what is counted. So then
// only these are evaluated.
func (r *Rule) Read(o *cluster.Object, was *jobs.Job) (said jobs.Said, err error) {
	var errs []error
	var object map[string]any
	before := jobs.State("")
	if was != nil {
		before = was.State
	}
	state := before
	evaluate := func(name string, e *expression) string {
		if object == nil {
			object = parse(o)
		}
		text, err := e.evaluate(input{object, string(state)})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		return text
	}
	if r.builtin.state != nil {
		said = r.builtin.read(o, was)
	}
	if r.state != nil {
		state := jobs.State(evaluate("state", r.state))
		if state != "" && (!state.Valid() || state == jobs.Deleted) {
			errs = append(errs, fmt.Errorf("state: %w: %q", ErrState, string(state)))
			state = ""
		}
		if state != said.State {
			said = jobs.Said{State: state, Progress: said.Progress, Counts: said.Counts}
		}
	}
	if before != "" && (said.State == "" || said.State == before) {
		return said, errors.Join(errs...)
	}
	state = said.State
	if r.reason != nil {
		said.Reason = evaluate("reason", r.reason)
	}
	if r.message != nil {
		said.Message = evaluate("message", r.message)
	}
	switch {
	case r.queue != nil:
		said.Queue = evaluate("queue", r.queue)
	case r.builtin.queue != "":
		said.Queue = o.Path(r.builtin.queue).Str
	}
	if said.Queue == "" {
		said.Queue = label(o, queueLabel, "volcano.sh/queue-name")
	}
	if r.owner != nil {
		said.Owner = evaluate("owner", r.owner)
	} else {
		said.Owner = ownerOf(o, r.builtin.owner)
	}
	said.Requests = requestsOf(o)
	return said, errors.Join(errs...)
}
