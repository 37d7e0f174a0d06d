package clients

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// namespace is a namespace whose ConfigMaps every client may watch.
type namespace struct {
	name string
	kube kubernetes.Interface
}

func (s *stage) newNamespace(t *testing.T, name string) *namespace {
	t.Helper()
	kube, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, meta := t.Context(), metav1.ObjectMeta{Name: name}
	_, err = kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = kube.RbacV1().Roles(name).Create(ctx, &rbacv1.Role{
		ObjectMeta: meta,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = kube.RbacV1().RoleBindings(name).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "system:anonymous"}},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", APIGroup: rbacv1.GroupName, Name: name},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &namespace{name, kube}
}

func (n *namespace) path() string { return "/api/v1/namespaces/" + n.name + "/configmaps" }

// create makes a ConfigMap with a text.
func (n *namespace) create(ctx context.Context, name, text string) error {
	_, err := n.kube.CoreV1().ConfigMaps(n.name).Create(ctx, configMap(name, text), metav1.CreateOptions{})
	return err
}

func configMap(name, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"text": text}}
}

// state returns the ConfigMaps that exist, by name.
func (n *namespace) state(ctx context.Context) (map[string]object, error) {
	list, err := n.kube.CoreV1().ConfigMaps(n.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	state := map[string]object{}
	for _, c := range list.Items {
		version, err := strconv.ParseUint(c.ResourceVersion, 10, 64)
		if err != nil {
			return nil, err
		}
		state[c.Name] = object{string(c.UID), version}
	}
	return state, nil
}

// churn creates, changes and deletes small objects, so many a second, until the returned function is called.
func (n *namespace) churn(t *testing.T, perSecond int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- n.churnUntil(ctx, time.Second/time.Duration(perSecond)) }()
	return func() {
		cancel()
		if err := <-failed; err != nil {
			t.Errorf("churn: %v", err)
		}
	}
}

func (n *namespace) churnUntil(ctx context.Context, interval time.Duration) error {
	maps := n.kube.CoreV1().ConfigMaps(n.name)
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	exists := map[string]bool{}
	for count := 0; ; count++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		name := fmt.Sprintf("small-%02d", rand.IntN(40))
		text := strconv.Itoa(count)
		// The request does not use ctx: one that has begun is finished, so that its outcome is known.
		var err error
		switch {
		case !exists[name]:
			err = n.create(context.Background(), name, text)
			exists[name] = true
		case rand.IntN(4) == 0:
			err = maps.Delete(context.Background(), name, metav1.DeleteOptions{})
			exists[name] = false
		default:
			_, err = maps.Update(context.Background(), configMap(name, text), metav1.UpdateOptions{})
		}
		if err != nil {
			return err
		}
	}
}

// megabyte is about as much as a ConfigMap may hold.
func megabyte() string { return strings.Repeat("0123456789abcdef", 1<<16-8) }
