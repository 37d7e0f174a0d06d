package cluster

import (
	"context"

	corev1api "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// configMaps say what the API server answered when the time is up.
type configMaps struct{ corev1.ConfigMapInterface }

func (m configMaps) List(ctx context.Context, opts metav1.ListOptions) (*corev1api.ConfigMapList, error) {
	ctx, noted := noteAttempts(ctx)
	list, err := m.ConfigMapInterface.List(ctx, opts)
	return list, noted.explain(err)
}

func (m configMaps) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	ctx, noted := noteAttempts(ctx)
	watching, err := m.ConfigMapInterface.Watch(ctx, opts)
	return watching, noted.explain(err)
}

func (m configMaps) Patch(ctx context.Context, name string, form types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1api.ConfigMap, error) {
	ctx, noted := noteAttempts(ctx)
	patched, err := m.ConfigMapInterface.Patch(ctx, name, form, data, opts, subresources...)
	return patched, noted.explain(err)
}
