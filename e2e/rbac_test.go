package e2e

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/rbac"
	"github.com/kubecast/kubecast/internal/cluster"
)

var rbacSeed = flag.Uint64("rbac-seed", 1, "of the roles, bindings and questions of TestRBACAnswersAsTheAPIServer")

const (
	rbacRounds    = 1200 // in each some objects change,
	rbacChanges   = 3    // so many,
	rbacQuestions = 6    // and then so many questions are put
)

// Roles and bindings change at random. After each change, the authorizer and the API server (by SubjectAccessReview)
// are asked the same questions, and must not differ. Both learn of changes by watches, so only a difference that
// stays counts.
//
// It is not parallel, since it also binds the groups in which every user is: users of other tests could see too much.
func TestRBACAnswersAsTheAPIServer(t *testing.T) {
	s := onStage(t)
	d := newDifferential(t, s, *rbacSeed)
	began := time.Now()
	allowed := 0
	for round := range rbacRounds {
		d.change(t)
		for range rbacQuestions {
			if d.ask(t, round, d.question()) {
				allowed++
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d, round %d", *rbacSeed, round)
		}
	}
	asked := rbacRounds * rbacQuestions
	t.Logf("%d states, %d changes, %d questions, %d allowed, put again %d times until both had seen the changes, %v",
		rbacRounds, rbacRounds*rbacChanges, asked, allowed, d.again, time.Since(began).Round(time.Millisecond))
	if allowed < asked/10 || allowed > asked*9/10 {
		t.Errorf("%d of %d are allowed: the questions show little", allowed, asked)
	}
}

// differential has the questions and the objects that change. No other test uses the names of its objects.
type differential struct {
	s          *stage
	r          *rand.Rand
	authorizer *rbac.Authorizer
	namespaces []string
	again      int

	mu   sync.Mutex
	live map[string]func(context.Context) error // removes each cluster-wide object
}

const differentialPrefix = "e2e-diff-"

func newDifferential(t *testing.T, s *stage, seed uint64) *differential {
	t.Helper()
	d := &differential{s: s, r: rand.New(rand.NewPCG(seed, 5)), live: map[string]func(context.Context) error{},
		namespaces: []string{differentialPrefix + "a", differentialPrefix + "b", differentialPrefix + "c"}}
	s.namespaces(t, d.namespaces...)
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	connection, err := cluster.Connect(cluster.Options{Name: "default", Config: config})
	if err != nil {
		t.Fatal(err)
	}
	d.authorizer = rbac.New(slog.New(slog.DiscardHandler))
	follow := d.authorizer.Add(connection)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- follow(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for name, remove := range d.live {
			if err := remove(context.Background()); err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	eventually(t, "roles and bindings are read", func() error { return d.authorizer.Ready("default") })
	return d
}

func (d *differential) oneOf(from ...string) string { return from[d.r.IntN(len(from))] }

func (d *differential) someOf(most int, from ...string) []string {
	d.r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	return slices.Clone(from[:1+d.r.IntN(most)])
}

// change changes random objects, for each name at most one at a time.
func (d *differential) change(t *testing.T) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(8)
	taken := map[string]bool{}
	for n := 0; n < rbacChanges; {
		name, do := d.randomChange()
		if taken[name] {
			continue
		}
		taken[name] = true
		n++
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := do(ctx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// randomChange returns a random change of an object.
func (d *differential) randomChange() (name string, do func(context.Context) error) {
	rbacAPI := d.s.kube.RbacV1()
	namespace := d.oneOf(d.namespaces...)
	remove := d.r.IntN(4) == 0
	switch d.r.IntN(8) {
	case 0, 1:
		o := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: d.oneOf("r0", "r1", "r2", "r3")}, Rules: d.rules()}
		return "Role " + namespace + "/" + o.Name, put(rbacAPI.Roles(namespace), o, o.Name, remove)
	case 2, 3:
		o := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: d.clusterRole()}, Rules: d.rules()}
		if d.r.IntN(2) == 0 {
			o.Labels = map[string]string{differentialPrefix + "part": "true"}
		}
		return "ClusterRole " + o.Name, d.clusterWide("ClusterRole "+o.Name, put(rbacAPI.ClusterRoles(), o, o.Name, remove), put(rbacAPI.ClusterRoles(), o, o.Name, true))
	case 4:
		o := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: differentialPrefix + "sum"}, AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{differentialPrefix + "part": "true"}}},
		}}
		return "ClusterRole " + o.Name, d.clusterWide("ClusterRole "+o.Name, put(rbacAPI.ClusterRoles(), o, o.Name, remove), put(rbacAPI.ClusterRoles(), o, o.Name, true))
	case 5, 6:
		o := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: d.oneOf("b0", "b1", "b2", "b3", "b4", "b5")},
			Subjects: d.subjects(true), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: d.oneOf("r0", "r1", "r2", "r3")}}
		if d.r.IntN(2) == 0 {
			o.RoleRef.Kind, o.RoleRef.Name = "ClusterRole", d.oneOf(d.clusterRole(), d.clusterRole(), differentialPrefix+"sum", "view", "edit")
		}
		return "RoleBinding " + namespace + "/" + o.Name, put(rbacAPI.RoleBindings(namespace), o, o.Name, remove)
	default:
		o := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: differentialPrefix + d.oneOf("0", "1", "2", "3")},
			Subjects: d.subjects(false), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: d.oneOf(d.clusterRole(), differentialPrefix+"sum", "view")}}
		return "ClusterRoleBinding " + o.Name, d.clusterWide("ClusterRoleBinding "+o.Name, put(rbacAPI.ClusterRoleBindings(), o, o.Name, remove), put(rbacAPI.ClusterRoleBindings(), o, o.Name, true))
	}
}

func (d *differential) clusterRole() string {
	return differentialPrefix + d.oneOf("r0", "r1", "r2", "r3", "r4", "r5")
}

// clusterWide records how to remove an object that no namespace takes with it.
func (d *differential) clusterWide(name string, do, remove func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		d.mu.Lock()
		d.live[name] = remove
		d.mu.Unlock()
		return do(ctx)
	}
}

// crud is what client-go's clients of all these kinds can do.
type crud[T any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// put creates, replaces or removes an object. The role of a binding cannot be changed, so such a binding is made
// anew.
func put[T any](client crud[T], object T, name string, remove bool) func(context.Context) error {
	return func(ctx context.Context) error {
		if !remove {
			_, err := client.Update(ctx, object, metav1.UpdateOptions{})
			if err == nil || !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) {
				return err
			}
		}
		if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if remove {
			return nil
		}
		_, err := client.Create(ctx, object, metav1.CreateOptions{})
		return err
	}
}

func (d *differential) rules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for range d.r.IntN(3) {
		rule := rbacv1.PolicyRule{
			Verbs:     d.someOf(2, "get", "list", "watch", "create", "*"),
			APIGroups: d.someOf(2, "", "batch", "apps", "*"),
			Resources: d.someOf(3, "pods", "jobs", "secrets", "nodes", "namespaces", "pods/log", "*/log", "*/status", "jobs/status", "*", "*/*", "pods/*"),
		}
		if d.r.IntN(3) == 0 {
			rule.ResourceNames = d.someOf(2, "n0", "n1", "n2", "")
		}
		rules = append(rules, rule)
	}
	return rules
}

func (d *differential) subjects(namespaced bool) []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for range d.r.IntN(3) {
		switch d.r.IntN(3) {
		case 0:
			subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: d.user()})
		case 1:
			groups := []string{differentialPrefix + "red", differentialPrefix + "blue", "system:serviceaccounts:" + d.oneOf(d.namespaces...)}
			if namespaced { // otherwise users of other tests could see more than these tests expect
				groups = append(groups, "system:authenticated", "system:unauthenticated", "system:serviceaccounts")
			}
			subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: d.oneOf(groups...)})
		case 2:
			subjects = append(subjects, rbacv1.Subject{Kind: "ServiceAccount", Namespace: d.oneOf(d.namespaces...), Name: d.oneOf("default", "other")})
		}
	}
	return subjects
}

func (d *differential) user() string {
	return d.oneOf(differentialPrefix+"ann", differentialPrefix+"bob", "system:serviceaccount:"+d.oneOf(d.namespaces...)+":default")
}

func (d *differential) identity() auth.Identity {
	switch d.r.IntN(12) {
	case 0:
		return auth.Identity{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	case 1:
		return auth.Identity{Username: differentialPrefix + "ann", Groups: []string{"system:masters", "system:authenticated"}}
	}
	id := auth.Identity{Username: d.user(), Groups: []string{"system:authenticated"}}
	if parts := strings.Split(id.Username, ":"); len(parts) == 4 {
		id.Groups = append(id.Groups, "system:serviceaccounts", "system:serviceaccounts:"+parts[2])
		return id
	}
	return auth.Identity{Username: id.Username, Groups: append(id.Groups, d.someOf(2, differentialPrefix+"red", differentialPrefix+"blue", differentialPrefix+"none")...)}
}

type differentialQuestion struct {
	id  auth.Identity
	req auth.Request
}

func (d *differential) question() differentialQuestion {
	return differentialQuestion{d.identity(), auth.Request{
		Cluster: "default", Verb: d.oneOf("get", "list", "watch"), Group: d.oneOf("", "batch", "apps", "example.io"), Version: "v1",
		Resource: d.oneOf("pods", "jobs", "secrets", "nodes", "namespaces", "deployments"), Subresource: d.oneOf("", "", "", "log", "status"),
		Namespace: d.oneOf(append([]string{"", "kube-system", "absent"}, d.namespaces...)...), Name: d.oneOf("", "", "n0", "n1", "n3"),
	}}
}

// ask asks both. If they differ, it asks again until both have had enough time to see every change.
func (d *differential) ask(t *testing.T, round int, q differentialQuestion) (allowed bool) {
	t.Helper()
	ctx := context.Background()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		review, err := d.s.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: q.id.Username, Groups: q.id.Groups, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: q.req.Verb, Group: q.req.Group, Version: q.req.Version, Resource: q.req.Resource, Subresource: q.req.Subresource,
				Namespace: q.req.Namespace, Name: q.req.Name,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		decision, err := d.authorizer.Authorize(ctx, q.id, q.req)
		if err != nil {
			t.Fatal(err)
		}
		scope, err := d.authorizer.Scope(ctx, q.id, q.req)
		if err != nil {
			t.Fatal(err)
		}
		agrees := scope.Sees(q.req.Namespace, q.req.Name) || scope.SeesNamespace(q.req.Namespace)
		switch {
		case q.req.Verb == "get" && q.req.Name == "", // no such request is made
			q.req.Verb != "get" && q.req.Name != "" && agrees: // a user who may list the empty name sees every name
			agrees = decision.Allowed
		}
		if decision.Allowed == review.Status.Allowed && agrees == decision.Allowed {
			return decision.Allowed
		}
		d.again++
		if time.Now().After(deadline) {
			t.Errorf("round %d: %s of %q may %+v: rbac %t (%s), API server %t (%s), scope %+v", round, q.id.Username, q.id.Groups, q.req,
				decision.Allowed, decision.Reason, review.Status.Allowed, review.Status.Reason, scope)
			return false
		}
	}
}
