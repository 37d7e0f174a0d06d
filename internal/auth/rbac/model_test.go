package rbac

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubecast/kubecast/internal/auth"
)

// model is RBAC as Kubernetes' documentation describes it: every binding is looked at for every question.
type model struct {
	roles    map[key][]rbacv1.PolicyRule
	bindings map[bindingKey]modelBinding
}

type modelBinding struct {
	ref      rbacv1.RoleRef
	subjects []rbacv1.Subject
}

func (m *model) allows(id auth.Identity, req auth.Request) bool {
	for k, b := range m.bindings {
		if k.namespace != "" && k.namespace != req.Namespace {
			continue
		}
		if !slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool { return isSubject(id, s, k.namespace) }) {
			continue
		}
		role := key{"", b.ref.Name}
		if b.ref.Kind == "Role" {
			role.namespace = k.namespace
		}
		if b.ref.Kind == "Role" && k.namespace == "" {
			continue
		}
		for _, rule := range m.roles[role] {
			if ruleAllows(rule, req) {
				return true
			}
		}
	}
	return false
}

func isSubject(id auth.Identity, s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case "User":
		return s.Name == id.Username
	case "Group":
		return slices.Contains(id.Groups, s.Name)
	case "ServiceAccount":
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		return namespace != "" && id.Username == "system:serviceaccount:"+namespace+":"+s.Name
	}
	return false
}

func ruleAllows(rule rbacv1.PolicyRule, req auth.Request) bool {
	either := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	resource := req.Resource
	if req.Subresource != "" {
		resource += "/" + req.Subresource
	}
	return either(rule.Verbs, req.Verb) && either(rule.APIGroups, req.Group) &&
		(either(rule.Resources, resource) || req.Subresource != "" && slices.Contains(rule.Resources, "*/"+req.Subresource)) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, req.Name))
}

// Random roles, bindings and questions are made of these.
var (
	someVerbs        = []string{"get", "list", "watch", "create", "*"}
	someGroups       = []string{"", "batch", "apps", "*"}
	someResources    = []string{"pods", "jobs", "secrets", "pods/log", "*/log", "*/status", "*", "jobs/status"}
	someNames        = []string{"a", "b", "c", ""}
	someNamespaces   = []string{"one", "two", "three"}
	someUsers        = []string{"ann", "bob", "system:serviceaccount:one:sa", "system:anonymous"}
	someUserGroups   = []string{"red", "blue", "system:authenticated", "system:serviceaccounts:one"}
	someRoles        = []string{"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11"}
	askedVerbs       = []string{"get", "list", "watch", "create", "*"}
	askedResources   = []string{"pods", "jobs", "secrets", "nodes"}
	askedSubresource = []string{"", "", "log", "status"}
)

func oneOf(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func someOf(r *rand.Rand, from []string, most int) []string {
	var some []string
	for range 1 + r.IntN(most) {
		some = append(some, oneOf(r, from))
	}
	return some
}

func randomRules(r *rand.Rand) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for range r.IntN(4) {
		rule := rbacv1.PolicyRule{Verbs: someOf(r, someVerbs, 3), APIGroups: someOf(r, someGroups, 2), Resources: someOf(r, someResources, 2)}
		if r.IntN(3) == 0 {
			rule.ResourceNames = someOf(r, someNames, 2)
		}
		rules = append(rules, rule)
	}
	if r.IntN(4) == 0 {
		rules = append(rules, rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}})
	}
	return rules
}

func randomSubjects(r *rand.Rand) []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for range r.IntN(4) {
		switch r.IntN(3) {
		case 0:
			subjects = append(subjects, rbacv1.Subject{Kind: "User", Name: oneOf(r, someUsers)})
		case 1:
			subjects = append(subjects, rbacv1.Subject{Kind: "Group", Name: oneOf(r, someUserGroups)})
		case 2:
			subjects = append(subjects, rbacv1.Subject{Kind: "ServiceAccount", Name: "sa", Namespace: oneOf(r, []string{"", "one", "two"})})
		}
	}
	return subjects
}

func randomIdentity(r *rand.Rand) auth.Identity {
	return auth.Identity{Username: oneOf(r, someUsers), Groups: someOf(r, someUserGroups, 3)}
}

// The index and the model get the same random changes and questions. Their answers must never differ, nor may a Scope
// differ from the answers that it stands for. In the end everything is removed, and nothing may be left in the index.
func TestIndexAnswersAsKubernetesRulesSay(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := &model{roles: map[key][]rbacv1.PolicyRule{}, bindings: map[bindingKey]modelBinding{}}
		x := newIndex()
		for step := range 400 {
			change(r, m, x, step)
			if r.IntN(4) > 0 {
				continue
			}
			for range 20 {
				id, req := randomIdentity(r), auth.Request{
					Verb: oneOf(r, askedVerbs), Group: oneOf(r, someGroups[:3]), Resource: oneOf(r, askedResources),
					Subresource: oneOf(r, askedSubresource), Namespace: oneOf(r, append(someNamespaces, "")), Name: oneOf(r, someNames),
				}
				if strings.Contains("create *", req.Verb) { // the gateway asks only about reading
					if _, allowed := ask(x, id, req); allowed {
						t.Fatalf("seed %d, step %d: %s is allowed", seed, step, req.Verb)
					}
					continue
				}
				if _, allowed := ask(x, id, req); allowed != m.allows(id, req) {
					t.Fatalf("seed %d, step %d: %v, %+v: %t", seed, step, id, req, allowed)
				}
				checkScope(t, fmt.Sprintf("seed %d, step %d", seed, step), m, x, id, req)
				checkExplanation(t, fmt.Sprintf("seed %d, step %d", seed, step), m, x, id, req)
			}
		}
		for k := range m.bindings {
			x.removeBinding(k)
		}
		for k := range m.roles {
			x.removeRole(k)
		}
		if len(x.roles)+len(x.bindings)+len(x.users)+len(x.groups) != 0 {
			t.Fatalf("seed %d: %d roles, %d bindings, %d users, %d groups are left", seed, len(x.roles), len(x.bindings), len(x.users), len(x.groups))
		}
	}
}

func ask(x *index, id auth.Identity, req auth.Request) (string, bool) {
	q := newQuestion(req)
	return x.allows(&id, &q, req.Namespace)
}

func change(r *rand.Rand, m *model, x *index, step int) {
	namespace := oneOf(r, append(someNamespaces, ""))
	version := fmt.Sprint(step)
	switch k := (key{namespace, oneOf(r, someRoles)}); r.IntN(6) {
	case 0, 1:
		m.roles[k] = randomRules(r)
		x.putRole(k, version, m.roles[k])
	case 2:
		delete(m.roles, k)
		x.removeRole(k)
	case 3:
		k := bindingKey{namespace, fmt.Sprintf("b%d", r.IntN(30))}
		delete(m.bindings, k)
		x.removeBinding(k)
	default:
		k := bindingKey{namespace, fmt.Sprintf("b%d", r.IntN(30))}
		b := modelBinding{rbacv1.RoleRef{Kind: oneOf(r, []string{"Role", "ClusterRole"}), Name: oneOf(r, someRoles)}, randomSubjects(r)}
		m.bindings[k] = b
		x.putBinding(k, version, b.ref, b.subjects)
		x.putBinding(k, version, b.ref, b.subjects) // told twice, as after a relist
	}
}

func checkScope(t *testing.T, where string, m *model, x *index, id auth.Identity, req auth.Request) {
	t.Helper()
	q := newQuestion(req)
	q.name = ""
	scope := x.scope(&id, &q)
	for _, namespace := range append(someNamespaces, "") {
		asked := req
		asked.Namespace = namespace
		asked.Name = ""
		if req.Verb != "get" && scope.SeesNamespace(namespace) != m.allows(id, asked) {
			t.Fatalf("%s: %v, %+v: scope %+v", where, id, asked, scope)
		}
		for _, asked.Name = range someNames[:3] {
			allowed := m.allows(id, asked)
			// A user who may list the empty name sees all names, although the rule names none of them.
			if seen := scope.Sees(namespace, asked.Name); seen != allowed && (req.Verb == "get" || allowed || !scope.SeesNamespace(namespace)) {
				t.Fatalf("%s: %v, %+v: scope %+v", where, id, asked, scope)
			}
		}
	}
}

// checkExplanation demands that what permits something is named exactly if it is permitted.
func checkExplanation(t *testing.T, where string, m *model, x *index, id auth.Identity, req auth.Request) {
	t.Helper()
	granted, _ := x.explain(&id, req)
	whole := slices.ContainsFunc(granted, func(g grant) bool { return g.part == "" })
	if allowed := m.allows(id, req); whole != allowed {
		t.Fatalf("%s: %v, %+v: allowed %t, explained by %v", where, id, req, allowed, granted)
	}
	for _, g := range granted {
		b := m.bindings[g.binding]
		if !slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool { return isSubject(id, s, g.binding.namespace) }) || b.ref.Name != g.role.name {
			t.Fatalf("%s: %v, %+v: %v is not theirs", where, id, req, g)
		}
	}
	if req.Name != "" || req.Verb == "get" { // all objects are asked about by list and watch
		return
	}
	q := newQuestion(req)
	scope := x.scope(&id, &q)
	if req.Namespace != "" {
		scope = scope.In(req.Namespace)
	}
	if allowed := m.allows(id, req); !allowed && scope.Empty() != (len(granted) == 0) {
		t.Fatalf("%s: %v, %+v: scope %+v, explained by %v", where, id, req, scope, granted)
	}
}
