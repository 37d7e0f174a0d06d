package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
)

// RunsResource is the Resource of the log of the pods of a cluster. No kind has such a name, since
// it would be one of the core group.
const RunsResource = "runs"

// Run is the life of a pod, and whose it is.
type Run struct {
	*jobs.Run
	Seq uint64 // the number of its last change; only of one that was read
	// Of is the log of its job; 0 as long as the job is not known. Nobody is shown a run before,
	// and its row says which job it waits for.
	Of           int64
	Parked       bool // its row was written before its job was known
	Owner, Queue string
	Gone         jobs.Time // its pod was removed from the cluster, whatever came before
	Late         bool      // something of it was found later, by comparing
}

// Gone is a pod that was removed from its cluster.
type Gone struct {
	Pod string // its uid
	Of  int64  // as Run's
	At  jobs.Time
}

var runColumns = strings.Fields("log pod pods seq namespace namespace_uid pod_name resource uid name owner queue version ordinal node created scheduled started ended gone late " +
	"restarts reason message container exit_code exit_signal requests devices end_version")

// changingColumns are those that are not in a runPlace, and so in no index but for the number.
var changingColumns = slices.DeleteFunc(slices.Clone(runColumns), func(column string) bool {
	return slices.Contains(strings.Fields("log pod pods namespace uid name owner queue created gone"), column)
})

// home is the log in which a run's row is.
func home(pods Log, of int64) int64 {
	if of == 0 {
		return pods.ID
	}
	return of
}

func runRow(pods Log, seq uint64, r *Run) ([]any, error) {
	requests, err := json.Marshal(r.Requests)
	if err != nil {
		return nil, err
	}
	devices := ""
	if len(r.Devices) > 0 {
		text, err := json.Marshal(r.Devices)
		if err != nil {
			return nil, err
		}
		devices = string(text)
	}
	return []any{home(pods, r.Of), r.UID, pods.ID, int64(seq), r.Namespace, known(r.NamespaceUID), r.Name, r.Job.Resource, r.Job.UID, r.Job.Name, r.Owner, r.Queue,
		int64(r.Version), r.Index, r.Node, int64(r.Created), int64(r.Scheduled), int64(r.Started), int64(r.Ended), int64(r.Gone), asInt(r.Late),
		r.Restarts, r.Reason, r.Message, r.Container, number(r.ExitCode), number(r.Signal), string(requests), devices, int64(r.EndVersion)}, nil
}

func number(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

// writeRuns writes runs with their numbers, which begin behind the log's. A run whose job has
// become known moves to its job's log.
func (s *Store) writeRuns(ctx context.Context, tx *Tx, pods Log, b Batch) error {
	places, err := s.countWritten(ctx, tx, b.Runs)
	if err != nil {
		return err
	}
	var rows, staying [][]any
	var moved []string
	for i, r := range b.Runs {
		row, err := runRow(pods, pods.Seq+1+uint64(i), r)
		if err != nil {
			return err
		}
		if at, ok := places[r.UID]; ok && at == r.place(pods) && s.dialect.rewritesIndexes() {
			staying = append(staying, row)
		} else {
			rows = append(rows, row)
		}
		if r.Parked && r.Of != 0 {
			moved = append(moved, r.UID)
		}
	}
	if err := s.inParts(pods.ID, "pod", moved, func(w *where) error {
		_, err := deleteFrom(ctx, tx, "runs", w)
		return err
	}); err != nil {
		return err
	}
	if err := tx.Insert(ctx, "runs", runColumns, rows, runColumns[:2], runColumns[2:]); err != nil {
		return err
	}
	if err := tx.Insert(ctx, "runs", runColumns, staying, runColumns[:2], changingColumns); err != nil {
		return err
	}
	for part := range slices.Chunk(b.Gone, batchOfKeys) {
		in, at := map[int64][]string{}, jobs.Time(0)
		for _, g := range part {
			in[home(pods, g.Of)], at = append(in[home(pods, g.Of)], g.Pod), max(at, g.At)
		}
		for _, log := range slices.Sorted(maps.Keys(in)) {
			w := &where{}
			w.add("log = ?", log)
			oneOf(w, "pod", in[log])
			if _, err := tx.Exec(ctx, "UPDATE runs SET gone = ? "+w.String(), append([]any{int64(at)}, w.args...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// oneOf is that a column has one of some keys: as one argument where there are arrays, so that
// there is one statement to prepare however many they are.
func (s *Store) oneOf(w *where, column string, keys []string) {
	if s.dialect.arrays() {
		w.add(column+" = ANY(?::text[])", keys)
	} else {
		oneOf(w, column, keys)
	}
}

// batchOfKeys is how many rows are named in one statement.
const batchOfKeys = 500

// inParts calls do with the condition that rows are of a log and have one of some keys, for as many
// keys at a time as may be named.
func (s *Store) inParts(log int64, column string, keys []string, do func(*where) error) error {
	for part := range slices.Chunk(keys, batchOfKeys) {
		w := &where{}
		w.add("log = ?", log)
		s.oneOf(w, column, part)
		if err := do(w); err != nil {
			return err
		}
	}
	return nil
}

// LivingRuns are the runs of a log of pods whose pods are still in the cluster, ended ones too, and
// the newest of those that are gone and whose jobs are not known. Their recorder has to know them
// to go on.
func (s *Store) LivingRuns(ctx context.Context, pods Log) ([]*Run, error) {
	living, err := s.runs(ctx, pods, "runs"+s.dialect.use("runs_gone")+" WHERE pods = ? AND gone = 0", pods.ID)
	if err != nil {
		return nil, err
	}
	parked, err := s.parkedRuns(ctx, pods)
	return append(living, parked...), err
}

// OwningJob is a job as its runs and parts need it.
type OwningJob struct {
	Of                                    int64
	Namespace, Owner, Queue, NamespaceUID string
	Deleted                               jobs.Time // as jobs.Job's
	Parent                                jobs.Ref  // likewise
}

// Owns reports whether something of a namespace that was made at a time may belong to the job.
// Whoever makes it can name a job of another namespace, or one that was in a former namespace of
// that name: nothing is made in that one after all that was in it is gone. What is made within
// moments of the deletion counts as the job's: its controller may not have heard of that yet, and
// when it was is known to a second.
func (j OwningJob) Owns(namespace string, created jobs.Time) bool {
	return j.Namespace == namespace && (j.Deleted == 0 || created <= j.Deleted+jobs.Time(deletionSlack.Milliseconds()))
}

// deletionSlack is for how long after its deletion something may still be made for a job.
const deletionSlack = 5 * time.Second

// JobsOf finds jobs of a cluster by kind and uid. Those that are not recorded are not found.
func (s *Store) JobsOf(ctx context.Context, cluster string, wanted map[string][]string) (map[jobs.Ref]OwningJob, error) {
	found := map[jobs.Ref]OwningJob{}
	for resource, uids := range wanted {
		for part := range slices.Chunk(uids, batchOfKeys) {
			w := &where{}
			w.add("log = (SELECT id FROM logs WHERE cluster = ? AND resource = ?)", cluster, resource)
			s.oneOf(w, "uid", part)
			if err := s.Each(ctx, func(scan Scan) error {
				ref, job, namespace, parent := jobs.Ref{Resource: resource}, OwningJob{}, sql.NullString{}, [3]sql.NullString{}
				err := scan(&job.Of, &ref.UID, &job.Namespace, &ref.Name, &job.Owner, &job.Queue, &namespace, &job.Deleted, &parent[0], &parent[1], &parent[2])
				job.NamespaceUID, job.Parent = namespace.String, jobs.Ref{Resource: parent[0].String, Name: parent[1].String, UID: parent[2].String}
				found[ref] = job
				return err
			}, "SELECT log, uid, namespace, name, owner, queue, namespace_uid, deleted, parent_resource, parent_name, parent_uid FROM jobs "+w.String(), w.args...); err != nil {
				return nil, fmt.Errorf("find the jobs of pods: %w", err)
			}
		}
	}
	return found, nil
}

// RunAfter is where a page of runs ended; the zero value is before the first.
type RunAfter struct {
	Created jobs.Time
	Pod     string
}

// Runs is a page of the runs of a log's jobs, the newest first: ordered by the creation of their
// pods, then by these' uids. If there are fewer than the limit, there are no more. States, causes
// and parents of the filter do not count; its times are those of creation, and all else is asked of
// the jobs.
func (s *Store) Runs(ctx context.Context, log Log, f Filter, after RunAfter, limit int) (found []*Run, err error) {
	f.States, f.Causes, f.Parents = nil, nil, nil
	q := s.search(log, f, search{table: "runs", key: "pod", by: "created", page: "created DESC, pod DESC", order: "runs_created", time: "created"})
	if f.Until != 0 && (after == RunAfter{} || after.Created >= f.Until) {
		after = RunAfter{Created: f.Until}
	}
	for rows := s.window; ; rows *= windowGrowth {
		upTo, bounds := int64(after.Created), &where{}
		if after == (RunAfter{}) {
			upTo = math.MaxInt64
		} else {
			bounds.add("created <= ? AND (created < ? OR pod < ?)", upTo, upTo, after.Pod)
		}
		from, by, err := q.window(ctx, upTo, rows)
		if err != nil {
			return nil, err
		}
		if from != none {
			bounds.add("created >= ?", from)
		}
		text, args := q.rows(by, bounds, limit-len(found))
		page, err := s.runs(ctx, log, text, args...)
		if err != nil {
			return nil, err
		}
		if found = append(found, page...); len(found) >= limit || from <= max(0, int64(f.Since)) {
			return found, nil
		}
		after = RunAfter{Created: jobs.Time(from)}
	}
}

// RunsOf are the runs of those pods of a job that are named, by their uids, the newest first.
func (s *Store) RunsOf(ctx context.Context, log Log, job string, pods []string) ([]*Run, error) {
	if len(pods) == 0 {
		return nil, nil
	}
	w := s.where(Filter{UIDs: []string{job}}, log, "runs", "", "created")
	oneOf(w, "pod", pods)
	return s.runs(ctx, log, "runs "+w.String()+" ORDER BY created DESC, pod DESC", w.args...)
}

// RunsAfter are the runs of a log's jobs whose last change has a number between two, in order. The
// work depends on how many lie between the two, however few of them the filter leaves.
func (s *Store) RunsAfter(ctx context.Context, log Log, f Filter, after, upTo uint64, limit int) ([]*Run, error) {
	f.States, f.Causes, f.Parents = nil, nil, nil
	w := s.where(f, log, "runs", "", "created")
	w.add("seq > ?", int64(after))
	w.add("seq <= ?", int64(upTo))
	return s.runs(ctx, log, "runs"+s.dialect.use("runs_seq")+" "+w.String()+" ORDER BY seq LIMIT ?", append(w.args, limit)...)
}

// runs reads rows of runs. Log is that of their jobs, or of pods.
func (s *Store) runs(ctx context.Context, log Log, from string, args ...any) (found []*Run, err error) {
	columns := make([]string, len(runColumns))
	for i, c := range runColumns {
		columns[i] = "runs." + c
	}
	err = s.Each(ctx, func(scan Scan) error {
		r := &Run{Run: &jobs.Run{}}
		var pods int64
		var namespace sql.NullString
		var code, signal, end sql.NullInt64
		var requests, devices string
		if err := scan(&r.Of, &r.UID, &pods, &r.Seq, &r.Namespace, &namespace, &r.Name, &r.Job.Resource, &r.Job.UID, &r.Job.Name, &r.Owner, &r.Queue,
			&r.Version, &r.Index, &r.Node, &r.Created, &r.Scheduled, &r.Started, &r.Ended, &r.Gone, &r.Late,
			&r.Restarts, &r.Reason, &r.Message, &r.Container, &code, &signal, &requests, &devices, &end); err != nil {
			return err
		}
		if r.Parked = r.Of == pods; r.Parked {
			r.Of = 0
		}
		r.EndVersion = uint64(end.Int64)
		if r.NamespaceUID = namespace.String; code.Valid {
			r.ExitCode = &code.Int64
		}
		if signal.Valid {
			r.Signal = &signal.Int64
		}
		if err := readAmounts(r.Run, requests, devices); err != nil {
			return fmt.Errorf("run %s: %w", r.UID, err)
		}
		found = append(found, r)
		return nil
	}, "SELECT "+strings.Join(columns, ", ")+" FROM "+from, args...)
	if err != nil {
		return nil, fmt.Errorf("read runs: %w", err)
	}
	return found, nil
}

// readAmounts reads what a run requested and was given, as runRow writes it.
func readAmounts(r *jobs.Run, requests, devices string) error {
	if err := json.Unmarshal([]byte(requests), &r.Requests); err != nil || devices == "" {
		return err
	}
	return json.Unmarshal([]byte(devices), &r.Devices)
}
