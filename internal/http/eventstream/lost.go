package eventstream

import (
	"strconv"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Identity is all that is told of an object that a client is to forget, because its caller may not
// see it any more, or because it has left a page.
type Identity struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   identityMetadata `json:"metadata"`
	Reason     string           `json:"reason,omitempty"` // why it left a page, if it is still selected
}

type identityMetadata struct {
	Name            string `json:"name"`
	Namespace       string `json:"namespace,omitempty"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
}

// IdentityOf is an object's identity at a version.
func IdentityOf(kind cluster.Kind, o *cluster.Object, version uint64) Identity {
	return Identity{
		APIVersion: kind.APIVersion(), Kind: kind.Kind,
		Metadata: identityMetadata{o.GetName(), o.GetNamespace(), o.UID(), strconv.FormatUint(version, 10)},
	}
}
