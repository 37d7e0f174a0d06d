package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// roamers are clients of one user whose permissions change, beside all else that happens in the
// random test. They are cut off at random and come back with their positions to either gateway.
// Whenever it is quiet, they have exactly what the user may see; and they are never told of what
// the user has not been allowed to see for longer than a gateway may believe a permission that it
// cannot confirm.
type roamers struct {
	m       *model
	token   string
	clients []*roamer
	allowed map[string]bool // by namespace
}

// roamingUser is also the name of the user's bindings.
const roamingUser = "roamer"

// believedFor is how long a permission that was taken away may be believed by a gateway that cannot ask: a minute
// (docs/security.md), and time for what is under way.
const believedFor = 75 * time.Second

// startRoamers starts them. The user may always see the first namespace: whoever may see nothing is refused.
func (m *model) startRoamers(t *testing.T) *roamers {
	t.Helper()
	token, err := m.stage.token(roamingUser)
	if err != nil {
		t.Fatal(err)
	}
	r := &roamers{m: m, token: token, allowed: map[string]bool{}}
	r.allow(t, m.churn.namespaces[0], true)
	for _, g := range m.gateways {
		mustKnow(t, token, "/api/v1/namespaces/"+m.churn.namespaces[0]+"/pods", g)
	}
	const pods = podsOf + "test%3Dmodel"
	for _, path := range []string{
		pods,
		pods + "&deltas=merge-patch",
		pods + "&conflate=200ms&deltas=merge-patch",
		"/stream" + query("all", pods, "some", podsOf+"test%3Dmodel%2Capp%3Da"),
	} {
		c := &roamer{
			roamers: r, random: rand.New(rand.NewPCG(m.random.Uint64(), 4)), done: make(chan struct{}), ended: map[string]time.Time{},
			beholder: &beholder{name: "the roaming client of " + path, path: path, views: map[string]map[string]string{},
				uids: map[string]string{}, synced: map[string]bool{}},
		}
		c.watches = []string{"pods"}
		if path[:7] == "/stream" {
			c.watches = []string{"all", "some"}
		}
		for _, watch := range c.watches {
			c.views[watch] = map[string]string{}
		}
		r.clients = append(r.clients, c)
		ctx, cancel := context.WithCancel(context.Background())
		go c.follow(ctx)
		t.Cleanup(func() {
			cancel()
			<-c.done
		})
	}
	return r
}

// allow lets the user see the pods of a namespace, or no longer.
func (r *roamers) allow(t *testing.T, namespace string, allowed bool) {
	t.Helper()
	bindings := r.m.stage.kube.RbacV1().RoleBindings(namespace)
	if allowed { // before it is: a client may be told at once
		r.ended(namespace, time.Time{})
	}
	eventually(t, "the roaming user's permission changes", func() error {
		if !allowed {
			err := bindings.Delete(context.Background(), roamingUser, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}
		_, err := bindings.Create(context.Background(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: roamingUser, Namespace: namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "team-viewer"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: roamingUser}},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	r.allowed[namespace] = allowed
	if !allowed {
		r.ended(namespace, time.Now())
	}
}

// ended notes since when the user may not see a namespace; the zero time: the user may.
func (r *roamers) ended(namespace string, since time.Time) {
	for _, c := range r.clients {
		c.mu.Lock()
		delete(c.ended, namespace)
		if !since.IsZero() {
			c.ended[namespace] = since
		}
		c.mu.Unlock()
	}
}

// roam gives the user a namespace, or takes it away.
func (r *roamers) roam(t *testing.T) {
	t.Helper()
	namespace := r.m.churn.namespaces[1+r.m.random.IntN(len(r.m.churn.namespaces)-1)]
	t.Logf("the roaming user may see %s: %v", namespace, !r.allowed[namespace])
	r.allow(t, namespace, !r.allowed[namespace])
}

// check waits until each client has what the user may see. Nothing else changes meanwhile.
func (r *roamers) check(t *testing.T) {
	t.Helper()
	want := map[string]map[string]string{}
	for watch, selector := range map[string]string{"pods": "test=model", "all": "test=model", "some": "test=model,app=a"} {
		list, err := r.m.stage.kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		want[watch] = map[string]string{}
		for _, o := range list.Items {
			if r.allowed[o.Namespace] {
				want[watch][o.Namespace+"/"+o.Name] = o.ResourceVersion
			}
		}
	}
	for _, c := range r.clients {
		eventually(t, c.name+" has what its user may see", func() error {
			return c.has(func(watch string) map[string]string { return want[watch] })
		})
	}
}

// waitTold waits until each client has been told of a pod that all of them may see and select.
func (r *roamers) waitTold(t *testing.T, key string) {
	t.Helper()
	for _, c := range r.clients {
		eventually(t, c.name+" has been told of "+key, func() error {
			c.mu.Lock()
			defer c.mu.Unlock()
			for watch, view := range c.views {
				if _, has := view[key]; !has {
					return fmt.Errorf("%s does not have it (%v)", watch, c.err)
				}
			}
			return nil
		})
	}
}

// roamer is one of these clients.
type roamer struct {
	*roamers
	*beholder
	watches []string
	random  *rand.Rand
	done    chan struct{}
	ended   map[string]time.Time // since when the user may not see a namespace any more
}

// follow follows until the context ends, or the client is told what it should not be; has tells that then.
func (c *roamer) follow(ctx context.Context) {
	defer close(c.done)
	for ctx.Err() == nil {
		lasting, cut := context.WithTimeout(ctx, time.Duration(100+c.random.IntN(8000))*time.Millisecond)
		err := c.connection(lasting)
		cut()
		c.mu.Lock()
		if c.err = err; err != nil {
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(rejoinAfter):
		}
	}
}

// connection makes one connection. Its error is what was told and should not have been.
func (c *roamer) connection(ctx context.Context) error {
	url := c.m.urls[c.random.IntN(len(c.m.urls))]
	header := bearer(c.token)
	if err := c.begin(header); err != nil {
		return err
	}
	opened, err := openFramesBy(ctx, c.m.clientFor(url), url+c.path, header)
	var status errStatus
	if errors.As(err, &status) && slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusGone}, status.code) {
		return err
	}
	if err != nil {
		return nil // the gateway is away, or cannot confirm permissions
	}
	defer opened.close()
	for {
		read, err := opened.next()
		if err != nil {
			return nil
		}
		if err := c.takePermitted(read); err != nil {
			return err
		}
	}
}

// begin adds the position to a connection's header. What it leaves out is told anew, to its end: of
// what was told before, some may be gone.
func (c *roamer) begin(header http.Header) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var p position
	if c.last != "" {
		header.Set("Last-Event-ID", c.last)
		names := c.watches
		if len(names) == 1 {
			names = single()
		}
		var err error
		if p, err = parsePosition(c.last, names); err != nil {
			return err
		}
	}
	for _, watch := range c.watches {
		name := watch
		if len(c.watches) == 1 {
			name = ""
		}
		if p.versions[name] == 0 {
			clear(c.views[watch])
			c.synced[watch] = false
		}
	}
	return nil
}

func (c *roamer) takePermitted(read frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := map[string]map[string]string{}
	if len(c.ended) > 0 {
		for watch, view := range c.views {
			before[watch] = map[string]string{}
			for key, version := range view {
				before[watch][key] = version
			}
		}
	}
	if err := c.take("pods", read); err != nil {
		return fmt.Errorf("%s %s: %w", read.event, read.id, err)
	}
	for namespace, since := range c.ended {
		if time.Since(since) < believedFor {
			continue
		}
		for watch, view := range c.views {
			for key, version := range view {
				if before[watch][key] != version && len(key) > len(namespace) && key[:len(namespace)+1] == namespace+"/" {
					return fmt.Errorf("%s was told %s after its user could not see it: %s %s", watch, key, time.Since(since), read.id)
				}
			}
		}
	}
	return nil
}
