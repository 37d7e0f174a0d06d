// Package policy decides by CEL expressions who may see what, for portals whose users are not users of Kubernetes.
//
// A request is allowed if one of the policies is true for it. A policy that fails (a missing claim, a cost beyond the
// limit) is not true: no failure allows anything.
//
// A request that names no namespace asks about all of them, future ones included, and one that names no object asks
// about all objects. It is allowed only if a policy is true whatever the namespace or the name may be. So a policy is
// evaluated with these values as unknown. With an empty name instead, `request.namespace != "kube-system"` would let
// every user list all namespaces. What such a policy does allow is found by asking about each namespace.
package policy

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
)

// The variables of policies are declared by their qualified names, so that compiling a policy finds a misspelled one.
const (
	userName         = "user.username"
	userGroups       = "user.groups"
	userClaims       = "user.claims"
	requestCluster   = "request.cluster"
	requestVerb      = "request.verb"
	requestGroup     = "request.group"
	requestResource  = "request.resource"
	requestNamespace = "request.namespace"
	requestName      = "request.name"
)

// costLimit bounds one evaluation, in CEL's units: a comparison costs one. It amounts to some milliseconds at most.
const costLimit = 100_000

// Authorizer is an auth.Authorizer. Its methods may be called concurrently.
type Authorizer struct {
	policies   []compiled
	mentions   map[string]bool // the variables that some policy mentions
	namespaces auth.Namespaces
	known      memory
	turns      *budget.Queue // for questions about many namespaces
	evaluated  atomic.Int64  // how many requests were evaluated
}

const waitingPerUser = 4096

var _ auth.Authorizer = (*Authorizer)(nil)

type compiled struct {
	name    string
	program cel.Program
}

// New compiles and checks the policies. An error names each policy that is wrong by key and index, with the place and
// the reason.
func New(policies []string, key string, namespaces auth.Namespaces) (*Authorizer, error) {
	environment, err := newEnvironment()
	if err != nil {
		return nil, err
	}
	// Half of the processors are left to the rest of the gateway.
	a := &Authorizer{
		namespaces: namespaces, mentions: map[string]bool{},
		turns: budget.NewQueue(max(runtime.GOMAXPROCS(0)/2, 1), 1, waitingPerUser),
	}
	var errs []error
	for i, text := range policies {
		name := fmt.Sprintf("%s[%d]", key, i)
		program, err := compile(environment, text, a.mentions)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		a.policies = append(a.policies, compiled{name, program})
	}
	if len(policies) == 0 {
		errs = append(errs, fmt.Errorf("%s: one policy or more: without, nobody may see anything", key))
	}
	return a, errors.Join(errs...)
}

func newEnvironment() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable(userName, cel.StringType),
		cel.Variable(userGroups, cel.ListType(cel.StringType)),
		cel.Variable(userClaims, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable(requestCluster, cel.StringType),
		cel.Variable(requestVerb, cel.StringType),
		cel.Variable(requestGroup, cel.StringType),
		cel.Variable(requestResource, cel.StringType),
		cel.Variable(requestNamespace, cel.StringType),
		cel.Variable(requestName, cel.StringType),
		ext.Strings(),
		ext.Sets(),
	)
}

// compile compiles a policy, and adds the variables that it mentions to mentions.
func compile(environment *cel.Env, text string, mentions map[string]bool) (cel.Program, error) {
	ast, issues := environment.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("%s", strings.TrimSpace(err.Error()))
	}
	if ast.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("it gives a %s; allowed: a bool", ast.OutputType())
	}
	for _, reference := range ast.NativeRep().ReferenceMap() {
		mentions[reference.Name] = true
	}
	// With OptOptimize, regular expressions and constant lists are read once.
	return environment.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptPartialEval), cel.CostLimit(costLimit))
}

// variables are the values of the variables in one evaluation.
type variables struct {
	id  *auth.Identity
	req *auth.Request
}

func (v variables) ResolveName(name string) (any, bool) {
	switch name {
	case userName:
		return v.id.Username, true
	case userGroups:
		return v.id.Groups, true
	case userClaims:
		if v.id.Claims == nil {
			return map[string]any{}, true
		}
		return v.id.Claims, true
	case requestCluster:
		return v.req.Cluster, true
	case requestVerb:
		return v.req.Verb, true
	case requestGroup:
		return v.req.Group, true
	case requestResource:
		resource := v.req.Resource
		if v.req.Subresource != "" {
			resource += "/" + v.req.Subresource
		}
		return resource, true
	case requestNamespace:
		return v.req.Namespace, true
	case requestName:
		return v.req.Name, true
	}
	return nil, false
}

func (v variables) Parent() interpreter.Activation { return nil }

// answer is what all policies together say of a request.
type answer int

const (
	no answer = iota
	depends
	yes
)

// evaluate evaluates the policies until one says yes. The namespace and the name are unknown to them if the request
// has none.
func (a *Authorizer) evaluate(id *auth.Identity, req *auth.Request) (answer answer, reason string) {
	a.evaluated.Add(1)
	input, err := inputOf(id, req)
	if err != nil {
		return no, err.Error()
	}
	var failures []string
	for _, p := range a.policies {
		value, _, err := p.program.Eval(input)
		switch {
		case err != nil:
			failures = append(failures, fmt.Sprintf("%s: %v", p.name, err))
		case value == types.True:
			return yes, p.name
		case types.IsUnknown(value):
			answer = depends
		}
	}
	return answer, strings.Join(failures, "; ")
}

// inputOf is what policies are given.
func inputOf(id *auth.Identity, req *auth.Request) (any, error) {
	var unknown []*cel.AttributePatternType
	if req.Namespace == "" {
		unknown = append(unknown, cel.AttributePattern(requestNamespace))
	}
	if req.Name == "" {
		unknown = append(unknown, cel.AttributePattern(requestName))
	}
	if len(unknown) == 0 {
		return variables{id, req}, nil
	}
	return cel.PartialVars(variables{id, req}, unknown...)
}

// Authorize implements auth.Authorizer. It returns no errors: a request that cannot be evaluated is denied.
//
// Policies cannot speak of URLs that are not resources. All users that are signed in may read what a cluster can do,
// as by Kubernetes' own default roles; strangers may not.
func (a *Authorizer) Authorize(_ context.Context, id auth.Identity, req auth.Request) (auth.Decision, error) {
	if req.Path != "" {
		return auth.Decision{Allowed: !id.Anonymous, Reason: "signed in"}, nil
	}
	answer, reason := a.evaluate(&id, &req)
	return auth.Decision{Allowed: answer == yes, Reason: reason}, nil
}

// Scope implements auth.Authorizer. It never has single objects, since their names cannot be enumerated.
func (a *Authorizer) Scope(ctx context.Context, id auth.Identity, req auth.Request) (auth.Scope, error) {
	req.Name = ""
	switch answer, _ := a.evaluate(&id, &req); {
	case answer == yes && req.Namespace != "":
		return auth.Scope{Namespaces: []string{req.Namespace}}, nil
	case answer == yes:
		return auth.Scope{All: true}, nil
	case answer == no || req.Namespace != "":
		return auth.Scope{}, nil
	}
	names, ok := a.namespaces.Names(req.Cluster)
	if !ok {
		return auth.Scope{}, fmt.Errorf("%w: the namespaces of cluster %s are not known", auth.ErrUndecided, req.Cluster)
	}
	allowed, err := a.over(ctx, &id, req, names)
	if err != nil {
		return auth.Scope{}, err
	}
	return auth.Scope{Namespaces: allowed}, nil
}

// Changes implements auth.Authorizer. Policies do not change while the gateway runs, but namespaces come and go.
func (a *Authorizer) Changes(_ auth.Identity, changed func()) (stop func()) {
	return a.namespaces.Changes(changed)
}
