package rbac

import (
	"slices"
	"sync"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubecast/kubecast/internal/auth"
)

// index answers questions from the roles and bindings of one cluster. Its methods may be called concurrently.
//
// It leads from a subject to the subject's roles, by namespace. Roles are compiled, and shared by all subjects that
// have them. A change of a role or binding costs work only for the subjects that it concerns.
type index struct {
	mu       sync.RWMutex
	roles    map[key]*role // also roles that do not exist, but that a binding names
	bindings map[bindingKey]*binding
	users    map[string]grants
	groups   map[string]grants
}

// key names a role. Namespace is "" for ClusterRoles.
type key struct{ namespace, name string }

// bindingKey names a binding. Namespace is "" for ClusterRoleBindings.
type bindingKey key

// role is what a Role or ClusterRole allows, and which subjects have it.
type role struct {
	key      key
	version  string   // the object's; "" if the role does not exist
	rules    *ruleSet // nil if the role does not exist
	bindings int      // how many bindings name it, even those without subjects
	slots    map[*slot]struct{}
}

type binding struct {
	version  string
	role     *role
	subjects []subject
}

type subject struct {
	group bool
	name  string
}

// grants are what one subject has, by namespace; under "" is what counts for the whole cluster.
type grants map[string]*slot

// slot is what one subject has in one namespace.
type slot struct {
	subject subject
	roles   []*role       // each once
	counts  map[*role]int // how many bindings give each role
	merged  atomic.Pointer[ruleSet]
}

// mergeFrom is the number of roles from which on a slot has them merged. One role is asked in some 30 ns, so a few
// roles are asked one by one. But some platforms give a group a role for each thing that it may see.
const mergeFrom = 8

func newIndex() *index {
	return &index{
		roles:    map[key]*role{},
		bindings: map[bindingKey]*binding{},
		users:    map[string]grants{},
		groups:   map[string]grants{},
	}
}

// allows answers a question, and names the role that allows it.
func (x *index) allows(id *auth.Identity, q *question, namespace string) (reason string, allowed bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if reason, allowed = x.users[id.Username].allow(q, namespace); allowed {
		return reason, true
	}
	for _, group := range id.Groups {
		if reason, allowed = x.groups[group].allow(q, namespace); allowed {
			return reason, true
		}
	}
	return "", false
}

func (g grants) allow(q *question, namespace string) (reason string, allowed bool) {
	if len(g) == 0 {
		return "", false
	}
	if reason, allowed = g[""].allow(q); !allowed && namespace != "" {
		reason, allowed = g[namespace].allow(q)
	}
	return reason, allowed
}

func (s *slot) allow(q *question) (reason string, allowed bool) {
	switch {
	case s == nil:
		return "", false
	case len(s.roles) >= mergeFrom:
		return "one of several roles", s.all().allows(q)
	}
	for _, r := range s.roles {
		if r.rules.allows(q) {
			return r.key.name, true
		}
	}
	return "", false
}

// all returns the merged rules. The first question that needs them makes them; the index's lock keeps the roles from
// changing in the meantime.
func (s *slot) all() *ruleSet {
	rules := s.merged.Load()
	if rules == nil {
		rules = merge(s.roles)
		s.merged.Store(rules)
	}
	return rules
}

// scope returns where a question would be answered with yes.
func (x *index) scope(id *auth.Identity, q *question) auth.Scope {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c := collector{question: q, everything: map[string]bool{}, names: map[key]bool{}}
	c.take(x.users[id.Username])
	for _, group := range id.Groups {
		c.take(x.groups[group])
	}
	return c.scope()
}

// collector gathers a Scope.
type collector struct {
	question   *question
	everything map[string]bool // namespaces; "" for all
	names      map[key]bool
}

func (c *collector) take(g grants) {
	for namespace, slot := range g {
		if c.everything[""] {
			return
		}
		if len(slot.roles) >= mergeFrom {
			c.takeRules(namespace, slot.all())
			continue
		}
		for _, r := range slot.roles {
			c.takeRules(namespace, r.rules)
		}
	}
}

func (c *collector) takeRules(namespace string, rules *ruleSet) {
	if c.everything[namespace] {
		return
	}
	rules.each(c.question, func(a *allowance) bool {
		// A user who may list or watch the empty name may do so without a name, and is shown everything.
		if a.verbs&c.question.verb != 0 || c.question.verb != verbGet && a.names[""]&c.question.verb != 0 {
			c.everything[namespace] = true
			return false
		}
		for name, granted := range a.names {
			if granted&c.question.verb != 0 && name != "" {
				c.names[key{namespace, name}] = true
			}
		}
		return true
	})
}

func (c *collector) scope() auth.Scope {
	if c.everything[""] {
		return auth.Scope{All: true}
	}
	var s auth.Scope
	for namespace := range c.everything {
		s.Namespaces = append(s.Namespaces, namespace)
	}
	slices.Sort(s.Namespaces)
	for k := range c.names {
		if c.everything[k.namespace] || k.namespace != "" && c.names[key{"", k.name}] {
			continue
		}
		if s.Names == nil {
			s.Names = map[string][]string{}
		}
		s.Names[k.namespace] = append(s.Names[k.namespace], k.name)
	}
	for _, names := range s.Names {
		slices.Sort(names)
	}
	return s
}

// putRole adds or replaces a role, and returns the subjects whose permissions that changes.
func (x *index) putRole(k key, version string, rules []rbacv1.PolicyRule) []subject {
	compiled := compile(rules)
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.role(k)
	if r.version == version {
		return nil
	}
	r.version, r.rules = version, compiled
	return r.changed()
}

func (x *index) removeRole(k key) []subject {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.role(k)
	r.version, r.rules = "", nil
	x.forget(r)
	return r.changed()
}

// role returns the entry of a role, and makes it if there is none.
func (x *index) role(k key) *role {
	r := x.roles[k]
	if r == nil {
		r = &role{key: k, slots: map[*slot]struct{}{}}
		x.roles[k] = r
	}
	return r
}

// forget drops the entry of a role that does not exist and that no binding names.
func (x *index) forget(r *role) {
	if r.version == "" && r.bindings == 0 {
		delete(x.roles, r.key)
	}
}

func (r *role) changed() []subject {
	subjects := make([]subject, 0, len(r.slots))
	for s := range r.slots {
		s.merged.Store(nil)
		subjects = append(subjects, s.subject)
	}
	return subjects
}

// putBinding adds or replaces a binding, and returns the subjects whose permissions that changes.
func (x *index) putBinding(k bindingKey, version string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) []subject {
	to := make([]subject, 0, len(subjects))
	for _, s := range subjects {
		if s.Kind == rbacv1.GroupKind {
			to = append(to, subject{group: true, name: s.Name})
		} else if user := userOf(s, k.namespace); user != "" {
			to = append(to, subject{name: user})
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.bindings[k]
	if old != nil && old.version == version {
		return nil
	}
	changed := x.unbind(k)
	var role key
	switch {
	case ref.Kind == "ClusterRole":
		role = key{"", ref.Name}
	case ref.Kind == "Role" && k.namespace != "":
		role = key{k.namespace, ref.Name}
	default: // a kind of role that gives nothing
		return changed
	}
	b := &binding{version: version, role: x.role(role), subjects: to}
	x.bindings[k] = b
	b.role.bindings++
	for _, s := range to {
		x.grant(k.namespace, s, b.role)
	}
	return append(changed, to...)
}

func (x *index) removeBinding(k bindingKey) []subject {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.unbind(k)
}

func (x *index) unbind(k bindingKey) []subject {
	b := x.bindings[k]
	if b == nil {
		return nil
	}
	delete(x.bindings, k)
	for _, s := range b.subjects {
		x.revoke(k.namespace, s, b.role)
	}
	b.role.bindings--
	x.forget(b.role)
	return b.subjects
}

func (x *index) grantsOf(s subject) map[string]grants {
	if s.group {
		return x.groups
	}
	return x.users
}

func (x *index) grant(namespace string, s subject, r *role) {
	all := x.grantsOf(s)
	g := all[s.name]
	if g == nil {
		g = grants{}
		all[s.name] = g
	}
	sl := g[namespace]
	if sl == nil {
		sl = &slot{subject: s, counts: map[*role]int{}}
		g[namespace] = sl
	}
	if sl.counts[r]++; sl.counts[r] == 1 {
		sl.roles = append(sl.roles, r)
		r.slots[sl] = struct{}{}
		sl.merged.Store(nil)
	}
}

func (x *index) revoke(namespace string, s subject, r *role) {
	all := x.grantsOf(s)
	g := all[s.name]
	sl := g[namespace]
	if sl.counts[r]--; sl.counts[r] > 0 {
		return
	}
	delete(sl.counts, r)
	delete(r.slots, sl)
	sl.merged.Store(nil)
	at := slices.Index(sl.roles, r)
	sl.roles = slices.Delete(sl.roles, at, at+1)
	if len(sl.roles) == 0 {
		delete(g, namespace)
	}
	if len(g) == 0 {
		delete(all, s.name)
	}
}
