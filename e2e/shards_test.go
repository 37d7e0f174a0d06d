package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/internal/shards"
)

// These tests say of Kubernetes' alpha ShardedListAndWatch what Kubecast relies on, and what it must not rely on (docs/decisions).

// onAlphaStage returns the stage whose API server has the feature gate.
func onAlphaStage(t *testing.T) *stage {
	t.Helper()
	return ready(t, alphaStage)
}

var halves = []shards.Shard{{Number: 1, Of: 2}, {Number: 2, Of: 2}}

// inHalf makes ConfigMaps until one is in a shard, and returns its version.
func (s *stage) inHalf(t *testing.T, namespace string, shard shards.Shard) (name, version string) {
	t.Helper()
	for range 64 {
		made := configMap(namespace, "", nil)
		made.GenerateName = "half-"
		made, err := s.kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), made, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if shard.Has(string(made.UID)) {
			return made.Name, made.ResourceVersion
		}
	}
	t.Fatalf("none of 64 is in shard %s", shard)
	return "", ""
}

// The halves of each kind are disjoint, and all objects together, as this project computes the hash. A list echoes the selector, but not one
// of custom resources: a core that believed the echo only would refuse all of these.
func TestShardsOfAKindAreAllOfIt(t *testing.T) {
	t.Parallel()
	s := onAlphaStage(t)
	s.namespaces(t, "shards-kinds")
	manifest, group := crd("shards")
	s.kubectl(t, manifest, "apply", "-f", "-")
	trainings := schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "trainings"}
	for i := range 16 {
		if _, err := s.kube.CoreV1().Pods("shards-kinds").Create(t.Context(), pod("shards-kinds", fmt.Sprint("pod-", i), nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		training := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1alpha1", "kind": "Training", "metadata": map[string]any{"name": fmt.Sprint("training-", i)}}}
		eventually(t, "the kind is served", func() error {
			_, err := s.dynamic.Resource(trainings).Namespace("shards-kinds").Create(t.Context(), training, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
	}
	for _, kind := range []struct {
		gvr   schema.GroupVersionResource
		echos bool
	}{{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, true}, {trainings, false}} {
		client := s.dynamic.Resource(kind.gvr).Namespace("shards-kinds")
		all, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for _, half := range halves {
			list, err := client.List(t.Context(), metav1.ListOptions{ShardSelector: half.Selector()})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range list.Items {
				if found[o.GetName()]++; !half.Has(string(o.GetUID())) {
					t.Errorf("%s %s is in shard %s", kind.gvr.Resource, o.GetUID(), half)
				}
			}
			echo, has, _ := unstructured.NestedString(list.Object, "metadata", "shardInfo", "selector")
			if has != kind.echos || has && echo != half.Selector() {
				t.Errorf("%s: shardInfo is %q", kind.gvr.Resource, echo)
			}
		}
		if len(found) != len(all.Items) || len(found) < 16 {
			t.Errorf("%s: %d of %d are in a shard", kind.gvr.Resource, len(found), len(all.Items))
		}
		for name, times := range found {
			if times != 1 {
				t.Errorf("%s is in %d shards", name, times)
			}
		}
	}
}

// toBookmark reads a watch of a shard up to its bookmark.
func (s *stage) toBookmark(t *testing.T, namespace string, options metav1.ListOptions) (names []string, bookmark string) {
	t.Helper()
	// A bookmark is sent two seconds before the end, if the watch has begun by then.
	for seconds := int64(3); seconds < 50; seconds *= 2 {
		options.TimeoutSeconds, options.AllowWatchBookmarks = &seconds, true
		w, err := s.kube.CoreV1().ConfigMaps(namespace).Watch(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		names = nil
		for e := range w.ResultChan() {
			o, ok := e.Object.(metav1.Object)
			switch {
			case !ok:
				t.Fatalf("%s %v", e.Type, e.Object)
			case e.Type == watch.Bookmark:
				return names, o.GetResourceVersion()
			}
			names = append(names, o.GetName())
		}
	}
	t.Fatal("no watch has a bookmark")
	return nil, ""
}

// Versions are counted for all shards together. So a version that a client was told by one shard says nothing of another one: who went on there
// after it would not be told what is older. And a watch of a shard says nothing of others' versions before its own bookmark, which shows that it
// has come as far: that is why Merge waits for it.
func TestTheVersionOfOneShardIsNoPositionInAnother(t *testing.T) {
	t.Parallel()
	s := onAlphaStage(t)
	s.namespaces(t, "shards-position")
	list, err := s.kube.CoreV1().ConfigMaps("shards-position").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	older, _ := s.inHalf(t, "shards-position", halves[0])
	_, newer := s.inHalf(t, "shards-position", halves[1])
	of := func(version string) metav1.ListOptions {
		return metav1.ListOptions{ResourceVersion: version, ShardSelector: halves[0].Selector()}
	}
	if names, _ := s.toBookmark(t, "shards-position", of(newer)); len(names) > 0 {
		t.Errorf("after the other shard's version: %q", names)
	}
	names, bookmark := s.toBookmark(t, "shards-position", of(list.ResourceVersion))
	if !slices.Contains(names, older) { // and what was made in this half until one was in the other
		t.Errorf("after the list's version: %q, without %s", names, older)
	}
	if len(bookmark) < len(newer) || len(bookmark) == len(newer) && bookmark < newer {
		t.Errorf("the bookmark is of %s, and the other shard has %s", bookmark, newer)
	}
}

// An API server without the gate ignores the selector: it answers with everything, and says nothing of it. Two cores would each have all objects, and
// an edge all of them twice. So a core looks at each object, refuses what is not of its shard, and serves nothing of the kind.
func TestAnAPIServerThatIgnoresShardsIsFound(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "shards-ignored")
	for _, half := range halves {
		s.inHalf(t, "shards-ignored", half)
	}
	for i := 0; ; i++ { // until one is in the other shard
		made, err := s.kube.CoreV1().Pods("shards-ignored").Create(t.Context(), pod("shards-ignored", fmt.Sprint("pod-", i), nil), metav1.CreateOptions{})
		if err != nil || i == 64 {
			t.Fatalf("%d pods, none in shard %s: %v", i, halves[1], err)
		}
		if halves[1].Has(string(made.UID)) {
			break
		}
	}
	list, err := s.kube.CoreV1().ConfigMaps("shards-ignored").List(t.Context(), metav1.ListOptions{ShardSelector: halves[0].Selector()})
	if err != nil {
		t.Fatal(err)
	}
	others := 0
	for _, o := range list.Items {
		if !halves[0].Has(string(o.UID)) {
			others++
		}
	}
	if others == 0 || list.ShardInfo != nil {
		t.Errorf("%d of the other shard are told, and shardInfo is %v", others, list.ShardInfo)
	}
	core := s.startGateway(t, gatewayOptions{config: strings.Replace(ofShard(t, halves[0]), "preload:", "syncTimeout: 1s, preload:", 1)})
	eventually(t, "the core says what is wrong", func() error {
		if log := core.log(); !strings.Contains(log, "it ignores shardSelector") {
			return fmt.Errorf("%s", harness.Tail(log, 5))
		}
		return nil
	})
	a, err := fetchBy(core.client, http.MethodGet, core.url+"/api/v1/pods", askedFor(s.admin(t), halves[0].String()))
	if err != nil || a.code == http.StatusOK {
		t.Errorf("the core answers: %v %d %s", err, a.code, a.body)
	}
}

// ofShard is the configuration of a core of a shard, whose edges sign in as the test.
func ofShard(t *testing.T, shard shards.Shard) string {
	return fmt.Sprintf("drain: 1s\nhistory: {database: none}\ngateways: [%s]\nexperimental: {shard: %s, shardKinds: [pods]}\ncache: {preload: [pods]}\n", strings.ToLower(t.Name()), shard)
}

// askedFor is the header of a request to a core of a shard.
func askedFor(token, shard string) http.Header {
	header := bearer(token)
	header.Set(shards.Header, shard)
	return header
}

// Two cores have a half each; an edge of them tells all that happens, in order and by positions that count at a gateway of everything, too,
// and loses nothing when either core is killed, nor the edge. Nobody but edges takes a half for the whole.
func TestAnEdgeOfShardsLosesNothing(t *testing.T) {
	t.Parallel()
	s := onAlphaStage(t)
	s.namespaces(t, "shards-a", "shards-b")
	admin := s.admin(t)
	var cores []*gateway
	for _, half := range halves {
		opts := overTLS(t)
		opts.config = ofShard(t, half)
		cores = append(cores, s.startGateway(t, opts))
	}
	for _, core := range cores {
		core.waitReady(t)
	}
	edge := s.edgeOf(t, admin, gatewayOptions{listen: harness.Address(t), config: "experimental: {shards: 2}\nhistory: {database: none}\n"}, cores...)
	whole := s.startGateway(t, gatewayOptions{config: "history: {database: none}\n"})
	edge.waitReady(t)
	whole.waitReady(t)
	mustKnow(t, s.viewer(t), "/api/v1/pods", edge, whole)
	if a := cores[0].get(t, admin, "/api/v1/pods"); a.code != http.StatusMisdirectedRequest {
		t.Errorf("who is no edge is answered with %d %s", a.code, a.body)
	}

	c := &churn{namespaces: []string{"shards-a", "shards-b"}, test: "shards", random: seed(t)}
	witnesses, staying, moving := map[string]*witness{}, map[string]*follower{}, map[string]*follower{}
	for name, scope := range c.scopes() {
		own := rand.New(rand.NewPCG(c.random.Uint64(), 0))
		witnesses[name] = s.watchDirectly(t, scope)
		staying[name] = follow(t, &follower{
			name: name, token: s.viewer(t), path: scope.path(), watches: single(), address: always(edge.url), connect: rawly, relists: true,
		})
		moving[name] = follow(t, &follower{
			name: "moving " + name, token: s.viewer(t), path: scope.path(), watches: single(), connect: rawly, relists: true,
			address: func(n int) string { return []string{edge.url, whole.url}[n%2] },
			lasts:   func() time.Duration { return time.Duration(500+own.IntN(2000)) * time.Millisecond },
		})
	}
	for _, f := range staying {
		f.waitSynced(t)
	}
	finish := s.startChurn(t, c)
	all := staying["all namespaces"]
	for _, hurt := range []*gateway{cores[0], cores[1], edge, cores[0]} {
		all.waitEvents(t, 30)
		hurt.kill()
		hurt.restart(t)
		hurt.waitReady(t)
		all.waitEvents(t, 30)
	}
	finish()
	c.wereToldAll(t, staying, witnesses)
	c.wereToldAll(t, moving, witnesses)
	for name, f := range staying {
		if resets := f.resets(t, ""); len(resets) > 0 {
			t.Errorf("%s was reset: %q", name, resets)
		}
	}

	var counts []int
	for k, half := range halves {
		a, err := fetchBy(cores[k].client, http.MethodGet, cores[k].url+"/api/v1/pods", askedFor(admin, half.String()))
		if err != nil || a.code != http.StatusOK || a.header.Get(shards.Header) != half.String() {
			t.Fatalf("core %s: %v %d %v %s", half, err, a.code, a.header, a.body)
		}
		uids := gjson.Get(a.body, "items.#.metadata.uid").Array()
		for _, uid := range uids {
			if !half.Has(uid.Str) {
				t.Errorf("core %s has %s", half, uid.Str)
			}
		}
		counts = append(counts, len(uids))
		if a, err := fetchBy(cores[k].client, http.MethodGet, cores[k].url+"/api/v1/pods", askedFor(admin, halves[1-k].String())); err != nil || a.code != http.StatusMisdirectedRequest {
			t.Errorf("who expects the other half is answered with %v %d", err, a.code)
		}
	}
	list, err := s.kube.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if counts[0]+counts[1] != len(list.Items) || counts[0] == 0 || counts[1] == 0 {
		t.Errorf("the cores have %v of %d pods", counts, len(list.Items))
	}
	t.Logf("the cores have %v of %d pods", counts, len(list.Items))
}
