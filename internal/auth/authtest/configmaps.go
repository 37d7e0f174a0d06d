package authtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// ConfigMaps is a fake API with one ConfigMap, called revoked, and its watches.
type ConfigMaps struct {
	mu       sync.Mutex
	Data     map[string]string // nil: the ConfigMap does not exist
	version  int
	watchers map[*watch.RaceFreeFakeWatcher]struct{}
	err      error // fails all reading
	Refuses  error // fails all writing
	away     error // fails all other requests
	Patches  int   // number of patches that were sent
}

// Answers stands for another request to the API server.
func (f *ConfigMaps) Answers(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.away
}

// Leave makes the API server be away, with an error; nil brings it back.
func (f *ConfigMaps) Leave(err error) {
	f.mu.Lock()
	f.away = err
	f.mu.Unlock()
	f.Fail(err)
}

func (f *ConfigMaps) object() *corev1.ConfigMap {
	data := map[string]string{}
	for key, value := range f.Data {
		data[key] = value
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "revoked", ResourceVersion: fmt.Sprint(f.version)}, Data: data}
}

func (f *ConfigMaps) List(_ context.Context, opts metav1.ListOptions) (*corev1.ConfigMapList, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if opts.FieldSelector != "metadata.name=revoked" {
		return nil, errors.New("all ConfigMaps are asked for")
	}
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(f.version)}}
	if f.Data != nil {
		list.Items = append(list.Items, *f.object())
	}
	return list, f.err
}

func (f *ConfigMaps) Watch(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || opts.FieldSelector != "metadata.name=revoked" || opts.ResourceVersion != fmt.Sprint(f.version) {
		return nil, errors.Join(f.err, apierrors.NewResourceExpired("another version"))
	}
	w := watch.NewRaceFreeFake()
	if f.watchers == nil {
		f.watchers = map[*watch.RaceFreeFakeWatcher]struct{}{}
	}
	f.watchers[w] = struct{}{}
	return w, nil
}

func (f *ConfigMaps) Patch(_ context.Context, name string, kind types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*corev1.ConfigMap, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Patches++
	switch {
	case f.Refuses != nil:
		return nil, f.Refuses
	case f.Data == nil || name != "revoked":
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	case kind != types.MergePatchType:
		return nil, errors.New("another kind of patch")
	}
	var patch struct{ Data map[string]*string }
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	for key, value := range patch.Data {
		if delete(f.Data, key); value != nil {
			f.Data[key] = *value
		}
	}
	f.changed()
	return f.object(), nil
}

// changed sends a change to all watches. The caller holds the lock.
func (f *ConfigMaps) changed() {
	f.version++
	for w := range f.watchers {
		w.Modify(f.object())
	}
}

// Put writes an entry, as kubectl does.
func (f *ConfigMaps) Put(key, entry string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Data == nil {
		f.Data = map[string]string{}
	}
	f.Data[key] = entry
	f.changed()
}

// Fail makes reading fail, and ends the watches.
func (f *ConfigMaps) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	for w := range f.watchers {
		w.Stop()
	}
	clear(f.watchers)
}

// Set changes the fields without an event.
func (f *ConfigMaps) Set(change func(*ConfigMaps)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// Keys returns the keys of the entries.
func (f *ConfigMaps) Keys() (keys []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.Data {
		keys = append(keys, key)
	}
	return keys
}
