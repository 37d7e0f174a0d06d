package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/config"
	kubecasthttp "github.com/kubecast/kubecast/internal/http"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// Question is what Explain is asked.
type Question struct {
	User    string
	Groups  []string
	Claims  map[string]any // for policies
	Cluster string         // "": the one that the path names, or the default one
	Path    string         // an address of the gateway, without its host
}

// identity is the user as the authenticator would make it.
func (q Question) identity(home string) auth.Identity {
	id := auth.Identity{Username: q.User, Groups: slices.Clone(q.Groups), Claims: q.Claims}
	switch account, isAccount := strings.CutPrefix(q.User, "system:serviceaccount:"); {
	case q.User == "system:anonymous":
		id.Anonymous = true
		id.Groups = append(id.Groups, "system:unauthenticated")
		return id
	case isAccount:
		namespace, _, _ := strings.Cut(account, ":")
		id.Groups = append(id.Groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
		id.Cluster = home
	}
	id.Groups = append(id.Groups, "system:authenticated")
	return id
}

// Explain prints what of a path a user may see, and which bindings or policies permit it, by the gateway's own authorizer
// and routes. It connects to the cluster with the gateway's identity, and changes nothing.
func Explain(ctx context.Context, opts Options, q Question, out io.Writer) error {
	needs, inCluster, path, err := kubecasthttp.Needs(q.Path)
	if err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	opts.Log = slog.New(slog.DiscardHandler)
	opts.Config.History.Database = config.HistoryNone // nothing of it is needed
	opts.Config.Webhooks = nil
	g, err := build(opts, true)
	if err != nil {
		return err
	}
	defer g.close()
	e := explainer{g: g, out: out, id: q.identity(g.clusters.members[0].config.Name), followed: map[*cache.Kinds]bool{}}
	if e.access, err = access.New(access.Options{Clusters: g.clusters.kinds(), Authorizer: auth.NewGuard(g.authorizer, nil), SyncTimeout: time.Second}); err != nil {
		return err
	}
	fmt.Fprintf(out, "user %s, groups %s, authorizer.mode %s\n", e.id.Username, strings.Join(e.id.Groups, ", "), opts.Config.Authorizer.Mode)
	following, stop := context.WithCancel(ctx)
	defer e.followers.Wait()
	defer stop()
	if path != "" {
		kinds, err := e.follow(following, firstOf(q.Cluster, inCluster))
		if err != nil {
			return err
		}
		return e.path(ctx, kinds, path)
	}
	for _, need := range needs {
		need.Cluster = firstOf(q.Cluster, need.Cluster)
		kinds, err := e.follow(following, need.Cluster)
		if err != nil {
			return err
		}
		if err := e.need(ctx, kinds, need); err != nil {
			return err
		}
	}
	return nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// explainer prints explanations.
type explainer struct {
	g      *assembly
	access *access.Access
	id     auth.Identity
	out    io.Writer

	followed  map[*cache.Kinds]bool
	followers sync.WaitGroup
}

// knownWithin is how long roles, bindings and namespaces are waited for.
const knownWithin = 10 * time.Second

// follow has the authorizer follow a cluster until the context ends, and waits until it knows what it decides by; ""
// is the default one.
func (e *explainer) follow(ctx context.Context, name string) (*cache.Kinds, error) {
	kinds, err := e.access.Cluster(name)
	if err != nil {
		return nil, fmt.Errorf("explain: there is no cluster %q", name)
	}
	if e.followed[kinds] {
		return kinds, nil
	}
	e.followed[kinds] = true
	at := slices.IndexFunc(e.g.clusters.members, func(m *member) bool { return m.kinds == kinds })
	e.followers.Go(func() { _ = e.g.clusters.members[at].follow(ctx) }) // which only ends with the context
	for end := time.Now().Add(knownWithin); ; {
		err := e.g.authorizer.known(kinds.Cluster().Name())
		if err == nil || errors.Is(err, auth.ErrUnconfirmed) { // which waiting does not mend
			return kinds, nil
		}
		if time.Now().After(end) || !backoff.Pause(ctx, 20*time.Millisecond) {
			fmt.Fprintf(e.out, "not all is known: %v\n", err)
			return kinds, nil
		}
	}
}

// path explains the right to read a URL that is no resource.
func (e *explainer) path(ctx context.Context, kinds *cache.Kinds, path string) error {
	what := fmt.Sprintf("get of %s in cluster %s", path, kinds.Cluster().Name())
	allowed, err := e.access.MayRead(ctx, kinds, e.id, path)
	if err != nil {
		return fmt.Errorf("explain: %s: %w", what, err)
	}
	return e.tell(ctx, what, allowed, "", auth.Request{Cluster: kinds.Cluster().Name(), Verb: "get", Path: path})
}

// need explains one right.
func (e *explainer) need(ctx context.Context, kinds *cache.Kinds, need access.Need) error {
	what := described(need) + " in cluster " + kinds.Cluster().Name()
	grant, kind, err := e.access.Find(ctx, e.id, need.Target, need.Verb)
	var refused *reply.Error
	switch {
	case errors.As(err, &refused) && refused.Code == 403:
		return e.tell(ctx, what, false, "", need.Request(kinds.Cluster().Name(), need.Verb))
	case errors.Is(err, cluster.ErrNoKind):
		fmt.Fprintf(e.out, "%s: the cluster has no such kind, or kinds.allow and kinds.deny leave it out\n", what)
		return nil
	case err != nil:
		return fmt.Errorf("explain: %s: %w", what, err)
	}
	part := ""
	if grant.Visible != nil {
		part = shown(grant.Visible.Shows())
	}
	if err := e.tell(ctx, what, true, part, need.Request(kinds.Cluster().Name(), need.Verb)); err != nil {
		return err
	}
	return e.itself(ctx, kinds.Cluster(), need, kind)
}

// printable is a text that a terminal prints as one line. Names of bindings and roles may have any
// character, and who makes one in their own namespace would speak to the operator with it.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// described is what is asked for, in words.
func described(need access.Need) string {
	text := need.Verb + " of " + need.Qualified()
	if need.Subresource != "" {
		text = need.Verb + " of " + need.Resource + "/" + need.Subresource
	}
	if need.Name != "" {
		text += " " + need.Name
	}
	if need.Namespace != "" {
		text += " in namespace " + need.Namespace
	}
	return text
}

// shown is a part of what was asked for, in words.
func shown(scope auth.Scope) string {
	var parts []string
	if len(scope.Namespaces) > 0 {
		parts = append(parts, "namespaces "+strings.Join(scope.Namespaces, ", "))
	}
	for namespace, names := range scope.Names {
		text := "objects " + strings.Join(names, ", ")
		if namespace != "" {
			text += " of namespace " + namespace
		}
		parts = append(parts, text)
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// tell prints whether something is permitted, and why.
func (e *explainer) tell(ctx context.Context, what string, allowed bool, part string, request auth.Request) error {
	why, err := e.g.authorizer.explain(ctx, e.id, request)
	switch {
	case err != nil:
		return fmt.Errorf("explain: %s: %w", what, err)
	case !allowed:
		fmt.Fprintf(e.out, "%s: nothing permits it\n", what)
	case part != "":
		fmt.Fprintf(e.out, "%s: permitted in part: %s\n", what, printable(part))
	default:
		fmt.Fprintf(e.out, "%s: permitted\n", what)
	}
	if allowed {
		for _, by := range why.By {
			fmt.Fprintln(e.out, "  by", printable(fmt.Sprint(by)))
		}
	}
	if !allowed || part != "" {
		for _, hint := range why.Hints {
			fmt.Fprintln(e.out, "  but", printable(fmt.Sprint(hint)))
		}
	}
	return nil
}

// itself says whether the gateway may read what it would have to show.
func (e *explainer) itself(ctx context.Context, c *cluster.Cluster, need access.Need, kind cluster.Kind) error {
	verbs := followed
	switch {
	case need.Subresource != "":
		verbs = []string{"get"}
	case kind.Measured:
		verbs = []string{"list"}
	}
	for _, verb := range verbs {
		allowed, err := c.May(ctx, authorizationv1.ResourceAttributes{Verb: verb, Group: kind.Group, Version: kind.Version, Resource: kind.Resource, Subresource: need.Subresource})
		if err != nil {
			return fmt.Errorf("explain: %w", err)
		}
		if !allowed {
			fmt.Fprintf(e.out, "  but the gateway itself may not %s it, so nobody sees it\n", verb)
			return nil
		}
	}
	return nil
}
