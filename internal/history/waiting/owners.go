package waiting

import (
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
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

// moment reads a time as Kubernetes writes it; 0 if the text is no time.
func moment(text string) history.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Unix() <= 0 {
		return 0
	}
	return history.At(at)
}
