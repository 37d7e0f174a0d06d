package access

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// stored returns a store of a kind that runs until the test ends, with its kinds.
func stored(t *testing.T, url string, kind cluster.Kind) (*cache.Kinds, *cache.Store) {
	t.Helper()
	c, err := cluster.Connect(cluster.Options{Name: "default", Kubeconfig: apitest.Kubeconfig(t, url)})
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := cache.NewKinds(c, cache.Options{Topic: stream.Options{Events: 100, Bytes: 1 << 20}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		_ = kinds.Run(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	store, release, err := kinds.Use(kind, "alice")
	if err == nil {
		t.Cleanup(release)
		err = store.WaitSynced(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return kinds, store
}

// What a caller may be told of the past depends on where they may see it, and on whether the
// namespace that it was in is the one that lives.
func TestThePastIsOfTheNamespaceThatLives(t *testing.T) {
	api, url := apitest.Start(t)
	at := func(second int) string {
		return fmt.Sprintf("metadata.creationTimestamp=2001-01-01T00:00:%02dZ", second)
	}
	api.Put("namespaces", "blue", at(30))
	for i := range 40 { // more than are asked for one by one
		api.Put("namespaces", fmt.Sprintf("n%02d", i), at(30))
	}
	api.Put("pods", "blue/there", at(10), "metadata.uid=there")
	api.Put("pods", "blue/bare", at(10), "metadata.uid=")
	kinds, store := stored(t, url, apitest.Pods)
	a := &Access{opts: Options{Authorizer: roles{"watch": {Namespaces: []string{"blue"}}}}}
	all := &Access{opts: Options{Authorizer: roles{"watch": {All: true}}}}
	pod := func(namespace, name string, fields ...string) *cluster.Object {
		o, err := cluster.NewObject(apitest.JSON(apitest.Pods, namespace+"/"+name, append(fields, "metadata.resourceVersion=7")...))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	home := func(uid string) *cluster.Object {
		o, err := cluster.NewObject(apitest.JSON(cluster.Kind{Version: "v1", Resource: "namespaces", Kind: "Namespace"}, "blue", at(30), "metadata.resourceVersion=7", "metadata.uid="+uid))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	pods, namespaces := visibility.Target{Version: "v1", Resource: "pods"}, visibility.Target{Version: "v1", Resource: "namespaces"}
	see := func(t visibility.Target, scope auth.Scope) visibility.VisibleTarget {
		kind := apitest.Pods
		if t.Resource == "namespaces" {
			kind = cluster.Kind{Version: "v1", Resource: "namespaces", Kind: "Namespace"}
		}
		v, _ := visibility.Of(scope, t, kind)
		return visibility.VisibleTarget{Target: t, Visible: v}
	}
	blue := auth.Scope{Namespaces: []string{"blue"}}
	inBlue := visibility.Target{Version: "v1", Resource: "pods", Namespace: "blue"}
	itself := visibility.Target{Version: "v1", Resource: "namespaces", Name: "blue"}
	var many []*cluster.Object
	for i := range 40 {
		many = append(many, pod(fmt.Sprintf("n%02d", i), "x", at(31)))
	}
	everywhere := auth.Scope{}
	for i := range 40 {
		everywhere.Namespaces = append(everywhere.Namespaces, fmt.Sprintf("n%02d", i))
	}
	for name, c := range map[string]struct {
		access  *Access
		part    visibility.VisibleTarget
		objects []*cluster.Object
		want    bool
	}{
		"nothing":                               {a, see(pods, blue), nil, true},
		"younger":                               {a, see(pods, blue), []*cluster.Object{pod("blue", "x", at(31))}, true},
		"of the same second":                    {a, see(pods, blue), []*cluster.Object{pod("blue", "x", at(30))}, true},
		"older":                                 {a, see(pods, blue), []*cluster.Object{pod("blue", "x", at(29))}, false},
		"of no time":                            {a, see(pods, blue), []*cluster.Object{pod("blue", "x", "metadata.creationTimestamp=")}, false},
		"older among younger ones":              {a, see(pods, blue), []*cluster.Object{pod("blue", "x", at(31)), pod("blue", "y", at(29))}, false},
		"older, and there":                      {a, see(pods, blue), []*cluster.Object{pod("blue", "there", at(10), "metadata.uid=there")}, true},
		"older, of a name that is there":        {a, see(pods, blue), []*cluster.Object{pod("blue", "there", at(10), "metadata.uid=other")}, false},
		"older, without a uid":                  {a, see(pods, blue), []*cluster.Object{pod("blue", "bare", at(10), "metadata.uid=")}, false},
		"in a namespace that is gone":           {a, see(pods, auth.Scope{Namespaces: []string{"gone"}}), []*cluster.Object{pod("gone", "x", at(31))}, false},
		"older, in all of the target":           {a, see(inBlue, blue), []*cluster.Object{pod("blue", "x", at(29))}, false},
		"older, who may see all":                {all, see(inBlue, blue), []*cluster.Object{pod("blue", "x", at(29))}, true},
		"older, who asks for all":               {a, see(pods, auth.Scope{All: true}), []*cluster.Object{pod("blue", "x", at(29))}, true},
		"older, by its name":                    {a, see(pods, auth.Scope{Names: map[string][]string{"blue": {"x"}}}), []*cluster.Object{pod("blue", "x", at(29))}, false},
		"older, by its name everywhere":         {a, see(pods, auth.Scope{Names: map[string][]string{"": {"x"}}}), []*cluster.Object{pod("blue", "x", at(29))}, true},
		"of many namespaces":                    {a, see(pods, everywhere), many, true},
		"of many, one of them older":            {a, see(pods, everywhere), append(slices.Clone(many), pod("n07", "y", at(29))), false},
		"the namespace":                         {a, see(namespaces, blue), []*cluster.Object{home(api.UID("namespaces", "blue"))}, true},
		"the namespace before":                  {a, see(namespaces, blue), []*cluster.Object{home("former")}, false},
		"the namespace before, by name":         {a, see(itself, auth.Scope{All: true}), []*cluster.Object{home("former")}, false},
		"the namespace before, who may see all": {all, see(itself, auth.Scope{All: true}), []*cluster.Object{home("former")}, true},
	} {
		if got := c.access.AreTheirs(t.Context(), kinds, &auth.Identity{}, c.part, "watch", store.Snapshot(), c.objects); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	api.Fail("namespaces", 500)
	if a.AreTheirs(t.Context(), kinds, &auth.Identity{}, see(pods, blue), "watch", store.Snapshot(), []*cluster.Object{pod("blue", "x", at(31))}) {
		t.Error("where nobody can say which namespace lives")
	}
}
