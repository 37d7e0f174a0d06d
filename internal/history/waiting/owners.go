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

// ownersOf are the uids of the objects to which an object belongs. They are copies, since they may outlive the object.
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

// moment reads a time as Kubernetes writes it; 0 if the text is no time.
func moment(text string) history.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Unix() <= 0 {
		return 0
	}
	return history.At(at)
}
