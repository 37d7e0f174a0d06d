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
// after it was written. Until then the cause is what the job itself says. Of a transition that is kept no more, it says
// what it said.
func (b *Store) Explain(ctx context.Context, m *Message) error {
	var body struct {
		Transitions []Event `json:"transitions"`
	}
	var whole any = &body
	if !m.IsDigest() {
		body.Transitions = make([]Event, 1)
		whole = &body.Transitions[0]
	}
	if json.Unmarshal([]byte(m.Body), whole) != nil {
		return nil // whoever sends it finds that out
	}
	learned, err := b.explain(ctx, body.Transitions)
	if err != nil || !learned {
		return err
	}
	text, _ := json.Marshal(whole) // it was made of this
	m.Body = string(text)
	return nil
}

// explain does so for some events, and reports whether a cause of any of them is known.
func (b *Store) explain(ctx context.Context, events []Event) (learned bool, err error) {
	type list struct{ cluster, resource string }
	asked := map[list]map[uint64]*Event{}
	for i := range events {
		e := &events[i]
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
	for in, of := range asked {
		for some := range slices.Chunk(slices.Sorted(maps.Keys(of)), explainedAtOnce) {
			uids := make(map[uint64]string, len(some))
			for _, seq := range some {
				uids[seq] = of[seq].Transition.UID
			}
			known, err := b.database.ExplainedOf(ctx, in.cluster, in.resource, uids)
			if err != nil {
				return false, fmt.Errorf("read why jobs ended: %w", err)
			}
			for seq, why := range known {
				if why.Cause == nil {
					continue
				}
				e := of[seq]
				e.Transition.Cause, e.Transition.Reason, e.Transition.Message, e.Job.Cause = why.Cause, why.Reason, why.Message, why.Cause
				learned = true
			}
		}
	}
	return learned, nil
}
