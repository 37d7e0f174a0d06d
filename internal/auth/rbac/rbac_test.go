package rbac

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/authtest"
)

// world is an API server with an Authorizer that follows it.
type world struct {
	t   *testing.T
	api *apitest.API
	*Authorizer
	log *bytes.Buffer
}

// in runs a test in a synctest bubble, with an API server and an Authorizer that has read it.
func in(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, api: apitest.New(apitest.Roles...), log: &bytes.Buffer{}}
		w.start()
		synctest.Wait()
		test(w)
	})
}

func (w *world) start() {
	w.Authorizer = New(slog.New(slog.NewTextHandler(&lockedWriter{w: w.log}, nil)))
	authtest.Run(w.t, w.Add(w.api.Connect(w.t)))
}

type lockedWriter struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (w *world) role(name string, rules ...rbacv1.PolicyRule) {
	w.api.Put("clusterroles", name, apitest.Set("rules", rules))
	synctest.Wait()
}

func (w *world) bind(namespace, name, role string, subjects ...rbacv1.Subject) {
	resource, key := "rolebindings", namespace+"/"+name
	if namespace == "" {
		resource, key = "clusterrolebindings", name
	}
	roleRef := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	w.api.Put(resource, key, apitest.Set("roleRef", roleRef), apitest.Set("subjects", subjects))
	synctest.Wait()
}

func (w *world) unbind(namespace, name string) {
	w.api.Delete("rolebindings", namespace+"/"+name)
	synctest.Wait()
}

func user(name string) rbacv1.Subject  { return rbacv1.Subject{Kind: "User", Name: name} }
func group(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "Group", Name: name} }

func readPods(names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: names}
}

var (
	jane  = auth.Identity{Username: "jane", Groups: []string{"team-a", "system:authenticated"}}
	joe   = auth.Identity{Username: "joe", Groups: []string{"team-b", "system:authenticated"}}
	watch = auth.Request{Cluster: "test", Verb: "watch", Version: "v1", Resource: "pods", Namespace: "a"}

	watchAll = auth.Request{Cluster: "test", Verb: "watch", Version: "v1", Resource: "pods"}
)

func (w *world) must(id auth.Identity, allowed bool) {
	w.t.Helper()
	if d, err := w.Authorize(w.t.Context(), id, watch); err != nil || d.Allowed != allowed {
		w.t.Errorf("%s: %+v, %v", id.Username, d, err)
	}
}

func (w *world) mustNot(says string) {
	w.t.Helper()
	d, err := w.Authorize(w.t.Context(), jane, watch)
	if d.Allowed || !errors.Is(err, auth.ErrUndecided) || !strings.Contains(err.Error(), says) {
		w.t.Errorf("%+v, %v", d, err)
	}
	s, err := w.Scope(w.t.Context(), jane, watch)
	if !s.Empty() || !errors.Is(err, auth.ErrUndecided) {
		w.t.Errorf("%+v, %v", s, err)
	}
	if err := w.Ready("test"); err == nil || !strings.Contains(err.Error(), says) {
		w.t.Errorf("ready: %v", err)
	}
}

func TestBindingTakesEffectAtOnceAndSoDoesItsEnd(t *testing.T) {
	in(t, func(w *world) {
		w.must(jane, false)
		w.bind("a", "b", "reader", group("team-a"))
		w.must(jane, false) // the role does not exist
		w.role("reader", readPods())
		w.must(jane, true)
		w.must(joe, false)
		w.bind("a", "b", "reader", user("joe"))
		w.must(jane, false)
		w.must(joe, true)
		w.role("reader")
		w.must(joe, false)
		w.role("reader", readPods())
		w.must(joe, true)
		w.unbind("a", "b")
		w.must(joe, false)
	})
}

func TestQuestionsCostNoRequests(t *testing.T) {
	in(t, func(w *world) {
		w.role("reader", readPods())
		w.bind("a", "b", "reader", group("team-a"))
		w.api.Requests() // forget those until now
		for range 100 {
			w.must(jane, true)
			w.must(joe, false)
			if _, err := w.Scope(t.Context(), jane, watch); err != nil {
				t.Error(err)
			}
		}
		if requests := w.api.Requests(); len(requests) != 0 {
			t.Errorf("%q", requests)
		}
	})
}

func TestScopeNamesNamespacesAndObjects(t *testing.T) {
	in(t, func(w *world) {
		w.role("reader", readPods())
		w.role("named", readPods("x", "y"))
		w.bind("b", "1", "reader", user("jane"))
		w.bind("a", "1", "reader", group("team-a"))
		w.bind("a", "2", "named", user("jane"))
		w.bind("c", "1", "named", user("jane"))
		w.bind("", "1", "named", user("joe"))
		check := func(id auth.Identity, want auth.Scope) {
			t.Helper()
			if got, err := w.Scope(t.Context(), id, watchAll); err != nil || !got.Equal(want) {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		}
		check(jane, auth.Scope{Namespaces: []string{"a", "b"}, Names: map[string][]string{"c": {"x", "y"}}})
		check(joe, auth.Scope{Names: map[string][]string{"": {"x", "y"}}})
		for namespace, want := range map[string]auth.Scope{
			"a": {Namespaces: []string{"a"}}, "c": {Names: map[string][]string{"c": {"x", "y"}}}, "d": {},
		} {
			there := watch
			there.Namespace = namespace
			if got, err := w.Scope(t.Context(), jane, there); err != nil || !got.Equal(want) {
				t.Errorf("in %s: %+v, %v; want %+v", namespace, got, err, want)
			}
		}
		check(auth.Identity{Username: "admin", Groups: []string{"system:masters"}}, auth.Scope{All: true})
		w.bind("", "2", "reader", group("team-a"))
		check(jane, auth.Scope{All: true})
		check(auth.Identity{Username: "nobody"}, auth.Scope{})
	})
}

func TestMastersMayDoEverything(t *testing.T) {
	in(t, func(w *world) {
		w.must(auth.Identity{Username: "admin", Groups: []string{"system:masters"}}, true)
		w.must(auth.Identity{Username: "system:masters"}, false)
	})
}

// A change wakes the listeners whom it concerns, and no others.
func TestChangesWakeThoseWhomTheyConcern(t *testing.T) {
	in(t, func(w *world) {
		toJane, toJoe := make(chan struct{}, 8), make(chan struct{}, 8)
		stopJane := w.Changes(jane, func() { toJane <- struct{}{} })
		stopJoe := w.Changes(joe, func() { toJoe <- struct{}{} })
		defer stopJoe()
		expect := func(what string, jane, joe bool) {
			t.Helper()
			for name, c := range map[string]struct {
				c    chan struct{}
				want bool
			}{"jane": {toJane, jane}, "joe": {toJoe, joe}} {
				select {
				case <-c.c:
					if !c.want {
						t.Errorf("%s: %s was told", what, name)
					}
				default:
					if c.want {
						t.Errorf("%s: %s was not told", what, name)
					}
				}
			}
		}
		w.role("reader", readPods())
		expect("a role that nobody has", false, false)
		w.bind("a", "b", "reader", group("team-a"))
		expect("a binding of jane's group", true, false)
		w.bind("a", "b", "reader", user("joe"))
		expect("given to another", true, true)
		w.role("reader", readPods("x"))
		expect("a role that joe has", false, true)
		w.bind("a", "c", "absent", group("system:authenticated"))
		w.bind("a", "d", "absent", group("system:authenticated"))
		expect("once for all", true, true)
		expect("and for each", true, true)
		expect("and not more", false, false)
		w.api.Delete("clusterroles", "reader")
		synctest.Wait()
		expect("a role that is gone", false, true)
		own := func(what, namespace string, joe bool, rules ...rbacv1.PolicyRule) {
			t.Helper()
			w.api.Put("roles", namespace+"/own", apitest.Set("rules", rules))
			synctest.Wait()
			expect(what, false, joe)
		}
		own("a namespace's role that nobody has", "a", false)
		w.api.Put("rolebindings", "a/own", apitest.Set("roleRef", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "own"}), apitest.Set("subjects", []rbacv1.Subject{user("joe")}))
		synctest.Wait()
		expect("a binding of a namespace's role", false, true)
		own("a namespace's role that joe has", "a", true, readPods("x"))
		own("another namespace's role of that name", "b", false, readPods("x"))
		w.api.Delete("roles", "a/own")
		synctest.Wait()
		expect("a namespace's role that is gone", false, true)
		w.api.ExpireWatches()
		time.Sleep(time.Minute) // until everything is listed anew
		w.must(joe, false)
		expect("the same as before", false, false)
		stopJane()
		stopJane()
		w.bind("a", "e", "reader", user("jane"))
		expect("after the end", false, false)
		if n := len(w.audience.users) + len(w.audience.groups); n != 3 {
			t.Errorf("%d names are listened for, not joe's", n)
		}
	})
}

func TestNothingIsAllowedBeforeAllIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, api: apitest.New(apitest.Roles...), log: &bytes.Buffer{}}
		w.api.Put("clusterroles", "reader", apitest.Set("rules", []rbacv1.PolicyRule{readPods()}))
		w.api.Put("clusterrolebindings", "b", apitest.Set("roleRef", rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"}), apitest.Set("subjects", []rbacv1.Subject{user("jane")}))
		var refuse atomic.Bool // the list of one kind of the four
		refuse.Store(true)
		w.api.Intercept(func(r *http.Request) *apitest.Fault {
			if refuse.Load() && strings.HasSuffix(r.URL.Path, "/rolebindings") {
				return apitest.Refuse(http.StatusForbidden)
			}
			return nil
		})
		w.Authorizer = New(slog.New(slog.DiscardHandler))
		w.Add(w.api.Connect(t)) // it does not run
		w.mustNot("not all read yet")
		w.start()
		time.Sleep(10 * time.Second)
		w.mustNot("does not let the gateway get, list and watch rolebindings")
		if log := w.log.String(); strings.Count(log, "watch is lost") != 1 || !strings.Contains(log, "kind=rolebindings") {
			t.Errorf("log: %s", log)
		}
		refuse.Store(false)
		time.Sleep(2 * time.Minute)
		w.must(jane, true)
		if err := w.Ready("test"); err != nil {
			t.Error(err)
		}
	})
}

// A gateway that has just started answers as soon as it can, rather than sending its clients away.
func TestQuestionBeforeTheFirstListWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, api: apitest.New(apitest.Roles...), log: &bytes.Buffer{}}
		w.api.Put("clusterroles", "reader", apitest.Set("rules", []rbacv1.PolicyRule{readPods()}))
		w.bind("a", "b", "reader", user("jane"))
		w.api.Intercept(func(*http.Request) *apitest.Fault {
			time.Sleep(time.Second / 2)
			return nil
		})
		w.start()
		began := time.Now()
		w.must(jane, true)
		if d := time.Since(began); d > time.Second { // two requests: the list, and a watch that shows its end
			t.Errorf("after %v", d)
		}
	})
	in(t, func(w *world) {
		gone, cancel := context.WithCancel(w.t.Context())
		cancel()
		w.Authorizer = New(slog.New(slog.DiscardHandler))
		w.Add(w.api.Connect(t)) // it does not run
		if d, err := w.Authorize(gone, jane, watch); d.Allowed || !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// Clusters come and go. One that replaces another of the same name has its own permissions.
func TestClustersAreAddedAndRemoved(t *testing.T) {
	in(t, func(w *world) {
		w.role("reader", readPods())
		w.bind("a", "b", "reader", user("jane"))
		w.must(jane, true)
		other := apitest.New(apitest.Roles...)
		follow := w.Add(other.Connect(w.t)) // of the same name
		ctx, cancel := context.WithCancel(w.t.Context())
		ended := make(chan error)
		go func() { ended <- follow(ctx) }()
		synctest.Wait()
		w.must(jane, false)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w.mustNot("there is no cluster")
	})
}

// While the API server is away, its permissions count. When it answers that the gateway may no longer read them, they
// do not count for long.
func TestPermissionsThatCannotBeReadAnyMoreDoNotCountForLong(t *testing.T) {
	in(t, func(w *world) {
		w.role("reader", readPods())
		w.bind("a", "b", "reader", user("jane"))
		w.api.Away(true)
		w.api.CutWatches()
		time.Sleep(time.Hour)
		w.must(jane, true)
		w.api.Away(false)
		var refuse atomic.Bool
		refuse.Store(true)
		w.api.Intercept(func(r *http.Request) *apitest.Fault {
			if refuse.Load() && strings.HasSuffix(r.URL.Path, "/clusterrolebindings") {
				return apitest.Refuse(http.StatusForbidden)
			}
			return nil
		})
		time.Sleep(30 * time.Second)
		w.must(jane, true)
		time.Sleep(2 * time.Minute)
		w.mustNot("does not let the gateway get, list and watch clusterrolebindings")
		refuse.Store(false)
		time.Sleep(2 * time.Minute)
		w.must(jane, true)
	})
}

// A restored etcd uses versions a second time. A binding that was made after the backup must not count for ever.
func TestBindingFromBeforeARestoreDoesNotCount(t *testing.T) {
	in(t, func(w *world) {
		w.role("reader", readPods())
		backup := w.api.Version()
		w.bind("a", "b", "reader", user("jane"))
		w.must(jane, true)
		w.api.Away(true)
		w.api.Restore(backup)
		w.bind("a", "z", "reader", user("joe"))
		w.api.Skip(100)
		w.api.Away(false)
		time.Sleep(2 * time.Minute)
		w.must(jane, false)
		w.must(joe, true)
	})
}

func TestObjectThatCannotBeReadGivesNothing(t *testing.T) {
	in(t, func(w *world) {
		w.role("reader", readPods())
		w.bind("a", "b", "reader", user("jane"))
		w.must(jane, true)
		w.api.Put("clusterroles", "reader", "rules=all of them")
		synctest.Wait()
		w.must(jane, false)
		if !strings.Contains(w.log.String(), "counts as absent") {
			t.Error(w.log)
		}
	})
}

func TestQuestionsThatCannotBeAnsweredAreErrors(t *testing.T) {
	in(t, func(w *world) {
		elsewhere := watch
		elsewhere.Cluster = "elsewhere"
		if d, err := w.Authorize(t.Context(), jane, elsewhere); d.Allowed || !errors.Is(err, auth.ErrUndecided) {
			t.Errorf("%+v, %v", d, err)
		}
		if d, err := w.Authorize(t.Context(), auth.Identity{Groups: []string{"system:masters"}}, watch); d.Allowed || !errors.Is(err, auth.ErrUndecided) {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// The names of roles may have almost any character.
func TestNamesOfRolesAreKeptAsTheyAre(t *testing.T) {
	in(t, func(w *world) {
		for i, name := range []string{`a"b\c`, "sys:tem é", "line\nbreak", "<&>\u2028"} {
			w.role(name, readPods())
			w.bind("a", fmt.Sprint(i), name, user("jane"))
			w.must(jane, true)
			w.unbind("a", fmt.Sprint(i))
			w.must(jane, false)
		}
	})
}

// busyIndex has 10,000 bindings, five for each of 2,000 namespaces. Four are in the namespace: for a team, two users,
// a service account and the group platform. One is for the whole cluster: for an operator, and for a group that gets
// many roles in this way.
func busyIndex() *index {
	x := newIndex()
	for i := range 40 {
		var rules []rbacv1.PolicyRule
		for n := range 25 {
			rules = append(rules, rbacv1.PolicyRule{
				Verbs: []string{"get", "list", "watch"}, APIGroups: []string{fmt.Sprintf("group%d.io", n)},
				Resources: []string{fmt.Sprintf("kind%ds", n), fmt.Sprintf("others%d", i)},
			})
		}
		x.putRole(key{"", fmt.Sprintf("role%d", i)}, "1", append(rules, readPods()))
	}
	clusterRole := func(i int) rbacv1.RoleRef {
		return rbacv1.RoleRef{Kind: "ClusterRole", Name: fmt.Sprintf("role%d", i%40)}
	}
	for i := range 2000 {
		ns := fmt.Sprintf("ns%d", i)
		x.putBinding(bindingKey{ns, "team"}, "1", clusterRole(i), []rbacv1.Subject{group("team-" + ns)})
		x.putBinding(bindingKey{ns, "users"}, "1", clusterRole(i+1), []rbacv1.Subject{user("u" + ns), user("v" + ns)})
		x.putBinding(bindingKey{ns, "sa"}, "1", clusterRole(i+2), []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default"}})
		x.putBinding(bindingKey{ns, "all"}, "1", clusterRole(i+3), []rbacv1.Subject{group("platform")})
		x.putBinding(bindingKey{"", "p" + ns}, "1", clusterRole(i), []rbacv1.Subject{user(fmt.Sprintf("operator%d", i%500)), group("many-roles")})
	}
	return x
}

// busyAuthorizer returns an Authorizer that has read an API server, and decides by a busyIndex.
func busyAuthorizer(b *testing.B) *Authorizer {
	b.Helper()
	api := apitest.New(apitest.Roles...)
	a := New(slog.New(slog.DiscardHandler))
	follow := a.Add(api.Connect(b))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = follow(ctx) })
	b.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for a.Ready("test") != nil {
		time.Sleep(time.Millisecond)
	}
	a.clusters["test"].index = busyIndex()
	return a
}

// BenchmarkAuthorize asks an index of 10,000 bindings. The answer is no, so everything that the user has is looked
// at.
func BenchmarkAuthorize(b *testing.B) {
	a := busyAuthorizer(b)
	groups := []string{"team-ns1", "team-ns2", "team-ns3", "team-ns4", "a", "b", "c", "d", "e", "system:authenticated"}
	for name, id := range map[string]auth.Identity{
		"10 groups":                  {Username: "uns1", Groups: groups},
		"a group with 40 roles":      {Username: "uns1", Groups: append(groups, "many-roles")},
		"a group in 2000 namespaces": {Username: "uns1", Groups: append(groups, "platform")},
	} {
		b.Run(name, func(b *testing.B) {
			req := auth.Request{Cluster: "test", Verb: "watch", Group: "batch", Version: "v1", Resource: "jobs", Namespace: "ns1"}
			b.ReportAllocs()
			for b.Loop() {
				if d, err := a.Authorize(b.Context(), id, req); err != nil || d.Allowed {
					b.Fatal(d, err)
				}
			}
		})
	}
}

// BenchmarkScope asks for the namespaces of a group that has permissions in 2,000.
func BenchmarkScope(b *testing.B) {
	a := busyAuthorizer(b)
	for name, group := range map[string]string{"1 namespace": "team-ns1", "2000 namespaces": "platform"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := a.Scope(b.Context(), auth.Identity{Username: "u", Groups: []string{group}}, auth.Request{Cluster: "test", Verb: "list", Resource: "pods"})
				if err != nil || len(s.Namespaces) == 0 {
					b.Fatal(s, err)
				}
			}
		})
	}
}

// BenchmarkChangeTold changes one binding among 10,000, while 1,000 streams of 200 users listen; it concerns five of
// them.
func BenchmarkChangeTold(b *testing.B) {
	x, a := busyIndex(), newAudience()
	for i := range 1000 {
		leave := a.join(auth.Identity{Username: fmt.Sprintf("user%d", i%200), Groups: []string{fmt.Sprintf("team-ns%d", i%200), "system:authenticated"}}, func() {})
		defer leave()
	}
	version := 0
	b.ReportAllocs()
	for b.Loop() {
		version++
		a.notify(x.putBinding(bindingKey{"ns1", "team"}, fmt.Sprint(version), rbacv1.RoleRef{Kind: "ClusterRole", Name: "role1"}, []rbacv1.Subject{group("team-ns1")}))
	}
}

// BenchmarkChange changes one binding among 10,000.
func BenchmarkChange(b *testing.B) {
	x := busyIndex()
	version := 0
	b.ReportAllocs()
	for b.Loop() {
		version++
		x.putBinding(bindingKey{"ns1", "team"}, fmt.Sprint(version), rbacv1.RoleRef{Kind: "ClusterRole", Name: "role1"}, []rbacv1.Subject{group("team-ns1")})
	}
}
