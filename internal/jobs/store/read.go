package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
)

// Living are the jobs of a log that are not deleted. Their recorder has to know them to go on.
func (s *Store) Living(ctx context.Context, log Log) ([]*jobs.Job, error) {
	return s.jobs(ctx, `jobs WHERE log = ? AND deleted = 0`, log.ID)
}

// Filter says which jobs or transitions are asked for. Fields that are empty filter nothing.
type Filter struct {
	Namespace string // the only one
	Name      string
	Search    string // the name contains it; of jobs and transitions
	// SearchUntil is when a page ends that looks for that; zero: SearchWithin from now.
	SearchUntil time.Time
	// Within says what the caller may see; nil is everything, and an empty list nothing.
	Within []NamespacedName
	// Living are the namespaces of that name which count for Within; nil is each that ever had the name.
	Living []Namespace
	Own    string       // the owner whose jobs may be seen wherever they are; "" for none
	States []jobs.State // of transitions: the states to which they lead
	Owners []string
	Queues []string
	UIDs   []string
	Causes []string // reasons of causes
	// Parents are the uids of jobs of which the others are parts; only of jobs.
	Parents []string
	Since   jobs.Time // of jobs: of their state; of transitions: at
	Until   jobs.Time // exclusive; 0: no end
}

// NamespacedName is a namespace, or the objects of a name in it; a Namespace of "*" is any.
type NamespacedName struct{ Namespace, Name string }

// AnyNamespace is the Namespace of a NamespacedName in all of them.
const AnyNamespace = "*"

// where collects conditions.
type where struct {
	texts []string
	args  []any
}

func (w *where) add(text string, args ...any) {
	w.texts = append(w.texts, text)
	w.args = append(w.args, args...)
}

func (w *where) String() string { return "WHERE " + strings.Join(w.texts, " AND ") }

func oneOf[T ~string](w *where, column string, values []T) {
	if len(values) == 0 {
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = string(v)
	}
	w.add(column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")", args...)
}

// where are the conditions of a filter on a table, of which these columns are the state and the time.
func (s *Store) where(f Filter, log Log, table, state, time string) *where {
	w := &where{}
	w.add("log = ?", log.ID)
	if f.Namespace != "" {
		w.add("namespace = ?", f.Namespace)
	}
	if f.Name != "" {
		w.add("name = ?", f.Name)
	}
	if f.Search != "" {
		w.add(s.dialect.contains("name"), f.Search)
	}
	if f.Within != nil {
		w.within(s.dialect, f, log, table)
	}
	oneOf(w, state, f.States)
	oneOf(w, "owner", f.Owners)
	oneOf(w, "queue", f.Queues)
	oneOf(w, "uid", f.UIDs)
	oneOf(w, "parent_uid", f.Parents)
	oneOf(w, "cause_reason", f.Causes)
	if f.Since != 0 {
		w.add(time+" >= ?", int64(f.Since))
	}
	if f.Until != 0 {
		w.add(time+" < ?", int64(f.Until))
	}
	return w
}

// within is that a row is in one of the namespaces that a filter has, or one of its objects, or of its
// owner. Those of one sort are one list, however many they are: SQLite takes a time that grows with
// the square of the conditions that stand in one OR.
func (w *where) within(d dialect, f Filter, log Log, table string) {
	var namespaces, names []string
	var objects []any // namespace and name, one after the other
	for _, p := range f.Within {
		switch {
		case p.Name == "" && p.Namespace == AnyNamespace:
			return
		case p.Name == "":
			namespaces = append(namespaces, p.Namespace)
		case p.Namespace == AnyNamespace:
			names = append(names, p.Name)
		default:
			objects = append(objects, p.Namespace, p.Name)
		}
	}
	here := &where{}
	oneOf(here, "namespace", namespaces)
	if len(objects) > 0 {
		here.add("(namespace, name) IN "+d.pairs(len(objects)/2), objects...)
	}
	any := &where{}
	if text := strings.Join(here.texts, " OR "); text != "" && f.Living != nil {
		living, args := livingIn(log, table, f.Living)
		any.add("(("+text+") AND "+living+")", append(here.args, args...)...)
	} else if text != "" {
		any.add(text, here.args...)
	}
	oneOf(any, "name", names)
	if f.Own != "" {
		any.add("owner = ?", f.Own)
	}
	if len(any.texts) == 0 {
		any.add("1 = 0")
	}
	w.add("("+strings.Join(any.texts, " OR ")+")", any.args...)
}

// JobAfter is where a page of jobs ended; the zero value is before the first.
type JobAfter struct {
	Created jobs.Time
	UID     string
}

func (s *Store) jobs(ctx context.Context, from string, args ...any) (found []*jobs.Job, err error) {
	err = s.Each(ctx, func(scan Scan) error {
		j := &jobs.Job{}
		var spentText, requests string
		var reasons sql.NullString
		var ran sql.NullInt64
		var uid, counts, cause sql.NullString
		var parent [3]sql.NullString
		var done, of sql.NullInt64
		var late [2]sql.NullBool
		if err := scan(&j.UID, &j.Namespace, &j.Name, &j.Owner, &j.Queue, &j.State, &j.Since, &j.Reason, &j.Message, &j.Attempt,
			&j.Version, &j.Created, &j.Started, &j.Ended, &j.Deleted, &spentText, &requests, &reasons, &ran, &uid, &counts, &parent[0], &parent[1], &parent[2], &done, &of, &late[0], &late[1], &cause); err != nil {
			return err
		}
		var err error
		if j.Spent, err = spentOf(spentText); err != nil {
			return fmt.Errorf("job %s: %w", j.UID, err)
		}
		if err := json.Unmarshal([]byte(requests), &j.Requests); err != nil {
			return fmt.Errorf("job %s: %w", j.UID, err)
		}
		if reasons.String != "" {
			if err := json.Unmarshal([]byte(reasons.String), &j.Reasons); err != nil {
				return fmt.Errorf("job %s: %w", j.UID, err)
			}
		}
		if counts.String != "" {
			if err := json.Unmarshal([]byte(counts.String), &j.Counts); err != nil {
				return fmt.Errorf("job %s: %w", j.UID, err)
			}
		}
		j.BeganLate, j.StoppedLate = late[0].Bool, late[1].Bool
		if err := readCause(&j.Cause, cause); err != nil {
			return fmt.Errorf("job %s: %w", j.UID, err)
		}
		if ran.Int64 != stillRuns {
			j.RanUntil = jobs.Time(ran.Int64)
		}
		j.NamespaceUID = uid.String
		j.Parent = jobs.Ref{Resource: parent[0].String, Name: parent[1].String, UID: parent[2].String}
		j.Progress = jobs.Progress{Done: done.Int64, Of: of.Int64}
		found = append(found, j)
		return nil
	}, "SELECT "+strings.Join(jobColumns[1:len(jobColumns)-2], ", ")+" FROM "+from, args...) // all but the log, and those that only indexes need
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	return found, nil
}

// spentOf reads the time that a job spent in each state.
func spentOf(text string) (map[jobs.State]time.Duration, error) {
	var spent map[jobs.State]int64
	if err := json.Unmarshal([]byte(text), &spent); err != nil || len(spent) == 0 {
		return nil, err
	}
	all := make(map[jobs.State]time.Duration, len(spent))
	for state, ms := range spent {
		all[state] = time.Duration(ms) * time.Millisecond
	}
	return all, nil
}

// TransitionsAfter are the transitions between two numbers, in order. The work depends on how many lie between the two,
// however few of them the filter leaves.
func (s *Store) TransitionsAfter(ctx context.Context, log Log, f Filter, after, upTo uint64, limit int) ([]*jobs.Transition, error) {
	w := s.where(f, log, "transitions", "to_state", "at")
	w.add("seq > ?", int64(after))
	w.add("seq <= ?", int64(upTo))
	return s.transitions(ctx, log, "transitions "+w.String()+" ORDER BY seq LIMIT ?", append(w.args, limit)...)
}

func (s *Store) transitions(ctx context.Context, log Log, from string, args ...any) (found []*jobs.Transition, err error) {
	var unknown []*jobs.Transition
	err = s.Each(ctx, func(scan Scan) error {
		t, uid, cause := &jobs.Transition{}, sql.NullString{}, sql.NullString{}
		err := scan(&t.Seq, &t.UID, &t.Namespace, &t.Name, &t.Version, &t.From, &t.To, &t.At, &t.Observed, &t.Late, &t.Attempt,
			&t.Reason, &t.Message, &t.Owner, &t.Queue, &uid, &cause)
		if err == nil {
			err = readCause(&t.Cause, cause)
		}
		if t.NamespaceUID = uid.String; !uid.Valid && t.Namespace != "" {
			unknown = append(unknown, t)
		}
		found = append(found, t)
		return err
	}, "SELECT "+strings.Join(transitionColumns[1:len(transitionColumns)-1], ", ")+" FROM "+from, args...)
	if err == nil {
		err = s.fromJobs(ctx, log, unknown)
	}
	if err != nil {
		return nil, fmt.Errorf("read transitions: %w", err)
	}
	return found, nil
}
