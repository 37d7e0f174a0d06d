package rbac

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubecast/kubecast/internal/auth"
)

// Explain names the bindings by which an identity has what a request asks for, or a part of it, each with the role and
// the rule. If there are none, it names those that the identity has for something else. It answers by the same compiled
// rules as Authorize and Scope. An error wraps auth.ErrUndecided, or is ctx's.
func (a *Authorizer) Explain(ctx context.Context, id auth.Identity, req auth.Request) (why auth.Explanation, err error) {
	m, err := a.of(ctx, &id, &req)
	if err != nil {
		return why, err
	}
	if slices.Contains(id.Groups, privileged) {
		return auth.Explanation{By: []string{"the group " + privileged + ", which API servers let do everything"}}, nil
	}
	granted, others := m.index.explain(&id, req)
	for _, g := range granted {
		why.By = append(why.By, g.String())
	}
	if len(granted) == 0 {
		why.Hints = others
	}
	return why, nil
}

// grant is one way by which an identity has something.
type grant struct {
	binding bindingKey
	subject subject
	role    key
	rule    string
	part    string // what of it is meant; "": all
}

func (g grant) String() string {
	text := fmt.Sprintf("%s → %s: %s", bound(g.binding, g.subject), nameOf(g.role), g.rule)
	if g.part != "" {
		text += " (only " + g.part + ")"
	}
	return text
}

// bound names a binding, and which of its subjects is meant.
func bound(b bindingKey, s subject) string {
	what, whose := "ClusterRoleBinding "+b.name, "user "
	if b.namespace != "" {
		what = "RoleBinding " + b.namespace + "/" + b.name
	}
	if s.group {
		whose = "group "
	}
	return what + " of " + whose + s.name
}

func nameOf(r key) string {
	if r.namespace == "" {
		return "ClusterRole " + r.name
	}
	return "Role " + r.namespace + "/" + r.name
}

// explain returns what permits a request, whole grants first, and the other bindings that an identity has there.
func (x *index) explain(id *auth.Identity, req auth.Request) (granted []grant, others []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for k, b := range x.bindings {
		if k.namespace != "" && (req.Path != "" || req.Namespace != "" && k.namespace != req.Namespace) {
			continue
		}
		for _, s := range b.subjects {
			if s.group && !slices.Contains(id.Groups, s.name) || !s.group && s.name != id.Username {
				continue
			}
			found := b.role.rules.explain(req)
			for _, rule := range found {
				g := grant{binding: k, subject: s, role: b.role.key, rule: rule.text, part: rule.part}
				if k.namespace != "" && req.Namespace == "" {
					g.part = strings.TrimPrefix(g.part+" in namespace "+k.namespace, " ")
				}
				granted = append(granted, g)
			}
			switch {
			case b.role.version == "":
				others = append(others, bound(k, s)+" names "+nameOf(b.role.key)+", which does not exist")
			case len(found) == 0 && b.role.rules.reads():
				others = append(others, bound(k, s)+" → "+nameOf(b.role.key)+" permits other things only")
			}
		}
	}
	slices.SortFunc(granted, func(a, b grant) int { return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.String(), b.String())) })
	slices.Sort(others)
	return granted, others
}

// reads reports whether any resource may be read. Default roles such as system:discovery are only about paths.
func (s *ruleSet) reads() bool { return len(s.everything)+len(s.resources) > 0 }

// explained is a rule that permits something.
type explained struct{ text, part string }

// explain returns what permits a request or a part of it.
func (s *ruleSet) explain(req auth.Request) (found []explained) {
	switch {
	case s == nil:
		return nil
	case req.Path != "":
		for _, rule := range s.paths {
			if rule.matches(req.Path) && req.Verb == "get" {
				found = append(found, explained{text: "get " + strings.Join(rule.urls, ", ")})
			}
		}
		return found
	}
	q := newQuestion(req)
	for _, of := range []struct {
		resource string
		list     []allowance
	}{{rbacv1.ResourceAll, s.everything}, {q.resource, s.resources[q.resource]}, {q.wildcard, s.resources[q.wildcard]}} {
		for i := range of.list {
			if a := &of.list[i]; a.ofGroup(q.group) && q.verb != 0 {
				found = append(found, a.explain(of.resource, &q)...)
			}
		}
	}
	return found
}

// explain returns what an allowance of a resource permits of a question.
func (a *allowance) explain(resource string, q *question) []explained {
	if a.group != "" {
		resource += "." + a.group
	}
	switch only := a.namesOf(q.verb); {
	case a.verbs&q.verb != 0:
		return []explained{{text: a.verbs.String() + " " + resource}}
	case a.names[q.name]&q.verb != 0:
		return []explained{{text: fmt.Sprintf("%s %s named %q", a.names[q.name], resource, q.name)}}
	case q.name == "" && len(only) > 0:
		return []explained{{text: q.verb.String() + " " + resource, part: strings.Join(only, ", ")}}
	}
	return nil
}

// namesOf are the names of single objects with which a verb is allowed.
func (a *allowance) namesOf(verb verbs) (names []string) {
	for name, granted := range a.names {
		if granted&verb != 0 && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// String names the verbs.
func (v verbs) String() string {
	var names []string
	for _, name := range []string{"get", "list", "watch"} {
		if v&verbOf(name) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
