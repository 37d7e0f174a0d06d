package service

import (
	"context"
	"errors"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// What is a log that readers follow: the transitions of a kind's jobs, or the runs of their pods.
type What string

// The logs of a kind.
const (
	Transitions What = "transitions"
	Runs        What = "runs"
)

// Numbering is the log whose numbers something of a kind has, as Reader.Numbers takes it. The runs
// of all kinds have those of one log, so to callers who may see all of a kind they tell more than
// that.
func (w What) Numbering(kind string) string {
	if w == Runs {
		return store.RunsResource
	}
	return kind
}

// Creations is what seals when jobs of a kind were created, as Reader.Numbers takes it.
func Creations(kind string) string { return kind + " created" }

// LogRecord is what a log has under a number: a transition, or a run as it is since.
type LogRecord struct {
	Seq        uint64
	Transition *jobs.Transition // nil of a run
	Run        *store.Run       // nil of a transition
}

// Namespace is the namespace that it is in, by name and uid; the uid is "" if it is not known which
// namespace of that name.
func (c LogRecord) Namespace() (name, uid string) {
	if c.Run != nil {
		return c.Run.Namespace, c.Run.NamespaceUID
	}
	return c.Transition.Namespace, c.Transition.NamespaceUID
}

// Matches reports whether the database would find it with a filter.
func (c LogRecord) Matches(f store.Filter) bool {
	if c.Run != nil {
		return f.MatchesRun(c.Run)
	}
	return f.Matches(c.Transition)
}

// changesAfter reads what follows a number, in order.
func changesAfter(ctx context.Context, db *store.Store, what What, log store.Log, f store.Filter, after, upTo uint64, limit int) (found []LogRecord, err error) {
	if what == Runs {
		runs, err := db.RunsAfter(ctx, log, f, after, upTo, limit)
		return ofRuns(runs), err
	}
	transitions, err := db.TransitionsAfter(ctx, log, f, after, upTo, limit)
	return ofTransitions(transitions), err
}

func ofRuns(runs []*store.Run) []LogRecord {
	all := make([]LogRecord, len(runs))
	for i, r := range runs {
		all[i] = LogRecord{Seq: r.Seq, Run: r}
	}
	return all
}

func ofTransitions(transitions []*jobs.Transition) []LogRecord {
	all := make([]LogRecord, len(transitions))
	for i, t := range transitions {
		all[i] = LogRecord{Seq: t.Seq, Transition: t}
	}
	return all
}

// numbered is where the log stands that has the numbers of a kind's log; nowhere if there is none.
// That of transitions is the kind's own, as it was given.
func numbered(ctx context.Context, db *store.Store, what What, log store.Log) (store.Log, error) {
	if what == Transitions {
		return log, nil
	}
	log.Resource = what.Numbering(log.Resource)
	found, err := db.Find(ctx, log.LogName)
	if errors.Is(err, store.ErrNoLog) {
		return store.Log{LogName: log.LogName}, nil
	}
	return found, err
}
