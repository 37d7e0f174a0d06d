package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// explainedAtOnce is of how many transitions it is asked at a time why they came.
const explainedAtOnce = 100

// Explain has a message say why jobs came to their states, as it is known by now: how their pods ended may have been read
// after it was written. Until then the cause is what the job itself says. Of a
// transition that is kept no more, it says what it said.
func (b *Store) Explain(ctx context.Context, m *Message) error {
	var body struct {
		Transitions []Event `json:"transitions"`
	}
	if !m.IsDigest() {
		body.Transitions = make([]Event, 1)
		if json.Unmarshal([]byte(m.Body), &body.Transitions[0]) != nil {
			return nil // whoever sends it finds that out
		}
	} else if json.Unmarshal([]byte(m.Body), &body) != nil {
		return nil
	}
	type list struct{ cluster, resource string }
	asked := map[list]map[uint64]*Event{}
	for i := range body.Transitions {
		e := &body.Transitions[i]
		seq, err := strconv.ParseUint(e.Transition.Seq, 10, 64)
		if err != nil || !e.Transition.To.HasCause() {
			continue
		}
		in := list{e.Transition.Cluster, e.Transition.Resource}
		if asked[in] == nil {
			asked[in] = map[uint64]*Event{}
		}
		asked[in][seq] = e
	}
	learned := false
	for in, events := range asked {
		for some := range slices.Chunk(slices.Sorted(maps.Keys(events)), explainedAtOnce) {
			uids := make(map[uint64]string, len(some))
			for _, seq := range some {
				uids[seq] = events[seq].Transition.UID
			}
			known, err := b.database.ExplainedOf(ctx, in.cluster, in.resource, uids)
			if err != nil {
				return fmt.Errorf("read why jobs ended: %w", err)
			}
			for seq, why := range known {
				if why.Cause == nil {
					continue
				}
				e := events[seq]
				e.Transition.Cause, e.Transition.Reason, e.Transition.Message, e.Job.Cause = why.Cause, why.Reason, why.Message, why.Cause
				learned = true
			}
		}
	}
	if !learned {
		return nil
	}
	var text []byte
	if m.IsDigest() {
		text, _ = json.Marshal(body) // it was made of this
	} else {
		text, _ = json.Marshal(body.Transitions[0])
	}
	m.Body = string(text)
	return nil
}
