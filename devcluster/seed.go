package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// platformGroup is the group that may read all teams' namespaces.
const platformGroup = "platform"

// seed creates the initial content of the cluster: nodes, the teams' namespaces, and roles for demos. It returns when
// pods can be created in these namespaces.
func (c *cluster) seed(ctx context.Context, nodes int) error {
	for i := range nodes {
		if _, err := c.client.CoreV1().Nodes().Create(ctx, node(i, c.kubelet.port), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making node %d: %w", i, err)
		}
	}
	for _, team := range teamNamespaces() {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:   team,
			Labels: map[string]string{"kubecast.io/team": team},
		}}
		if _, err := c.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making namespace %s: %w", team, err)
		}
	}
	if err := c.seedRoles(ctx); err != nil {
		return err
	}
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: urgent}, Value: 1000}
	if _, err := c.client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making PriorityClass %s: %w", urgent, err)
	}
	for _, namespace := range append([]string{metav1.NamespaceDefault, metav1.NamespaceSystem}, teamNamespaces()...) {
		err := poll(ctx, pollInterval, "the default ServiceAccount of "+namespace, func(ctx context.Context) error {
			_, err := c.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// node is a machine with eight accelerators that kwok keeps Ready.
func node(i, kubeletPort int) *corev1.Node {
	name := fmt.Sprintf("node-%02d", i)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("96"),
		corev1.ResourceMemory:           resource.MustParse("768Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("3Ti"),
		corev1.ResourcePods:             resource.MustParse("250"),
		gpu:                             resource.MustParse("8"),
	}
	if i == 0 {
		resources[license] = resource.MustParse("1")
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:           name,
				corev1.LabelArchStable:         "amd64",
				corev1.LabelOSStable:           "linux",
				corev1.LabelInstanceTypeStable: "gpu-8x",
				corev1.LabelTopologyZone:       fmt.Sprintf("zone-%c", 'a'+i%3),
				"type":                         "kwok",
			},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec: corev1.NodeSpec{
			PodCIDR: fmt.Sprintf("10.%d.%d.0/24", 128+i/256%128, i%256),
		},
		Status: corev1.NodeStatus{
			Allocatable: resources,
			Capacity:    resources,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
				{Type: corev1.NodeHostName, Address: name},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(kubeletPort)}},
		},
	}
}

// seedRoles lets the group "platform" read the whole cluster, and each team's group its own namespace. Nobody may
// read Secrets.
func (c *cluster) seedRoles(ctx context.Context) error {
	read := []string{"get", "list", "watch"}
	namespaced := []rbacv1.PolicyRule{
		{Verbs: read, APIGroups: []string{""}, Resources: []string{"pods", "pods/log", "events", "services", "configmaps", "serviceaccounts", "resourcequotas", "persistentvolumeclaims", "replicationcontrollers", "endpoints"}},
		{Verbs: read, APIGroups: []string{"batch", "apps", "events.k8s.io", "autoscaling", "discovery.k8s.io"}, Resources: []string{"*"}},
	}
	clusterWide := append([]rbacv1.PolicyRule{
		{Verbs: read, APIGroups: []string{""}, Resources: []string{"nodes", "namespaces", "persistentvolumes"}},
		{Verbs: read, APIGroups: []string{"scheduling.k8s.io", "storage.k8s.io", "apiextensions.k8s.io"}, Resources: []string{"*"}},
	}, namespaced...)
	for name, rules := range map[string][]rbacv1.PolicyRule{"platform-viewer": clusterWide, "team-viewer": namespaced} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		if _, err := c.client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making ClusterRole %s: %w", name, err)
		}
	}
	platform := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: platformGroup},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: platformGroup}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "platform-viewer"},
	}
	if _, err := c.client.RbacV1().ClusterRoleBindings().Create(ctx, platform, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making ClusterRoleBinding %s: %w", platform.Name, err)
	}
	for _, team := range teamNamespaces() {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: team, Namespace: team},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: team}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "team-viewer"},
		}
		if _, err := c.client.RbacV1().RoleBindings(team).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making RoleBinding %s: %w", team, err)
		}
	}
	return nil
}
