package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// caller is an authorizer of one caller, who may do any verb within a scope.
type caller struct {
	scope     auth.Scope
	discovers bool
}

func (c caller) Authorize(_ context.Context, _ auth.Identity, req auth.Request) (auth.Decision, error) {
	switch {
	case req.Path != "":
		return auth.Decision{Allowed: c.discovers}, nil
	case req.Name != "":
		return auth.Decision{Allowed: c.scope.Sees(req.Namespace, req.Name)}, nil
	}
	return auth.Decision{Allowed: c.scope.SeesNamespace(req.Namespace)}, nil
}

func (c caller) Scope(_ context.Context, _ auth.Identity, req auth.Request) (auth.Scope, error) {
	if req.Namespace != "" {
		return c.scope.In(req.Namespace), nil
	}
	return c.scope, nil
}

func (c caller) Changes(auth.Identity, func()) (stop func()) { return func() {} }

// served is an Access to one cluster, with some kinds.
type served struct {
	*testing.T
	api    *apitest.API
	kinds  *cache.Kinds
	access *Access
}

// as is the access of a caller.
func (s *served) as(c caller) *Access {
	s.access.opts.Authorizer = c
	return s.access
}

var ann = auth.Identity{Username: "ann"}

func kindsOf(t *testing.T, api *apitest.API, name string) *cache.Kinds {
	t.Helper()
	c, err := cluster.Connect(cluster.Options{Name: name, UserAgent: "test", Config: &rest.Config{Host: "http://api.test", Transport: api}})
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := cache.NewKinds(c, cache.Options{IdleAfter: time.Minute, Topic: stream.Options{Events: 8, Bytes: 1 << 20, Age: time.Hour}},
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

func inBubble(t *testing.T, test func(*served)) {
	synctest.Test(t, func(t *testing.T) {
		measured := cluster.Kind{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods", Kind: "PodMetrics", Namespaced: true, Measured: true}
		s := &served{T: t, api: apitest.New(append(slices.Clone(apitest.Usual), measured)...)}
		s.api.Put("pods", "a/1")
		s.kinds = kindsOf(t, s.api, "test")
		var err error
		if s.access, err = New(Options{Clusters: []*cache.Kinds{s.kinds}, Authorizer: caller{}, SyncTimeout: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = s.kinds.Run(ctx) })
		test(s)
		cancel()
		running.Wait()
		s.api.Close()
	})
}

var (
	everything = auth.Scope{All: true}
	nothing    = auth.Scope{}
	inA        = auth.Scope{Namespaces: []string{"a"}}
	oneInA     = auth.Scope{Names: map[string][]string{"a": {"x"}}}
	named      = auth.Scope{Names: map[string][]string{"": {"x"}}}
)

// TestACallerFindsWhatTheyMaySee, and May and See say the same of it.
func TestACallerFindsWhatTheyMaySee(t *testing.T) {
	const all = "all"
	inBubble(t, func(s *served) {
		for _, c := range []struct {
			target   visibility.Target
			scope    auth.Scope
			code     int    // 0: found
			see      string // all, or the summary of what is visible
			mayOther bool   // May sees it all the same, since the namespace does not count there
		}{
			{target: visibility.Target{Version: "v1", Resource: "pods"}, scope: everything, see: all},
			{target: visibility.Target{Version: "v1", Resource: "pods"}, scope: inA, see: "{false [a] map[]}"},
			{target: visibility.Target{Version: "v1", Resource: "pods"}, scope: oneInA, see: "{false [] map[a:[x]]}"},
			{target: visibility.Target{Version: "v1", Resource: "pods"}, scope: nothing, code: 403},
			{target: visibility.Target{Version: "v1", Resource: "pods", Namespace: "a"}, scope: inA, see: all},
			{target: visibility.Target{Version: "v1", Resource: "pods", Namespace: "b"}, scope: inA, code: 403},
			{target: visibility.Target{Version: "v1", Resource: "pods", Namespace: "a"}, scope: oneInA, see: "{false [] map[a:[x]]}"},
			{target: visibility.Target{Version: "v1", Resource: "pods", Namespace: "a", Name: "x"}, scope: oneInA, see: all},
			{target: visibility.Target{Version: "v1", Resource: "pods", Namespace: "a", Name: "y"}, scope: oneInA, code: 403},
			{target: visibility.Target{Version: "v1", Resource: "nodes"}, scope: everything, see: all},
			{target: visibility.Target{Version: "v1", Resource: "nodes"}, scope: inA, code: 403},
			{target: visibility.Target{Version: "v1", Resource: "nodes"}, scope: named, see: "{false [] map[:[x]]}"},
			{target: visibility.Target{Version: "v1", Resource: "nodes", Name: "x"}, scope: named, see: all},
			{target: visibility.Target{Version: "v1", Resource: "nodes", Namespace: "a"}, scope: everything, code: 404, mayOther: true},
			{target: visibility.Target{Version: "v1", Resource: "namespaces"}, scope: inA, see: "{false [a] map[]}"},
			{target: visibility.Target{Version: "v1", Resource: "namespaces", Name: "a"}, scope: inA, see: all},
			{target: visibility.Target{Version: "v1", Resource: "namespaces", Name: "b"}, scope: inA, code: 403},
			{target: visibility.Target{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}, scope: inA, see: "{false [a] map[]}"},
		} {
			a := s.as(caller{c.scope, true})
			name := fmt.Sprintf("%+v for %+v", c.target, c.scope)
			g, kind, err := a.Find(s.Context(), ann, c.target, "list")
			if code := codeOf(err); code != c.code {
				s.Errorf("%s: %v", name, err)
			}
			if !kind.Measured {
				opened, err := a.Open(s.Context(), ann, c.target, "list")
				if code := codeOf(err); code != c.code || (opened.Store == nil) != (code != 0) || !opened.Visible.Same(g.Visible) {
					s.Errorf("%s: opened as %+v: %v", name, opened, err)
				}
				if opened.Store != nil {
					opened.Release()
				}
			}
			ok, whole, err := a.May(s.Context(), s.kinds, ann, c.target, "list")
			if err != nil || !c.mayOther && (ok != (c.code == 0) || whole != (c.see == all)) || c.mayOther && !whole {
				s.Errorf("%s: May says %t %t: %v", name, ok, whole, err)
			}
			if preferred := c.target; preferred.Group == "" {
				preferred.Version = ""
				if again, too, err := a.May(s.Context(), s.kinds, ann, preferred, "list"); again != ok || too != whole || err != nil {
					s.Errorf("%s: of no version, May says %t %t: %v", name, again, too, err)
				}
			}
			if c.code != 0 {
				continue
			}
			seen := all
			if g.Visible != nil {
				seen = fmt.Sprint(g.Visible.Summary())
			}
			if seen != c.see || g.Kinds != s.kinds || kind.Resource != c.target.Resource || kind.Group != c.target.Group {
				s.Errorf("%s: %s of %s", name, seen, kind)
			}
			if visible, ok, err := a.See(s.Context(), s.kinds, ann, c.target, kind, "list"); !ok || err != nil || !visible.Same(g.Visible) {
				s.Errorf("%s: See says %t: %v", name, ok, err)
			}
		}
	})
}

func codeOf(err error) int {
	if err == nil {
		return 0
	}
	return reply.To(err).Code
}

// TestWhoMaySeeNothingDoesNotLearnWhetherAKindExists, be it by the answer or by what the cluster is asked.
func TestWhoMaySeeNothingDoesNotLearnWhetherAKindExists(t *testing.T) {
	inBubble(t, func(s *served) {
		pods, madeUp := visibility.Target{Version: "v1", Resource: "pods"}, visibility.Target{Version: "v1", Resource: "ghosts"}
		a := s.as(caller{})
		for _, target := range []visibility.Target{pods, madeUp} {
			if _, _, err := a.Find(s.Context(), ann, target, "list"); codeOf(err) != http.StatusForbidden {
				s.Errorf("%s: %v", target.Resource, err)
			}
			if ok, whole, err := a.May(s.Context(), s.kinds, ann, target, "list"); ok || whole || err != nil {
				s.Errorf("%s: %t %t %v", target.Resource, ok, whole, err)
			}
		}
		if asked := s.api.Served("discovery"); asked != 0 {
			s.Errorf("discovery was asked %d times", asked)
		}
		for _, c := range []caller{{everything, true}, {everything, false}, {inA, false}, {inA, true}} {
			a := s.as(c)
			if ok, whole, err := a.May(s.Context(), s.kinds, ann, madeUp, "list"); ok || whole || err != nil {
				s.Errorf("%+v: of a kind that is made up, May says %t %t: %v", c, ok, whole, err)
			}
			_, _, err := a.Find(s.Context(), ann, madeUp, "list")
			if want := map[bool]int{true: http.StatusForbidden, false: http.StatusNotFound}[!c.scope.All && c.discovers]; codeOf(err) != want {
				s.Errorf("%+v: of a kind that is made up, Find says %v", c, err)
			}
		}
	})
}

// TestAKindThatCannotBeReadIsGivenBack: else whoever asks for such kinds would keep their watches for ever.
func TestAKindThatCannotBeReadIsGivenBack(t *testing.T) {
	inBubble(t, func(s *served) {
		a, pods := s.as(caller{everything, true}), visibility.Target{Version: "v1", Resource: "pods"}
		s.api.Hang("pods")
		began := time.Now()
		if g, err := a.OpenSynced(s.Context(), ann, pods, "list"); err == nil || g.Store != nil || time.Since(began) != 10*time.Second {
			s.Errorf("after %s: %v", time.Since(began), err)
		}
		time.Sleep(2 * time.Minute)
		if kept := s.kinds.All(); len(kept) != 0 {
			s.Errorf("%d kinds are kept", len(kept))
		}
		s.api.Fail("pods", 0)
		g, err := a.OpenSynced(s.Context(), ann, pods, "list")
		if err != nil || !g.Store.Upstream().Synced || g.Store.Kind().Resource != "pods" || g.Kinds != s.kinds || g.Visible != nil {
			s.Fatalf("%+v: %v", g, err)
		}
		again, err := a.OpenSynced(s.Context(), ann, pods, "list")
		if err != nil || again.Store != g.Store {
			s.Fatalf("%+v: %v", again, err)
		}
		again.Release()
		time.Sleep(2 * time.Minute)
		if kept := s.kinds.All(); len(kept) != 1 {
			s.Errorf("%d kinds are kept while one is used", len(kept))
		}
		g.Release()
	})
}

// TestWhatIsMeasuredHasNoWatch, and what is watched is not measured.
func TestWhatIsMeasuredHasNoWatch(t *testing.T) {
	inBubble(t, func(s *served) {
		a := s.as(caller{inA, true})
		measured, pods := visibility.Target{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}, visibility.Target{Version: "v1", Resource: "pods"}
		g, kind, err := a.FindMeasured(s.Context(), ann, measured, "list")
		if err != nil || !kind.Measured || g.Kinds != s.kinds || g.Visible == nil {
			s.Errorf("%+v: %v", kind, err)
		}
		if _, _, err := a.FindMeasured(s.Context(), ann, pods, "list"); !errors.Is(err, cache.ErrNotWatchable) {
			s.Errorf("pods are measured: %v", err)
		}
		if _, _, err := s.as(caller{nothing, true}).FindMeasured(s.Context(), ann, measured, "list"); codeOf(err) != http.StatusForbidden {
			s.Errorf("measured for somebody who may not see it: %v", err)
		}
		if _, err := s.as(caller{everything, true}).Open(s.Context(), ann, measured, "watch"); codeOf(err) != http.StatusMethodNotAllowed {
			s.Errorf("a watch of what is measured: %v", err)
		}
		for verb, want := range map[string]bool{"list": true, "watch": false} {
			if ok, _, err := a.May(s.Context(), s.kinds, ann, measured, verb); ok != want || err != nil {
				s.Errorf("%s of what is measured: %t %v", verb, ok, err)
			}
		}
		if ok, _, err := a.May(s.Context(), s.kinds, ann, visibility.Target{Version: "v1", Resource: "bindings"}, "list"); ok || err != nil {
			s.Errorf("what can be neither listed nor watched: %t %v", ok, err)
		}
	})
}

// TestScopesOfKindsAreWhatCanBeSeen: a role in a namespace shows nothing of what is in none, and
// nobody anything of what is made up.
func TestScopesOfKindsAreWhatCanBeSeen(t *testing.T) {
	inBubble(t, func(s *served) {
		for _, c := range []struct {
			resource string
			caller   caller
			want     auth.Scope
		}{
			{"pods", caller{everything, true}, everything},
			{"pods", caller{inA, true}, inA},
			{"pods", caller{nothing, true}, nothing},
			{"nodes", caller{inA, true}, nothing},
			{"nodes", caller{named, true}, named},
			{"namespaces", caller{inA, true}, inA},
			{"ghosts", caller{everything, true}, nothing},
			{"ghosts", caller{inA, false}, inA}, // to refuse it would tell that there is no such kind
		} {
			scope, err := s.as(c.caller).Scope(s.Context(), ann, s.kinds, "", c.resource, "list")
			if fmt.Sprint(scope) != fmt.Sprint(c.want) || err != nil {
				s.Errorf("%s for %+v: %+v, %v", c.resource, c.caller, scope, err)
			}
		}
	})
}

// TestClustersAreReplacedAsAWhole, and never by none.
func TestClustersAreReplacedAsAWhole(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("an Access without clusters")
	}
	api := apitest.New()
	defer api.Close()
	east, west, north := kindsOf(t, api, "east"), kindsOf(t, api, "west"), kindsOf(t, api, "north")
	a, err := New(Options{Clusters: []*cache.Kinds{east, west}})
	if err != nil {
		t.Fatal(err)
	}
	check := func(all ...*cache.Kinds) {
		t.Helper()
		if !slices.Equal(a.All(), all) {
			t.Errorf("%d clusters", len(a.All()))
		}
		for _, kinds := range []*cache.Kinds{east, west, north} {
			found, err := a.Cluster(kinds.Cluster().Name())
			if is := slices.Contains(all, kinds); is && found != kinds || !is && (found != nil || codeOf(err) != http.StatusNotFound) {
				t.Errorf("%s: %v", kinds.Cluster().Name(), err)
			}
		}
		if first, err := a.Cluster(""); err != nil || first != all[0] {
			t.Errorf("the default one: %v", err)
		}
	}
	check(east, west)
	if err := a.SetClusters(nil); err == nil {
		t.Error("no cluster is served")
	}
	check(east, west)
	if err := a.SetClusters([]*cache.Kinds{north, east}); err != nil {
		t.Fatal(err)
	}
	check(north, east)
}

// TestWhatIsLoggedOfAPartIsAllOfIt: who may see what is found out from the audit log, too.
func TestWhatIsLoggedOfAPartIsAllOfIt(t *testing.T) {
	pods := cluster.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	target := visibility.Target{Cluster: "c", Group: "g", Version: "v", Resource: "r", Namespace: "a", Name: "n", Subresource: "log"}
	want := auditrecord.Read{Cluster: "c", Group: "g", Version: "v", Resource: "r", Namespace: "a", Name: "n", Subresource: "log", Verb: "list"}
	if got := ReadVisible(visibility.VisibleTarget{Target: target}, "list"); got != want {
		t.Errorf("%+v", got)
	}
	some, _ := visibility.Of(oneInA, visibility.Target{}, pods)
	want.Partly = true
	if got := ReadVisible(visibility.VisibleTarget{Target: target, Visible: some}, "list"); got != want {
		t.Errorf("%+v", got)
	}
}
