package wire

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// Digests that wait to be sent are kept as they are told: what was written is read again.
func TestQueuesAreReadAsTheyAreWritten(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, q := range map[string]Queue{
		`""`: {}, `"line"`: {Name: "line"},
		`{"name":"line","position":null,"clusterPosition":null,"starts":null}`:                                                                   {"line", &Place{}},
		`{"name":"line","position":1,"clusterPosition":2,"starts":{"from":"2026-01-02T03:04:05Z","to":"2026-01-02T03:04:05Z","confidence":0.8}}`: {"line", &Place{new(1), new(2), &Starts{at, at, 0.8}}},
	} {
		written, err := json.Marshal(q)
		if err != nil || string(written) != text {
			t.Errorf("%s, not %s (%v)", written, text, err)
		}
		again := Queue{Name: "before", Place: &Place{}}
		if err := json.Unmarshal(written, &again); err != nil || !reflect.DeepEqual(again, q) {
			t.Errorf("%s is read as %+v (%v)", text, again, err)
		}
	}
	if err := json.Unmarshal([]byte(`[]`), &Queue{}); err == nil {
		t.Error("a list is taken for a queue")
	}
}
