package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/queues"
)

const (
	// mostAhead is by how much clocks may differ: tokens are good, and are not yet, within as much.
	mostAhead = 5 * time.Second
	// databaseWithin is how long the database may take to answer each question of a preflight.
	databaseWithin = 30 * time.Second
)

// right is something that the gateway itself must be allowed to do in a cluster.
type right struct {
	verbs     []string
	resource  string // resource[.group], or resource/subresource
	namespace string // empty: in all of them
	name      string // empty: all
	why       string // what it is for, as docs/operations.md says
	of        string // it is needed only in clusters that have this kind; empty: in all
}

var (
	cached   = []string{"get", "list", "watch"}
	followed = []string{"list", "watch"}
)

// rights are those that a configuration needs in each cluster, and in the default one more.
func rights(cfg config.Config, isDefault bool) (all []right) {
	need := func(verbs []string, why string, resources ...string) {
		for _, resource := range resources {
			all = append(all, right{verbs: verbs, resource: resource, why: why})
		}
	}
	all = append(all, right{verbs: []string{"get"}, resource: "namespaces", name: "kube-system", why: "what identifies the cluster in positions"})
	need([]string{"get", "list"}, "clients that may see some namespaces, and the history", "namespaces")
	need([]string{"list"}, "which kinds aggregated API servers serve", "apiservices.apiregistration.k8s.io")
	need(cached, "kinds that come and go, and the columns of their tables", "customresourcedefinitions.apiextensions.k8s.io")
	for _, kind := range cfg.Cache.Preload {
		need(cached, "cache.preload", kind.String())
	}
	if cfg.Kinds.Serves("", "pods") {
		need([]string{"get"}, "logs", "pods/log", "pods")
	}
	for _, resource := range []string{"nodes", "pods"} {
		if cfg.Kinds.Serves("metrics.k8s.io", resource) {
			need([]string{"list"}, "kubectl top", resource+".metrics.k8s.io")
		}
	}
	if cfg.History.Database != config.HistoryNone {
		for _, kind := range cfg.History.Recorded() {
			if cfg.Kinds.Serves(kind.Group, kind.Resource) {
				need(cached, "history", kind.String())
			}
		}
		if cfg.History.Runs && cfg.Kinds.Serves("", "pods") {
			need(followed, "history.runs", "pods")
		}
	}
	all = append(all, rightsInQueues(cfg)...)
	switch cfg.Authorizer.Mode {
	case config.AuthorizerRBAC:
		for _, resource := range []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"} {
			need(cached, "authorizer.mode: rbac", resource+".rbac.authorization.k8s.io")
		}
	case config.AuthorizerSAR:
		need([]string{"create"}, "authorizer.mode: sar", "subjectaccessreviews.authorization.k8s.io")
		need(followed, "authorizer.mode: sar", "namespaces")
	case config.AuthorizerPolicy:
		need(followed, "authorizer.mode: policy", "namespaces")
	}
	if !isDefault {
		return all
	}
	if len(cfg.Auth.ServiceAccounts.Audiences) > 0 {
		need([]string{"create"}, "auth.serviceAccounts", "tokenreviews.authentication.k8s.io")
	}
	if namespace, name, ok := strings.Cut(cfg.Auth.Revocations.ConfigMap, "/"); ok {
		verbs := followed
		if cfg.Auth.OIDCLogin.ClientID != "" {
			verbs = append(slices.Clone(followed), "patch")
		}
		all = append(all, right{verbs: verbs, resource: "configmaps", namespace: namespace, name: name, why: "auth.revocations"})
	}
	return all
}

// ofKinds are the rights that the kinds of a cluster take that kinds.allow names. They are wanted, unlike those that only
// a pattern matches.
func ofKinds(allowed config.Kinds, kinds []cluster.Kind) (all []right) {
	for _, kind := range kinds {
		if !allowed.Names(kind.Group, kind.Resource) {
			continue
		}
		verbs := cached
		if kind.Measured {
			verbs = []string{"list"}
		}
		all = append(all, right{verbs: verbs, resource: config.Kind{Resource: kind.Resource, Group: kind.Group}.String(), why: "kinds.allow"})
	}
	return all
}

// rightsInQueues are those that /queues needs where there is Kueue or Volcano.
func rightsInQueues(cfg config.Config) (all []right) {
	if !cfg.Queues.Enabled {
		return nil
	}
	for _, resource := range []string{"localqueues", "clusterqueues", "workloads"} {
		if kind := resource + "." + queues.Group; cfg.Kinds.Serves(queues.Group, resource) {
			all = append(all, right{verbs: cached, resource: kind, why: "queues.enabled", of: kind})
		}
	}
	if len(all) > 0 {
		all = append(all, right{verbs: []string{"get"}, resource: "clusterqueues/pendingworkloads.visibility." + queues.Group, why: "places in queues", of: "clusterqueues." + queues.Group})
	}
	volcano := "queues." + queues.VolcanoGroup
	for _, kind := range []config.Kind{{Group: queues.VolcanoGroup, Resource: "queues"}, {Group: queues.VolcanoGroup, Resource: "podgroups"}} {
		if cfg.Kinds.Serves(kind.Group, kind.Resource) {
			all = append(all, right{verbs: cached, resource: kind.String(), why: "queues.enabled", of: kind.String()})
		}
	}
	if cfg.Kinds.Serves(queues.VolcanoGroup, "queues") && cfg.Kinds.Serves("scheduling.k8s.io", "priorityclasses") {
		all = append(all, right{verbs: cached, resource: "priorityclasses.scheduling.k8s.io", why: "places in queues of Volcano", of: volcano})
	}
	return all
}

// Preflight builds all that Run builds, connects to each cluster, by each of its cores at an edge, and to the history's database, and
// prints what it finds. The error says that something is missing. It changes nothing, neither there
// nor here.
func Preflight(ctx context.Context, opts Options, out io.Writer) error {
	opts.Log = slog.New(slog.DiscardHandler)
	g, err := build(opts, true)
	if err != nil {
		return err
	}
	defer g.close()
	p := preflight{out: out}
	for i, m := range g.clusters.members {
		connections, err := g.clusters.byEach(m)
		if err != nil {
			return err
		}
		for _, c := range connections {
			p.cluster(ctx, c, opts.Config, rights(opts.Config, i == 0))
		}
	}
	if g.jobs != nil {
		p.database(ctx, g.jobs, opts.Config.History)
	}
	if p.missing > 0 {
		return fmt.Errorf("preflight: %d things are missing", p.missing)
	}
	fmt.Fprintln(out, "nothing is missing")
	return nil
}

// preflight prints what is found.
type preflight struct {
	out     io.Writer
	missing int
}

func (p *preflight) lacks(what string, args ...any) {
	p.missing++
	fmt.Fprintf(p.out, "  missing: "+what+"\n", args...)
}

func (p *preflight) cluster(ctx context.Context, c *cluster.Cluster, cfg config.Config, rights []right) {
	allowed := cfg.Kinds
	version, err := c.ServerVersion(ctx)
	fmt.Fprintf(p.out, "cluster %s at %s %s\n", c.Name(), c.Host(), version)
	if err != nil {
		p.lacks("an answer: %v", err)
		return
	}
	p.clock("the API server's", c.Ahead())
	kinds, err := c.Kinds(ctx)
	if err != nil {
		p.lacks("what kinds there are: %v", err)
	} else {
		p.absent(cfg, kinds)
	}
	if p.ask(ctx, c, append(rights, ofKinds(allowed, kinds)...)) {
		p.unserved(ctx, c, slices.DeleteFunc(kinds, func(k cluster.Kind) bool { return allowed.Names(k.Group, k.Resource) }))
	}
}

// absent names kinds that the configuration names and the cluster does not have, or not yet. That may be meant: a CRD may come later.
func (p *preflight) absent(cfg config.Config, kinds []cluster.Kind) {
	named := slices.Concat(cfg.Cache.Preload, cfg.History.Recorded())
	for _, pattern := range cfg.Kinds.Allow {
		if pattern.Resource != "*" && pattern.Group != "*" {
			named = append(named, config.Kind{Resource: pattern.Resource, Group: pattern.Group})
		}
	}
	var names []string
	for _, n := range named {
		has := slices.ContainsFunc(kinds, func(k cluster.Kind) bool { return k.Group == n.Group && k.Resource == n.Resource })
		if !has && cfg.Kinds.Serves(n.Group, n.Resource) && !slices.Contains(names, n.String()) {
			names = append(names, n.String())
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(p.out, "  named in the configuration, but not there: %s\n", strings.Join(names, ", "))
	}
}

// ask tells which rights are missing, each verb once. It reports whether the API server said so of all.
func (p *preflight) ask(ctx context.Context, c *cluster.Cluster, rights []right) bool {
	told := map[string]bool{}
	for _, r := range rights {
		if has, err := hasKind(ctx, c, r.of); err != nil {
			p.lacks("an answer whether there are %s: %v", r.of, err)
			return false
		} else if !has {
			continue
		}
		var denied []string
		for _, verb := range r.verbs {
			question := r.ask(verb)
			if told[question.String()] {
				continue
			}
			allowed, err := c.May(ctx, question)
			if err != nil {
				p.lacks("an answer whether the gateway may %s %s: %v", verb, r.resource, err)
				return false
			}
			if told[question.String()] = !allowed; !allowed {
				denied = append(denied, verb)
			}
		}
		if len(denied) > 0 {
			p.lacks("%s on %s (%s)", strings.Join(denied, ", "), r.String(), r.why)
		}
	}
	return true
}

// hasKind reports whether a cluster has a kind; "": any has it.
func hasKind(ctx context.Context, c *cluster.Cluster, name string) (bool, error) {
	if name == "" {
		return true, nil
	}
	_, err := c.Named(ctx, name)
	if errors.Is(err, cluster.ErrNoKind) {
		return false, nil
	}
	return err == nil, err
}

// ask is the question whether the gateway has one of the verbs.
func (r right) ask(verb string) authorizationv1.ResourceAttributes {
	resource, group, _ := strings.Cut(r.resource, ".")
	resource, sub, _ := strings.Cut(resource, "/")
	return authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: sub, Namespace: r.namespace, Name: r.name}
}

func (r right) String() string {
	switch {
	case r.namespace != "":
		return fmt.Sprintf("%s %s/%s", r.resource, r.namespace, r.name)
	case r.name != "":
		return r.resource + " " + r.name
	}
	return r.resource
}

// unserved names kinds that nobody is served, since the gateway itself may not read them. That may be meant.
func (p *preflight) unserved(ctx context.Context, c *cluster.Cluster, kinds []cluster.Kind) {
	var names []string
	for _, kind := range kinds {
		verbs := followed
		if kind.Measured {
			verbs = verbs[:1]
		}
		for _, verb := range verbs {
			allowed, err := c.May(ctx, authorizationv1.ResourceAttributes{Verb: verb, Group: kind.Group, Version: kind.Version, Resource: kind.Resource})
			if err != nil {
				p.lacks("an answer whether the gateway may %s %s: %v", verb, kind, err)
				return
			}
			if !allowed {
				names = append(names, kind.String())
				break
			}
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(p.out, "  not served, since the gateway may not list and watch it: %s\n", strings.Join(names, ", "))
	}
}

func (p *preflight) clock(whose string, ahead time.Duration) {
	if ahead.Abs() > mostAhead {
		where := "ahead"
		if ahead < 0 {
			where = "behind"
		}
		p.lacks("agreement of the clocks: %s is %v %s", whose, ahead.Abs().Round(time.Second), where)
	}
}

func (p *preflight) database(ctx context.Context, jobs *service.Service, cfg config.History) {
	ctx, cancel := context.WithTimeout(ctx, databaseWithin)
	defer cancel()
	s := jobs.Database()
	fmt.Fprintf(p.out, "database %s\n", jobs.Address())
	switch err := s.Check(ctx); {
	case errors.Is(err, store.ErrOlder) && cfg.Migrate:
		fmt.Fprintf(p.out, "  %v: serve changes that at its start, for which its user has to own the tables\n", err)
		return
	case errors.Is(err, store.ErrOlder):
		p.lacks("`gateway history migrate`: %v", err)
		return
	case err != nil:
		p.lacks("a database that can be used (%s): %v", store.CauseOf(err), err)
		return
	}
	missing, err := s.Missing(ctx)
	if err != nil {
		p.lacks("an answer to what the gateway asks (%s): %v", store.CauseOf(err), err)
		return
	}
	for _, right := range missing {
		p.lacks("%s (`gateway history grants` prints all)", right)
	}
	ahead, err := s.Ahead(ctx)
	if err != nil {
		p.lacks("its time: %v", err)
		return
	}
	p.clock("the database's", ahead)
}
