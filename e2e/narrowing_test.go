package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// A user who may see some namespaces is shown these, whichever way they ask. While the user's bindings and the
// objects change, running streams, informers and lists keep showing exactly what the user may see.
func TestClientsFollowTheirPermissions(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	for _, mode := range []string{"rbac", "sar"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := s.startGateway(t, gatewayOptions{config: "authorizer: {mode: " + mode + ", cacheAllow: 1s, cacheDeny: 1s}\n"})
			g.waitReady(t)
			newNarrowing(t, s, g, mode).run(t)
		})
	}
}

// narrowing is a user whose permissions change, with the clients that follow. Each mode has its own names.
type narrowing struct {
	s          *stage
	g          *gateway
	mode       string
	user       string
	token      string
	namespaces map[string]string // a, b, c
	selector   string            // of pods and config maps
	beholders  []*beholder
	informers  []mirror
	patches    int
}

const (
	podsOf   = "/api/v1/pods?labelSelector="
	mapsOf   = "/api/v1/configmaps?labelSelector="
	spacesOf = "/api/v1/namespaces?labelSelector="
)

func newNarrowing(t *testing.T, s *stage, g *gateway, mode string) *narrowing {
	t.Helper()
	n := &narrowing{s: s, g: g, mode: mode, user: "narrowing-" + mode, namespaces: map[string]string{}, selector: "narrowing=" + mode}
	var err error
	if n.token, err = s.token(n.user); err != nil {
		t.Fatal(err)
	}
	for _, short := range []string{"a", "b", "c"} {
		name := n.user + "-" + short
		n.namespaces[short] = name
		s.namespaces(t, name)
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"narrowing":%q}}}`, mode)
		if _, err := s.kube.CoreV1().Namespaces().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, object := range []string{"one", "two", "three"} {
			marked := map[string]string{"narrowing": mode}
			if _, err := s.kube.CoreV1().Pods(name).Create(t.Context(), pod(name, object, marked), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.kube.CoreV1().ConfigMaps(name).Create(t.Context(), configMap(name, object, marked), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: n.user}, Rules: rules()}
	if _, err := s.kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.kube.RbacV1().ClusterRoles().Delete(context.Background(), n.user, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return n
}

func rules(names ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"pods", "configmaps", "namespaces"}, Verbs: []string{"get", "list", "watch"},
		ResourceNames: names,
	}}
}

func (n *narrowing) run(t *testing.T) {
	a, b, c := n.namespaces["a"], n.namespaces["b"], n.namespaces["c"]
	everywhere := func(string, string) bool { return true }
	in := func(namespaces ...string) sees {
		return func(namespace, _ string) bool { return slices.Contains(namespaces, namespace) }
	}
	// named is a whole namespace and one object of another; only mode rbac can know of the latter.
	named := func(namespace, other, name string) sees {
		return func(in, object string) bool {
			return in == namespace || n.mode == "rbac" && in == other && object == name
		}
	}
	n.bind(t, a, "ClusterRole")
	mustKnow(t, n.token, "/api/v1/namespaces/"+a+"/pods", n.g)
	n.open(t)
	n.follow(t, "what he may see from the beginning", in(a), func() {})

	away := n.openBeholder(t, podsOf+n.selector, "", nil) // it comes back later
	n.wait(t, "another stream", away, in(a))
	position := away.close()

	n.follow(t, "a second namespace", in(a, b), func() { n.bind(t, b, "ClusterRole") })
	back := n.openBeholder(t, podsOf+n.selector, "", http.Header{"Last-Event-Id": {position}})
	n.wait(t, "a stream that was away meanwhile", back, in(a, b))
	if back.resets() != 1 {
		t.Errorf("a stream that comes back with other permissions is told %d resets", back.resets())
	}
	back.close()

	n.follow(t, "one object of it", named(a, b, "one"), func() {
		n.unbind(t, b)
		n.role(t, b, "one")
		n.bind(t, b, "Role")
	})
	n.follow(t, "another object of it", named(a, b, "two"), func() { n.role(t, b, "two") })
	n.inform(t)
	n.follow(t, "the whole cluster", everywhere, func() { n.bindCluster(t) })
	n.follow(t, "no more than before", named(a, b, "two"), func() { n.unbindCluster(t) })
	if n.mode == "sar" { // it may remember for a moment that c was denied, and the user would be left with nothing
		n.follow(t, "a third namespace", in(a, c), func() { n.bind(t, c, "ClusterRole") })
	}
	n.follow(t, "another namespace instead", in(c), func() {
		if n.mode != "sar" {
			n.bind(t, c, "ClusterRole")
		}
		n.unbind(t, a)
		n.unbind(t, b)
	})
	n.unbind(t, c)
	for _, seen := range n.beholders {
		eventually(t, seen.name+" ends", func() error {
			if reason := seen.goodbye(); reason != "revoked" {
				return fmt.Errorf("goodbye %q", reason)
			}
			return nil
		})
		header := bearer(n.token)
		header.Set("Accept", "text/event-stream")
		header.Set("Last-Event-ID", seen.close())
		if a, err := fetch(http.MethodGet, n.g.url+seen.path, header); err != nil || a.code != http.StatusForbidden {
			t.Errorf("%s is begun again with %d, %v", seen.path, a.code, err)
		}
		if n := seen.resets(); n > 0 {
			t.Errorf("%s was reset %d times", seen.name, n)
		}
	}
	eventually(t, "lists are refused, too", func() error { // mode sar may remember for a moment that they were not
		if a := n.g.get(t, n.token, podsOf+n.selector); a.code != http.StatusForbidden {
			return fmt.Errorf("a list is answered with %d", a.code)
		}
		return nil
	})
}

// open opens the clients that stay from the beginning to the end.
func (n *narrowing) open(t *testing.T) {
	t.Helper()
	several := "/stream" + query("pods", podsOf+n.selector, "maps", mapsOf+n.selector, "spaces", spacesOf+n.selector)
	n.beholders = []*beholder{
		n.openBeholder(t, podsOf+n.selector, "pods", nil),
		n.openBeholder(t, several, "", nil),
		n.openBeholder(t, mapsOf+n.selector+"&conflate=200ms&deltas=merge-patch", "maps", nil),
	}
}

// inform adds client-go's informers. They come late in the test, since after each 410 they wait twice as long before
// they list again.
func (n *narrowing) inform(t *testing.T) {
	t.Helper()
	selector, err := labels.ConvertSelectorToLabelsMap(n.selector)
	if err != nil {
		t.Fatal(err)
	}
	n.informers = n.g.mirrors(t, n.token, "", selector)
	for _, m := range n.informers { // what changes between a list and its watch is not told: see "Kubernetes' own watch" in wire.md
		eventually(t, "the "+m.name+" informer watches", func() error {
			if !m.ready() {
				return errors.New("it does not")
			}
			return nil
		})
	}
}

// sees reports whether the user may see an object.
type sees func(namespace, name string) bool

// follow changes permissions while objects change, and waits until each client has exactly what may be seen.
func (n *narrowing) follow(t *testing.T, what string, may sees, change func()) {
	t.Helper()
	n.touch(t, "one")
	change()
	began := time.Now()
	n.touch(t, "two")
	for _, seen := range n.beholders {
		n.wait(t, what, seen, may)
	}
	took := time.Since(began)
	eventually(t, what+": lists", func() error {
		for kind, path := range map[string]string{"pods": podsOf, "maps": mapsOf, "spaces": spacesOf} {
			have := map[string]string{}
			for _, item := range n.g.list(t, n.token, path+n.selector).named(t) {
				key, o, err := readObject(string(item))
				if err != nil {
					return err
				}
				have[key] = fmt.Sprint(o.version)
			}
			if err := same(have, n.want(t, kind, may)); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
		return nil
	})
	listed := time.Since(began)
	for _, m := range n.informers {
		eventually(t, what+": the "+m.name+" informer", func() error {
			if !m.ready() {
				return errors.New("it is not synced")
			}
			return same(m.versions(), n.want(t, "pods", may))
		})
	}
	t.Logf("%s: streams after %s, lists after %s, informers after %s", what, took.Round(time.Millisecond), listed.Round(time.Millisecond),
		time.Since(began).Round(time.Millisecond))
}

func (n *narrowing) wait(t *testing.T, what string, seen *beholder, may sees) {
	t.Helper()
	eventually(t, what+": "+seen.name, func() error {
		return seen.has(func(kind string) map[string]string { return n.want(t, kind, may) })
	})
}

// touch changes an object of each namespace.
func (n *narrowing) touch(t *testing.T, name string) {
	t.Helper()
	n.patches++
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, n.patches)
	for _, namespace := range n.namespaces {
		if _, err := n.s.kube.CoreV1().Pods(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := n.s.kube.CoreV1().ConfigMaps(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// want returns the objects of the cluster that may be seen: their versions by namespace/name.
func (n *narrowing) want(t *testing.T, kind string, may sees) map[string]string {
	t.Helper()
	want := map[string]string{}
	opts := metav1.ListOptions{LabelSelector: n.selector}
	switch kind {
	case "pods":
		list, err := n.s.kube.CoreV1().Pods("").List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if may(o.Namespace, o.Name) {
				want[o.Namespace+"/"+o.Name] = o.ResourceVersion
			}
		}
	case "maps":
		list, err := n.s.kube.CoreV1().ConfigMaps("").List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if may(o.Namespace, o.Name) {
				want[o.Namespace+"/"+o.Name] = o.ResourceVersion
			}
		}
	case "spaces":
		list, err := n.s.kube.CoreV1().Namespaces().List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if may(o.Name, o.Name) { // a Namespace counts as being within itself
				want[o.Name] = o.ResourceVersion
			}
		}
	}
	return want
}

func same(have, want map[string]string) error {
	if maps.Equal(have, want) {
		return nil
	}
	return fmt.Errorf("has %v, not %v", have, want)
}

func (n *narrowing) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: n.user}}
}

// bind binds the user to the role of a namespace.
func (n *narrowing) bind(t *testing.T, namespace, kind string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: n.user, Namespace: namespace}, Subjects: n.subjects(),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: n.user},
	}
	if _, err := n.s.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (n *narrowing) unbind(t *testing.T, namespace string) {
	t.Helper()
	if err := n.s.kube.RbacV1().RoleBindings(namespace).Delete(t.Context(), n.user, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// role lets the user see one object of a namespace, once bound.
func (n *narrowing) role(t *testing.T, namespace, object string) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: n.user, Namespace: namespace}, Rules: rules(object)}
	_, err := n.s.kube.RbacV1().Roles(namespace).Update(t.Context(), role, metav1.UpdateOptions{})
	if err != nil {
		_, err = n.s.kube.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (n *narrowing) bindCluster(t *testing.T) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: n.user}, Subjects: n.subjects(),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: n.user},
	}
	if _, err := n.s.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (n *narrowing) unbindCluster(t *testing.T) {
	t.Helper()
	if err := n.s.kube.RbacV1().ClusterRoleBindings().Delete(t.Context(), n.user, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// beholder keeps what is told on one connection of a stream.
type beholder struct {
	name, path string
	frames     *frames
	ended      chan struct{}

	mu     sync.Mutex
	views  map[string]map[string]string // by watch: versions by namespace/name
	uids   map[string]string            // keys by uid, for patches
	synced map[string]bool
	reset  int
	bye    string // reason
	last   string // id
	err    error
}

// openBeholder opens a stream; kind is the kind of a single stream if its path does not name it.
func (n *narrowing) openBeholder(t *testing.T, path, kind string, header http.Header) *beholder {
	t.Helper()
	if kind == "" && !strings.HasPrefix(path, "/stream") {
		kind = "pods"
	}
	all := bearer(n.token)
	maps.Copy(all, header)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	opened, err := openFrames(ctx, n.g.url+path, all)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	b := &beholder{
		name: "the stream " + path, path: path, frames: opened, ended: make(chan struct{}),
		views: map[string]map[string]string{}, uids: map[string]string{}, synced: map[string]bool{},
	}
	kinds := []string{kind}
	if kind == "" {
		kinds = []string{"pods", "maps", "spaces"}
	}
	for _, kind := range kinds {
		b.views[kind] = map[string]string{}
	}
	go b.run(kind)
	t.Cleanup(func() { b.close() })
	return b
}

// close ends the connection, and returns the position.
func (b *beholder) close() (position string) {
	b.frames.close()
	<-b.ended
	return b.last
}

func (b *beholder) run(kind string) {
	defer close(b.ended)
	for {
		read, err := b.frames.next()
		b.mu.Lock()
		if err == nil {
			err = b.take(kind, read)
		}
		if err != nil {
			b.err = err
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
}

// take applies a frame.
func (b *beholder) take(kind string, read frame) error {
	if read.id != "" {
		b.last = read.id
	}
	event := read.event
	if watch, name, several := strings.Cut(event, "."); several {
		kind, event = watch, name
	}
	view := b.views[kind]
	switch event {
	case "added", "modified", "deleted":
		key, o, err := readObject(read.data)
		if err != nil {
			return err
		}
		b.uids[o.uid] = key
		if event == "deleted" {
			delete(view, key)
		} else {
			view[key] = fmt.Sprint(o.version)
		}
	case "patched":
		var patch struct{ UID, ResourceVersion string }
		if err := json.Unmarshal([]byte(read.data), &patch); err != nil {
			return err
		}
		key := b.uids[patch.UID]
		if _, known := view[key]; !known {
			return fmt.Errorf("a patch of what is not there: %s", read.data)
		}
		view[key] = patch.ResourceVersion
	case "reset":
		b.reset++
		b.synced[kind] = false
		clear(view)
	case "synced":
		b.synced[kind] = true
	case "goodbye":
		var data struct{ Reason string }
		if err := json.Unmarshal([]byte(read.data), &data); err != nil {
			return err
		}
		b.bye = data.Reason
	}
	return nil
}

// has returns nil if each watch has what it should.
func (b *beholder) has(want func(kind string) map[string]string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	for kind, view := range b.views {
		if !b.synced[kind] {
			return fmt.Errorf("%s: the snapshot is not complete", kind)
		}
		if err := same(view, want(kind)); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func (b *beholder) goodbye() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bye
}

func (b *beholder) resets() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reset
}
