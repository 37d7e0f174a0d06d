package eventstream

import (
	"strconv"

	"github.com/kubecast/kubecast/internal/cluster"
)

// identity is all that is told of an object that the caller may not see any more.
type identity struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   identityMetadata `json:"metadata"`
}

type identityMetadata struct {
	Name            string `json:"name"`
	Namespace       string `json:"namespace,omitempty"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
}

func identityOf(kind cluster.Kind, o *cluster.Object, version uint64) identity {
	return identity{kind.APIVersion(), kind.Kind, identityMetadata{o.GetName(), o.GetNamespace(), o.UID(), strconv.FormatUint(version, 10)}}
}
