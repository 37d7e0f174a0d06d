package recorder

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/store"
)

// keepSpec takes into a batch what a job was told to do, if a transition ended it. That is in the same transaction: of a job that is gone, nobody
// could read it later. A job that had ended before it was deleted has been kept then.
func (r *Recorder) keepSpec(b *batch, o *cluster.Object, t *history.Transition) {
	if !r.opts.KeepSpec || !t.To.Ended() && (t.To != history.Deleted || t.From.Ended()) || b.keptBytes > mostKept {
		return
	}
	data, ok := store.Pack(specOf(o))
	if !ok {
		return // too large
	}
	b.keep(store.Kept{UID: t.UID, Kind: store.KeptSpec, At: t.At, Data: data})
}

// mostKept bounds the specs of a batch, in bytes. Only a first start finds so many jobs that had ended.
const mostKept = 64 << 20

// keep takes something that is kept of a job into a batch, in place of what was in it.
func (b *batch) keep(k store.Kept) {
	if b.kept == nil {
		b.kept = map[string]store.Kept{}
	}
	b.keptBytes += len(k.Data) - len(b.kept[k.UID].Data)
	b.kept[k.UID] = k
}

// keeps are what is kept of jobs, in the order of these: all writers lock rows in one order.
func (b *batch) keeps() []store.Kept {
	all := make([]store.Kept, 0, len(b.kept))
	for _, k := range b.kept {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b store.Kept) int { return strings.Compare(a.UID, b.UID) })
	return all
}

// specOf is an object without its status.
func specOf(o *cluster.Object) []byte {
	spec := make([]byte, 0, len(o.JSON()))
	spec = append(spec, '{')
	gjson.Parse(o.JSON()).ForEach(func(key, value gjson.Result) bool {
		if key.Str == "status" {
			return true
		}
		if len(spec) > 1 {
			spec = append(spec, ',')
		}
		spec = append(append(append(spec, key.Raw...), ':'), value.Raw...)
		return true
	})
	return append(spec, '}')
}
