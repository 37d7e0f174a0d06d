package eventstream

import (
	"strconv"

	"github.com/kubecast/kubecast/internal/cluster"
)

// LostObject is all that is told of an object that a client is to forget, because its caller may not
// see it any more, or because it has left a page.
type LostObject struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   lostMetadata `json:"metadata"`
	Reason     string       `json:"reason,omitempty"` // why it left a page, if it is still selected
}

type lostMetadata struct {
	Name            string `json:"name"`
	Namespace       string `json:"namespace,omitempty"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
}

// LostObjectOf is an object's identity at a version.
func LostObjectOf(kind cluster.Kind, o *cluster.Object, version uint64) LostObject {
	return LostObject{
		APIVersion: kind.APIVersion(), Kind: kind.Kind,
		Metadata: lostMetadata{o.GetName(), o.GetNamespace(), o.UID(), strconv.FormatUint(version, 10)},
	}
}
