package webhook

import (
	"encoding/json"
	"fmt"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
)

// The types of events.
const (
	typeTransition = "io.kubecast.job.transition"
	typeDigest     = "io.kubecast.job.digest"
	typeTest       = "io.kubecast.test"
)

// cloudEvent is a message's content: a CloudEvent 1.0 in its structured form.
type cloudEvent struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Subject         string          `json:"subject,omitempty"`
	Time            jobs.Time       `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	Data            json.RawMessage `json:"data"`
}

// digest is the body of a message of several transitions.
type digest struct {
	Transitions []outbox.Event `json:"transitions"`
}

// eventOf is a message as its CloudEvent, with the same id at each attempt.
func eventOf(m *outbox.Message) (cloudEvent, error) {
	event := cloudEvent{SpecVersion: "1.0", ID: m.ID, Type: typeTransition, DataContentType: "application/json", Data: json.RawMessage(m.Body)}
	if !m.IsDigest() {
		var of outbox.Event
		if err := json.Unmarshal([]byte(m.Body), &of); err != nil {
			return event, fmt.Errorf("the message cannot be read: %w", err)
		}
		t := of.Transition
		event.Source, event.Subject, event.Time = sourceOf(t.Cluster), t.Namespace+"/"+t.Name, t.At
		return event, nil
	}
	event.Type = typeDigest
	var of digest
	if err := json.Unmarshal([]byte(m.Body), &of); err != nil {
		return event, fmt.Errorf("the message cannot be read: %w", err)
	}
	for i, e := range of.Transitions {
		switch source := sourceOf(e.Transition.Cluster); {
		case i == 0:
			event.Source = source
		case event.Source != source:
			event.Source = "/clusters"
		}
		event.Time = max(event.Time, e.Transition.At)
	}
	return event, nil
}

// sourceOf names a cluster as the gateway's paths do.
func sourceOf(cluster string) string { return "/clusters/" + cluster }

// testEvent is what operators have sent to try a target.
func testEvent(id string, now jobs.Time) cloudEvent {
	return cloudEvent{
		SpecVersion: "1.0", ID: id, Source: "/clusters", Type: typeTest, Time: now, DataContentType: "application/json", Data: json.RawMessage(`{}`),
	}
}
