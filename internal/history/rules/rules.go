package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
)

// Jobs is the kind that always has a rule and needs no expression.
const Jobs = "jobs.batch"

// Kind is a kind with its expressions. Without any expression, its rule is the ready-made one. With some, the others are
// those of the ready-made rule, if there is one.
type Kind struct {
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
	Kinds []Kind
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
	s := &Set{owner: owner, rules: map[string]*Rule{Jobs: {jobs: true, owner: owner}}}
	for i, kind := range opts.Kinds {
		key := fmt.Sprintf("%s.kinds[%d]", opts.Key, i)
		ready, known := readyMade[kind.Resource]
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
			errs = append(errs, fmt.Errorf("%s.state: is missing; ready-made are the rules of %v", key, Ready()))
			continue
		}
		choose := func(name, text, ready string) *expression {
			if text == "" {
				text = ready
			}
			return compile(key+"."+name, text)
		}
		r := &Rule{
			owner: owner, ownerPaths: ready.owner,
			state:  choose("state", kind.State, ready.state),
			reason: choose("reason", kind.Reason, ready.reason), message: choose("message", kind.Message, ready.message),
			queue: choose("queue", kind.Queue, ready.queue), at: compile(key, ready.at),
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

// Ready are the kinds that have ready-made rules.
func Ready() []string { return slices.Sorted(maps.Keys(readyMade)) }

// Kinds are the kinds that have rules, in order.
func (s *Set) Kinds() []string { return slices.Sorted(maps.Keys(s.rules)) }

// For is the rule of a kind; nil if it has none.
func (s *Set) For(kind string) *Rule { return s.rules[kind] }

// Rule reads the objects of one kind.
type Rule struct {
	jobs       bool // the kind is batch/v1 Job
	owner      *expression
	ownerPaths []string // where objects of this kind name their owner
	state      *expression
	reason     *expression
	message    *expression
	queue      *expression
	at         *expression // since when the job is in its state, in RFC 3339
}

// ErrState means that an expression's result is no state.
var ErrState = errors.New("no state")

// Read is what an object says of a job that was in a state; "" for a job that was never seen. An error says what could
// not be evaluated. The rest of the result holds. If the state could not be evaluated, it is "".
//
// If the object is still in the state it was in, nothing else of the result would be used. So then only the state is
// evaluated.
func (r *Rule) Read(o *cluster.Object, was history.State) (said history.Said, err error) {
	var errs []error
	var object map[string]any
	state := was
	evaluate := func(name string, e *expression) string {
		if e == nil {
			return ""
		}
		if object == nil {
			object = parse(o)
		}
		text, err := e.evaluate(input{object, string(state)})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		return text
	}
	if r.jobs {
		said = readJob(o, was)
	} else {
		said.State = history.State(evaluate("state", r.state))
		if said.State != "" && (!said.State.Valid() || said.State == history.Deleted) {
			errs = append(errs, fmt.Errorf("state: %w: %q", ErrState, string(said.State)))
			said.State = ""
		}
	}
	if was != "" && (said.State == "" || said.State == was) {
		return said, errors.Join(errs...)
	}
	state = said.State
	if !r.jobs {
		said.Reason, said.Message = evaluate("reason", r.reason), evaluate("message", r.message)
		said.At = moment(evaluate("at", r.at))
	}
	if said.Queue = evaluate("queue", r.queue); said.Queue == "" {
		said.Queue = label(o, "kueue.x-k8s.io/queue-name", "volcano.sh/queue-name")
	}
	if r.owner != nil {
		said.Owner = evaluate("owner", r.owner)
	} else {
		said.Owner = r.ownerOf(o)
	}
	said.Requests = requestsOf(o)
	return said, errors.Join(errs...)
}
