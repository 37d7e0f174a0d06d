package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// namespaces makes namespaces, waits until they have all that the cluster puts there, and pods can be made in them, and removes them after
// the test.
func (s *stage) namespaces(t *testing.T, names ...string) {
	t.Helper()
	ctx := context.Background()
	for _, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"e2e": name}}}
		eventually(t, "namespace "+name+" is made", func() error { // one from an earlier run of the test may be on its way out
			_, err := s.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
			return err
		})
		t.Cleanup(func() {
			err := s.kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
	}
	for _, name := range names {
		eventually(t, "namespace "+name+" has its default ServiceAccount", func() error {
			_, err := s.kube.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			return err
		})
		eventually(t, "namespace "+name+" has its ConfigMap", func() error { // by another controller; a test may look at the first that is told
			_, err := s.kube.CoreV1().ConfigMaps(name).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
			return err
		})
	}
}

// pod returns a pod that is never scheduled, so that only the test changes it.
func pod(namespace, name string, labels map[string]string) *corev1.Pod {
	off := false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			SchedulerName:                "nobody",
			AutomountServiceAccountToken: &off,
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example.org/train:1",
				Env: []corev1.EnvVar{{Name: "TEXT", Value: "a \"quoted\" line\nand another: 日本語 \u2028 <&>"}},
			}},
		},
	}
}

func configMap(namespace, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Data:       map[string]string{"key": "value of " + name},
	}
}

// kubectl runs kubectl as cluster-admin, with a text as its input.
func (s *stage) kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := s.cluster.Kubectl(context.Background(), strings.NewReader(stdin), args...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// allow lets a user read resources of an API group in the whole cluster, until the returned function takes it back.
func (s *stage) allow(t *testing.T, user, group string, resources ...string) (revoke func()) {
	t.Helper()
	ctx := context.Background()
	name := "e2e-" + strings.ToLower(user+"-"+strings.Join(resources, "-"))
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}}},
	}
	if _, err := s.kube.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := s.kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	revoke = func() {
		err := s.kube.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		revoke()
		if err := s.kube.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return revoke
}

// mustKnow waits until gateways know that the holder of a token may list what a path names, since they learn of
// bindings by a watch.
func mustKnow(t *testing.T, token, path string, gateways ...*gateway) {
	t.Helper()
	for _, g := range gateways {
		eventually(t, "the gateway knows the binding", func() error {
			if a := g.get(t, token, path); a.code == http.StatusForbidden {
				return errors.New(a.body)
			}
			return nil
		})
	}
}

// allowTeam lets the group with a team's name read the namespace of that name, as platforms do.
func (s *stage) allowTeam(t *testing.T, team string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: team, Namespace: team},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "team-viewer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: team}},
	}
	if _, err := s.kube.RbacV1().RoleBindings(team).Create(context.Background(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// query writes a query of the parameters that have a value; "" if none has.
func query(pairs ...string) string {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// crd returns the manifest and the group of a kind for one test.
func crd(name string) (manifest, group string) {
	group = name + ".e2e.kubecast.io"
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trainings.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: trainings, singular: training, kind: Training, listKind: TrainingList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group), group
}
