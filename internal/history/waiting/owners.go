package waiting

import (
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
)

// maxOwners is how many owners of one object are looked at.
const maxOwners = 4

// ownersOf are the uids of whom an object belongs to. They are copies, which may outlive the object.
func (s source) ownersOf(o *cluster.Object) (uids []string) {
	o.Path("metadata.ownerReferences").ForEach(func(_, owner gjson.Result) bool {
		if uid := owner.Get("uid").Str; uid != "" {
			uids = append(uids, strings.Clone(uid))
		}
		return len(uids) < maxOwners
	})
	for _, label := range s.labels {
		if uid := o.Get(label); uid != "" {
			uids = append(uids, strings.Clone(uid))
		}
	}
	return uids
}

// moment reads a time as Kubernetes writes it; what is none is 0.
func moment(text string) history.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Unix() <= 0 {
		return 0
	}
	return history.At(at)
}
