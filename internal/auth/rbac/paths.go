package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubecast/kubecast/internal/auth"
)

// pathRule is what a rule allows for URLs that are not resources. It counts only if its ClusterRole is bound for the
// whole cluster.
type pathRule struct {
	urls []string
	get  bool // whether get is allowed, the only verb that the gateway asks about
}

func newPathRule(rule rbacv1.PolicyRule) (r pathRule, any bool) {
	r.urls = rule.NonResourceURLs
	r.get = slices.Contains(rule.Verbs, "get") || slices.Contains(rule.Verbs, rbacv1.VerbAll)
	return r, r.get && len(r.urls) > 0
}

// matches does the same as Kubernetes' NonResourceURLMatches.
func (r pathRule) matches(path string) bool {
	for _, url := range r.urls {
		if url == rbacv1.NonResourceAll || url == path ||
			strings.HasSuffix(url, "*") && strings.HasPrefix(path, strings.TrimRight(url, "*")) {
			return true
		}
	}
	return false
}

// allowsPath reports whether a path may be read, and names the role that allows it.
func (x *index) allowsPath(id *auth.Identity, path string) (reason string, allowed bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if reason, allowed = x.users[id.Username].allowPath(path); allowed {
		return reason, true
	}
	for _, group := range id.Groups {
		if reason, allowed = x.groups[group].allowPath(path); allowed {
			return reason, true
		}
	}
	return "", false
}

func (g grants) allowPath(path string) (reason string, allowed bool) {
	everywhere := g[""]
	if everywhere == nil {
		return "", false
	}
	for _, r := range everywhere.roles {
		if r.rules == nil {
			continue
		}
		for _, rule := range r.rules.paths {
			if rule.matches(path) {
				return r.key.name, true
			}
		}
	}
	return "", false
}
