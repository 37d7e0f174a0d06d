package recorder

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// keepSpec takes into a batch what a job was told to do, if a transition ended it. That is in the
// same transaction: of a job that is gone, nobody could read it later. A job that had ended before
// it was deleted has been kept then.
func (r *Recorder) keepSpec(b *batch, o *cluster.Object, t *jobs.Transition) {
	if !r.opts.KeepSpec || !t.To.Ended() && (t.To != jobs.Deleted || t.From.Ended()) {
		return
	}
	data, ok := store.Pack(specOf(o))
	if !ok {
		r.opts.Metrics.specs(tooLarge, 1)
		return
	}
	dropped := b.keep(store.Kept{UID: t.UID, Namespace: t.Namespace, Kind: store.KeptSpec, At: t.At, Data: data})
	r.opts.Metrics.specs(tooMany, dropped)
}

// mostKept bounds the specs of a batch, in bytes. Only a first start finds so many jobs that had ended.
const mostKept = 64 << 20

// keeping is the specs of a batch.
type keeping struct {
	of     map[string]store.Kept // by uid
	bytes  int                   // that these take
	shares map[string]*share     // by namespace
}

// share is what a namespace has of the specs of a batch.
type share struct {
	bytes int
	uids  []string // in the order in which they came
}

// keep takes something that is kept of a job into a batch, in place of what was in it. If it is too
// much then, the namespaces that have most give way.
func (b *batch) keep(k store.Kept) (dropped int) {
	all := &b.kept
	if all.of == nil {
		all.of, all.shares = map[string]store.Kept{}, map[string]*share{}
	}
	all.drop(k.UID)
	s := all.shares[k.Namespace]
	if s == nil {
		s = &share{}
		all.shares[k.Namespace] = s
	}
	s.uids, s.bytes = append(s.uids, k.UID), s.bytes+len(k.Data)
	all.of[k.UID], all.bytes = k, all.bytes+len(k.Data)
	for ; all.bytes > mostKept; dropped++ {
		fullest := s
		for _, other := range all.shares {
			if other.bytes > fullest.bytes {
				fullest = other
			}
		}
		all.drop(fullest.uids[len(fullest.uids)-1])
	}
	return dropped
}

// drop takes out what is kept of a job.
func (all *keeping) drop(uid string) {
	k, there := all.of[uid]
	if !there {
		return
	}
	delete(all.of, uid)
	s := all.shares[k.Namespace]
	all.bytes, s.bytes = all.bytes-len(k.Data), s.bytes-len(k.Data)
	i := len(s.uids) - 1 // where it is, but for one that ended again
	for s.uids[i] != uid {
		i--
	}
	s.uids = slices.Delete(s.uids, i, i+1)
}

// keeps are what is kept of jobs, in the order of these: all writers lock rows in one order.
func (b *batch) keeps() []store.Kept {
	all := make([]store.Kept, 0, len(b.kept.of))
	for _, k := range b.kept.of {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b store.Kept) int { return strings.Compare(a.UID, b.UID) })
	return all
}

// wroteSpecs notes what became of specs. Of each namespace that has used up its budget, it is logged once.
func (r *Recorder) wroteSpecs(all []store.Kept) {
	over := 0
	for _, k := range all {
		if !k.Over {
			continue
		}
		if over++; !r.overTold[k.Namespace] {
			r.overTold[k.Namespace] = true
			r.log.Warn("a namespace has used up its budget of what is kept of jobs, so some of their specs are not", "namespace", k.Namespace, "key", "history.keepBudget")
		}
	}
	r.opts.Metrics.specs(overBudget, over)
	r.opts.Metrics.specs(kept, len(all)-over)
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
