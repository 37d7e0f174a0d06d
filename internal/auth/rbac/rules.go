package rbac

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubecast/kubecast/internal/auth"
)

// verbs is a set of the verbs that the gateway asks about. The gateway only reads, so what a rule says of other verbs
// is left out.
type verbs uint8

const (
	verbGet verbs = 1 << iota
	verbList
	verbWatch
	everyVerb = verbGet | verbList | verbWatch
)

func verbOf(name string) verbs {
	switch name {
	case "get":
		return verbGet
	case "list":
		return verbList
	case "watch":
		return verbWatch
	case rbacv1.VerbAll:
		return everyVerb
	}
	return 0
}

// ruleSet is what one role allows, or several together. It never changes.
type ruleSet struct {
	everything []allowance            // of rules for the resource *
	resources  map[string][]allowance // by resource, resource/subresource or */subresource
	paths      []pathRule             // merge leaves these out
}

// allowance is what may be done with a resource of one group.
type allowance struct {
	group string // * is all groups
	verbs verbs  // allowed with all objects
	names map[string]verbs
}

// question is a Request in the form in which rules are asked.
type question struct {
	verb     verbs
	group    string
	resource string // with its subresource, if any
	wildcard string // */subresource, or ""
	name     string
}

func newQuestion(req auth.Request) question {
	q := question{group: req.Group, resource: req.Resource, name: req.Name}
	if req.Verb != rbacv1.VerbAll { // "*" has a meaning only in rules
		q.verb = verbOf(req.Verb)
	}
	if req.Subresource != "" {
		q.resource += "/" + req.Subresource
		q.wildcard = "*/" + req.Subresource
	}
	return q
}

// compile makes a ruleSet from rules.
func compile(rules []rbacv1.PolicyRule) *ruleSet {
	s := &ruleSet{}
	for _, rule := range rules {
		if paths, any := newPathRule(rule); any {
			s.paths = append(s.paths, paths)
		}
		var granted verbs
		for _, verb := range rule.Verbs {
			granted |= verbOf(verb)
		}
		if granted == 0 {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				s.add(resource, group, func(a *allowance) {
					if len(rule.ResourceNames) == 0 {
						a.verbs |= granted
					}
					for _, name := range rule.ResourceNames {
						a.addName(name, granted)
					}
				})
			}
		}
	}
	return s
}

// merge makes one ruleSet from those of several roles, without their paths.
func merge(roles []*role) *ruleSet {
	s := &ruleSet{}
	take := func(resource string, from []allowance) {
		for _, more := range from {
			s.add(resource, more.group, func(a *allowance) {
				a.verbs |= more.verbs
				for name, granted := range more.names {
					a.addName(name, granted)
				}
			})
		}
	}
	for _, r := range roles {
		if r.rules == nil {
			continue
		}
		take(rbacv1.ResourceAll, r.rules.everything)
		for resource, from := range r.rules.resources {
			take(resource, from)
		}
	}
	return s
}

// add changes the allowance of a group for a resource, and makes it if there is none.
func (s *ruleSet) add(resource, group string, change func(*allowance)) {
	list := s.resources[resource]
	if resource == rbacv1.ResourceAll {
		list = s.everything
	}
	at := 0
	for at < len(list) && list[at].group != group {
		at++
	}
	if at == len(list) {
		list = append(list, allowance{group: group})
	}
	change(&list[at])
	if resource == rbacv1.ResourceAll {
		s.everything = list
		return
	}
	if s.resources == nil {
		s.resources = map[string][]allowance{}
	}
	s.resources[resource] = list
}

func (a *allowance) addName(name string, granted verbs) {
	if a.names == nil {
		a.names = map[string]verbs{}
	}
	a.names[name] |= granted
}

func (a *allowance) ofGroup(group string) bool {
	return a.group == group || a.group == rbacv1.APIGroupAll
}

// each calls f for the allowances that concern a question's resource, until f returns false.
func (s *ruleSet) each(q *question, f func(*allowance) bool) bool {
	if s == nil {
		return true
	}
	lists := [...][]allowance{s.everything, s.resources[q.resource], nil}
	if q.wildcard != "" {
		lists[2] = s.resources[q.wildcard]
	}
	for _, list := range lists {
		for i := range list {
			if list[i].ofGroup(q.group) && !f(&list[i]) {
				return false
			}
		}
	}
	return true
}

// allows answers a question as Kubernetes' RuleAllows does. A question about all objects has the empty name, and a
// rule with the empty name allows it.
func (s *ruleSet) allows(q *question) bool {
	if s == nil {
		return false
	}
	return anyAllows(s.everything, q) || anyAllows(s.resources[q.resource], q) ||
		q.wildcard != "" && anyAllows(s.resources[q.wildcard], q)
}

func anyAllows(list []allowance, q *question) bool {
	for i := range list {
		if a := &list[i]; a.ofGroup(q.group) && (a.verbs&q.verb != 0 || a.names[q.name]&q.verb != 0) {
			return true
		}
	}
	return false
}

// userOf is the user name of a subject that is not a group, as Kubernetes makes it, or "" if it has none. A service
// account without a namespace belongs to that of the binding.
func userOf(s rbacv1.Subject, bindingNamespace string) string {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name
	case rbacv1.ServiceAccountKind:
		namespace := s.Namespace
		if namespace == "" {
			namespace = bindingNamespace
		}
		if namespace == "" {
			return ""
		}
		return strings.Join([]string{"system:serviceaccount", namespace, s.Name}, ":")
	}
	return ""
}
