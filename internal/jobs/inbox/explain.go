package inbox

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/jobs/wire"
)

// questions are the transitions of which it is asked why, by their log and number, with where their texts stand.
type questions map[store.LogName]map[uint64][]*json.RawMessage

func (q questions) ask(cluster string, text *json.RawMessage) {
	var t wire.Transition
	if json.Unmarshal(*text, &t) != nil || !t.To.HasCause() {
		return
	}
	seq, err := strconv.ParseUint(t.Seq, 10, 64)
	if err != nil {
		return
	}
	log := store.LogName{Cluster: cluster, Resource: t.Resource}
	if q[log] == nil {
		q[log] = map[uint64][]*json.RawMessage{}
	}
	q[log][seq] = append(q[log][seq], text)
}

// explain has rows say why, as it is known by now. A row was written when its transition was, and how the pods of its job
// ended may have been read after that. Of a transition that is kept no more, the row says what it said.
func explain(ctx context.Context, from *store.Store, found []row) error {
	asked := questions{}
	bodies := make([]json.RawMessage, len(found))
	digests := map[int]*digest{}
	for n, r := range found {
		switch r.kind {
		case kindMark:
		case kindDigest:
			d := &digest{}
			if json.Unmarshal([]byte(r.body), d) != nil {
				continue
			}
			digests[n] = d
			for i := range d.Items {
				asked.ask(d.Items[i].Cluster, &d.Items[i].Transition)
			}
		default:
			bodies[n] = json.RawMessage(r.body)
			asked.ask(r.job.Cluster, &bodies[n])
		}
	}
	for log, texts := range asked {
		for some := range slices.Chunk(slices.Sorted(maps.Keys(texts)), atOnce) {
			known, err := from.Explained(ctx, log, some)
			if err != nil {
				return err
			}
			for seq, why := range known {
				for _, text := range texts[seq] {
					*text = explained(*text, why)
				}
			}
		}
	}
	for n := range found {
		if d := digests[n]; d != nil {
			text, _ := json.Marshal(d) // it was made of this
			found[n].body = string(text)
		} else if bodies[n] != nil {
			found[n].body = string(bodies[n])
		}
	}
	return nil
}

// explained is the text of a transition with what is known of why it came.
func explained(text json.RawMessage, why store.Explanation) json.RawMessage {
	var t wire.Transition
	if json.Unmarshal(text, &t) != nil {
		return text
	}
	t.Cause, t.Reason, t.Message = why.Cause, why.Reason, why.Message
	text, _ = json.Marshal(t) // it was made of this
	return text
}
