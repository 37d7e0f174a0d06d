package cluster

import (
	"encoding/json"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file makes an Object a metav1.Object, which client-go's informers require. Values that are rarely read are
// unmarshalled at each call. The setters panic: an Object cannot be changed, so a call of one is a mistake in the
// program.

var _ metav1.Object = (*Object)(nil)

func (o *Object) GetNamespace() string       { return o.namespace }
func (o *Object) GetName() string            { return o.name }
func (o *Object) GetUID() types.UID          { return types.UID(o.uid) }
func (o *Object) GetResourceVersion() string { return strconv.FormatUint(o.version, 10) }
func (o *Object) GetGenerateName() string    { return o.Path("metadata.generateName").Str }
func (o *Object) GetSelfLink() string        { return o.Path("metadata.selfLink").Str }
func (o *Object) GetGeneration() int64       { return o.Path("metadata.generation").Int() }

func (o *Object) GetCreationTimestamp() metav1.Time {
	if o.created == 0 {
		return metav1.Time{}
	}
	return metav1.Unix(o.created, 0)
}

func (o *Object) GetDeletionTimestamp() *metav1.Time {
	t, err := time.Parse(time.RFC3339, o.Path("metadata.deletionTimestamp").Str)
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: t}
}

func (o *Object) GetDeletionGracePeriodSeconds() *int64 {
	return unmarshal[*int64](o, "metadata.deletionGracePeriodSeconds")
}

func (o *Object) GetLabels() map[string]string {
	return unmarshal[map[string]string](o, "metadata.labels")
}

func (o *Object) GetAnnotations() map[string]string {
	return unmarshal[map[string]string](o, "metadata.annotations")
}

func (o *Object) GetFinalizers() []string { return unmarshal[[]string](o, "metadata.finalizers") }

func (o *Object) GetOwnerReferences() []metav1.OwnerReference {
	return unmarshal[[]metav1.OwnerReference](o, "metadata.ownerReferences")
}

func (o *Object) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }

func unmarshal[T any](o *Object, path string) (value T) {
	if raw := o.Path(path).Raw; raw != "" {
		_ = json.Unmarshal([]byte(raw), &value) // a form that the API server never sends counts as absent
	}
	return value
}

const immutable = "cluster: an Object cannot be modified"

func (o *Object) SetNamespace(string)                          { panic(immutable) }
func (o *Object) SetName(string)                               { panic(immutable) }
func (o *Object) SetGenerateName(string)                       { panic(immutable) }
func (o *Object) SetUID(types.UID)                             { panic(immutable) }
func (o *Object) SetResourceVersion(string)                    { panic(immutable) }
func (o *Object) SetGeneration(int64)                          { panic(immutable) }
func (o *Object) SetSelfLink(string)                           { panic(immutable) }
func (o *Object) SetCreationTimestamp(metav1.Time)             { panic(immutable) }
func (o *Object) SetDeletionTimestamp(*metav1.Time)            { panic(immutable) }
func (o *Object) SetDeletionGracePeriodSeconds(*int64)         { panic(immutable) }
func (o *Object) SetLabels(map[string]string)                  { panic(immutable) }
func (o *Object) SetAnnotations(map[string]string)             { panic(immutable) }
func (o *Object) SetFinalizers([]string)                       { panic(immutable) }
func (o *Object) SetOwnerReferences([]metav1.OwnerReference)   { panic(immutable) }
func (o *Object) SetManagedFields([]metav1.ManagedFieldsEntry) { panic(immutable) }
