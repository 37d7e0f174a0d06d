package reasons

import (
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/ownerref"
)

// ownersOf are the objects to which an object belongs.
func (s source) ownersOf(o *cluster.Object) []ownerref.ID {
	owners := ownerref.Owners(o)
	for _, label := range s.labels {
		if uid := o.Get(label); uid != "" && uid != o.UID() {
			owners = append(owners, ownerref.Labelled(o, uid))
		}
	}
	return owners
}
