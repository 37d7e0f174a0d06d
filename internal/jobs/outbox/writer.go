package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/jobs/wire"
)

// Route says which transitions a target is sent.
type Route struct {
	Name       string
	States     []jobs.State  // to which they lead
	Namespaces []string      // none: all
	Clusters   []string      // by their names for people; none: all
	Digest     time.Duration // how long transitions are gathered for one message; 0: each is a message
}

func (r *Route) wants(tr *jobs.Transition) bool {
	return tr.IsWanted(func(state jobs.State) bool { return slices.Contains(r.States, state) }) && (len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, tr.Namespace))
}

// Event is what a message tells of one transition.
type Event struct {
	Transition wire.Transition `json:"transition"`
	Job        wire.Job        `json:"job"` // as that transition left it
}

// Writer writes a message for each transition that a target wants. It is a store.Writer.
type Writer struct{ routes atomic.Pointer[[]Route] }

// NewWriter returns a writer for targets of different names.
func NewWriter(routes []Route) *Writer {
	w := &Writer{}
	w.SetRoutes(routes)
	return w
}

// SetRoutes replaces the targets, for the transitions that are written from now on.
func (w *Writer) SetRoutes(routes []Route) { w.routes.Store(&routes) }

var columns = []string{"target", "log", "seq", "uid", "id", "at", "due", "attempts", "dead", "body", "answer", "namespace"}

// Write implements store.Writer. What a first start finds is told to nobody, since it happened before anybody asked. Of
// what was found late, only the newest transition of a job is told. Of a job that is a part of another one, none is.
func (w *Writer) Write(ctx context.Context, tx *store.Tx, log store.Log, b store.Batch) error {
	if log.Version == 0 {
		return nil
	}
	routes := *w.routes.Load()
	newest := map[string]uint64{}
	for _, t := range b.Transitions {
		newest[t.UID] = t.Seq
	}
	var rows [][]any
	cluster, now := "", time.Now()
	for i, t := range b.Transitions {
		if t.Late && newest[t.UID] != t.Seq || b.IsOfPart(i) {
			continue
		}
		body := ""
		for n := range routes {
			route := &routes[n]
			if !route.wants(t) {
				continue
			}
			if cluster == "" {
				if err := tx.QueryRow(ctx, "SELECT name FROM logs WHERE id = ?", log.ID).Scan(&cluster); err != nil {
					return fmt.Errorf("find a cluster's name: %w", err)
				}
			}
			if len(route.Clusters) > 0 && !slices.Contains(route.Clusters, cluster) {
				continue
			}
			if body == "" {
				text, err := json.Marshal(Event{
					wire.TransitionOf(t, cluster, log.Resource), wire.JobOf(b.After[i], cluster, log.Resource, t.Observed),
				})
				if err != nil {
					return err
				}
				body = string(text)
			}
			due := jobs.Time(0)
			if route.Digest > 0 {
				due = jobs.At(now.Add(route.Digest))
			}
			rows = append(rows, []any{route.Name, log.ID, int64(t.Seq), t.UID, idOf(log.LogName, t, route.Name), int64(jobs.At(now)), int64(due), 0, 0, body, "", t.Namespace})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	// A row with this key can only be one of a log that was forgotten, whose number the database has given away again.
	if err := tx.Insert(ctx, "outbox", columns, rows, columns[:3], columns[3:]); err != nil {
		return fmt.Errorf("write messages: %w", err)
	}
	return nil
}

// idOf is the id of a message. It is made of what the message tells, and of no number of the
// database: those begin again with another database or a backup, and a receiver would take a
// message for one that it knows. A transition that is written again has the id that it had.
func idOf(log store.LogName, t *jobs.Transition, target string) string {
	return idFrom(
		log.Cluster, log.Resource, t.UID, strconv.FormatUint(t.Version, 10), string(t.From), string(t.To), strconv.Itoa(t.Attempt), target,
	)
}

// idFrom is the id of what its parts say. No two lists of parts are written alike.
func idFrom(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return "msg_" + hex.EncodeToString(sum.Sum(nil)[:16])
}
