package cluster

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecast/kubecast/internal/budget"
)

// Object is one Kubernetes object: its compact JSON, and the few values in it that the gateway itself reads.
//
// All strings of an Object are parts of its JSON, so it costs the JSON and about a hundred bytes. It implements
// runtime.Object and metav1.Object for client-go's informers, and labels.Labels for selectors. It is never modified.
type Object struct {
	json      string
	namespace string
	name      string
	uid       string
	labels    string // the labels as a JSON object in canonical form; "" without any
	version   uint64
	created   int64 // seconds since 1970; 0 if absent

	texts budget.Texts // renderings for clients; not counted in Size, but in the budget of the caller that has them made
}

// NewObject reads one object from its JSON, which must be valid and compact. An object without a name or a numeric
// resourceVersion is an error. The string is kept.
func NewObject(json string) (*Object, error) {
	o, version, err := readObject(json)
	if err != nil {
		return nil, err
	}
	if o.version, err = ParseVersion(version); err != nil {
		return nil, fmt.Errorf("object %s: %w", o.Key(), err)
	}
	return o, nil
}

// NewBookmark returns the object of a bookmark from its JSON: it has metadata, but no name.
func NewBookmark(json string) *Object { return &Object{json: json} }

// readObject reads an object but for its version, which it returns as it is written, if there is one.
func readObject(json string) (o *Object, version string, err error) {
	metadata := gjson.Get(json, "metadata")
	if !metadata.IsObject() {
		return nil, "", errors.New("object without metadata")
	}
	o = &Object{json: json}
	metadata.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "namespace":
			o.namespace = value.Str
		case "name":
			o.name = value.Str
		case "uid":
			o.uid = value.Str
		case "resourceVersion":
			version = value.Str
		case "labels":
			if value.IsObject() && plainLabels(value.Raw) {
				o.labels = value.Raw
			}
		case "creationTimestamp":
			if t, err := time.Parse(time.RFC3339, value.Str); err == nil {
				o.created = t.Unix()
			}
		}
		return true
	})
	if o.name == "" {
		return nil, "", errors.New("object without metadata.name")
	}
	return o, version, nil
}

// ParseVersion reads a resourceVersion as a number, since Kubernetes' API conventions allow clients to compare them
// (KEP-5504): decimal digits without a leading zero, except for "0" itself.
func ParseVersion(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || len(s) > 1 && s[0] == '0' || s[0] == '+' {
		return 0, fmt.Errorf("resourceVersion %q %w", s, ErrNoNumber)
	}
	return v, nil
}

// ErrNoNumber means that a resourceVersion is not a number. A kind whose versions are none cannot
// be served: what has been told of it could not be compared with what there is.
var ErrNoNumber = errors.New("is not a number")

// JSON is the object as it is sent to clients: compact, on one line.
func (o *Object) JSON() string { return o.json }

// Size is about how many bytes the object occupies.
func (o *Object) Size() int { return len(o.json) + 128 }

// Texts are the renderings of the object that were made for clients.
func (o *Object) Texts() *budget.Texts { return &o.texts }

// Version is the resourceVersion as a number.
func (o *Object) Version() uint64 { return o.version }

// Sum is a check sum of the JSON. It tells apart what an object has at one version: when its
// definition changes, it has other defaults.
func (o *Object) Sum() uint32 {
	return crc32.ChecksumIEEE(unsafe.Slice(unsafe.StringData(o.json), len(o.json))) // which only reads, and so need not copy it
}

// ObjectIdentity tells an object from all others, also from one that had its name before.
type ObjectIdentity struct{ Namespace, Name, UID string }

// Identity is that of the object, in whatever state.
func (o *Object) Identity() ObjectIdentity { return ObjectIdentity{o.namespace, o.name, o.uid} }

// UID is the object's uid as a string; metav1.Object's GetUID has another type.
func (o *Object) UID() string { return o.uid }

// Key is namespace/name, or only the name for objects without a namespace.
func (o *Object) Key() string {
	if o.namespace == "" {
		return o.name
	}
	return o.namespace + "/" + o.name
}

// Created is the creation time in seconds since 1970, or 0.
func (o *Object) Created() int64 { return o.created }

// Path looks up a value by its gjson path.
func (o *Object) Path(path string) gjson.Result { return gjson.Get(o.json, path) }

// WithVersion is the object with another resourceVersion. An object that ceased to match, or that a relist found
// gone, is told in this form: as it last was, with the version of the event. The API server's watch cache does the
// same.
func (o *Object) WithVersion(version uint64) *Object {
	if version == o.version {
		return o
	}
	at := gjson.Get(o.json, "metadata.resourceVersion")
	moved, err := NewObject(o.json[:at.Index] + strconv.Quote(strconv.FormatUint(version, 10)) + o.json[at.Index+len(at.Raw):])
	if err != nil {
		panic("cluster: an object stopped being one with another resourceVersion: " + err.Error())
	}
	return moved
}

// A progress marker is an Object that stands for no object: it says that everything up to its version has been
// delivered. It travels through client-go's queue between the objects. So a store learns of bookmarks, and of the
// ends of lists, in the right order. No real object can have its name.
const markerName = "\x00progress"

func newMarker(version uint64) *Object { return &Object{name: markerName, version: version} }

// newProof is a marker that also says that a watch stands.
func newProof(version uint64, watch int64) *Object {
	return &Object{name: markerName, version: version, created: watch}
}

// Proves is the number of the watch (see Health.Up) that has been proved to stand by what was
// delivered before this marker; 0: the marker proves nothing.
func (o *Object) Proves() (watch int64) { return o.created }

// IsMarker reports whether this is a progress marker.
func (o *Object) IsMarker() bool { return o.name == markerName }

// Compare orders objects as etcd orders them, by the string namespace/name. That is the order of Kubernetes' lists.
func Compare(namespaceA, nameA, namespaceB, nameB string) int {
	if namespaceA == namespaceB {
		return strings.Compare(nameA, nameB)
	}
	shorter := min(len(namespaceA), len(namespaceB))
	if c := strings.Compare(namespaceA[:shorter], namespaceB[:shorter]); c != 0 {
		return c
	}
	// One is a prefix of the other, so '/' is compared with a character of the longer one; '-' and '.' are less than
	// '/'.
	if len(namespaceA) < len(namespaceB) {
		return compareByte('/', namespaceB[shorter])
	}
	return compareByte(namespaceA[shorter], '/')
}

func compareByte(a, b byte) int {
	if a < b {
		return -1
	}
	return 1
}

// GetObjectKind is empty: the kind is in the JSON, and informers do not look at it here.
func (o *Object) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the object itself, since it is never modified.
func (o *Object) DeepCopyObject() runtime.Object { return o }

// Probe returns an Object with nothing but a key, for searches in ordered trees.
func Probe(namespace, name string) *Object { return &Object{namespace: namespace, name: name} }
