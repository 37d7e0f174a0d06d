package eventstream

import (
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/render"
)

// projected is the wanted part of an object, which is made once for all who want the same: after a restart thousands of
// clients want the same of the same objects, and to make it costs much more than to send it. Of whole objects there is
// nothing to be made, since they are sent as they are kept.
func (ss *session) projected(fields *render.Fields, o *cluster.Object) string {
	if fields == nil {
		return o.JSON()
	}
	return ss.made(o, fields.Variant, func() string { return fields.Of(o.JSON()) })
}

// made is a text of an object, made now on this user's account, or found made.
func (ss *session) made(o *cluster.Object, variant string, make func() string) string {
	return o.Texts().Get(ss.hub.opts.Memory, ss.id.Payer(), variant, make)
}
