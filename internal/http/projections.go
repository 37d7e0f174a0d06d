package http

import (
	"github.com/kubecast/kubecast/internal/cluster"
)

// keptBytes is how much is kept in memory for all users together only so that it needs not be made again: what was rendered
// of objects, lists that were sorted, snapshots that pages walk.
const keptBytes = 48 << 20

// projected is the wanted part of an object, which is made once for all who want the same: after a restart thousands of
// clients want the same of the same objects, and to make it costs much more than to send it. Of whole objects there is
// nothing to be made, since they are sent as they are kept.
func (ss *session) projected(fields *projection, o *cluster.Object) string {
	if fields == nil {
		return o.JSON()
	}
	return ss.made(o, fields.variant, func() string { return fields.of(o.JSON()) })
}

// made is a text of an object, made now on this user's account, or found made.
func (ss *session) made(o *cluster.Object, variant string, make func() string) string {
	return o.Texts().Get(ss.server.memory, ss.id.Payer(), variant, make)
}
