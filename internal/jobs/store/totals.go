package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kubecast/kubecast/internal/jobs"
)

// A job may have any number of runs, and is shown on pages of many. So what its runs come to is
// kept in a row of its own, which is written with them, in their transaction. Runs that are removed
// while their job stays are taken out.

var totalColumns = []string{"log", "uid", "first_held", "held_until", "total"}

// jobOf is a job's key.
type jobOf struct {
	log int64
	uid string
}

// runChange is that a run of a log of jobs counts from now on, or with out that it does no longer.
type runChange struct {
	log int64
	run *jobs.Run
	out bool
}

func (c runChange) of() jobOf { return jobOf{c.log, c.run.Job.UID} }

// countRuns changes the totals of the jobs of runs. The log of pods that numbers these is locked,
// so nobody else changes them.
func (s *Store) countRuns(ctx context.Context, tx *Tx, changes []runChange) error {
	totals, uids := map[jobOf]*jobs.Total{}, map[int64][]string{}
	for _, c := range changes {
		if of := c.of(); totals[of] == nil {
			totals[of], uids[of.log] = &jobs.Total{}, append(uids[of.log], of.uid)
		}
	}
	texts := map[jobOf]string{} // as they are written
	for _, log := range slices.Sorted(maps.Keys(uids)) {
		slices.Sort(uids[log]) // all lock rows in one order
		if err := s.inParts(log, "uid", uids[log], func(w *where) error {
			return tx.Each(ctx, func(scan Scan) error {
				of, text := jobOf{log: log}, ""
				if err := scan(&of.uid, &text); err != nil {
					return err
				}
				texts[of] = text
				return json.Unmarshal([]byte(text), totals[of])
			}, "SELECT uid, total FROM totals "+w.String(), w.args...)
		}); err != nil {
			return fmt.Errorf("read totals: %w", err)
		}
	}
	for _, c := range changes {
		if total := totals[c.of()]; c.out {
			total.Remove(c.run)
		} else {
			total.Add(c.run)
		}
	}
	for of, total := range totals {
		if total.Runs == 0 {
			totals[of] = &jobs.Total{} // without the bounds of what was
		}
	}
	var rows [][]any
	for _, log := range slices.Sorted(maps.Keys(uids)) {
		for _, uid := range uids[log] {
			of := jobOf{log, uid}
			text, err := json.Marshal(totals[of])
			if err != nil {
				return err
			}
			if string(text) == texts[of] {
				continue
			}
			until := int64(totals[of].Last)
			if totals[of].Holding > 0 {
				until = stillRuns
			}
			rows = append(rows, []any{log, uid, int64(totals[of].First), until, string(text)})
		}
	}
	if err := tx.Insert(ctx, "totals", totalColumns, rows, totalColumns[:2], totalColumns[2:]); err != nil {
		return fmt.Errorf("write totals: %w", err)
	}
	return nil
}

// countedColumns are those of a run on which totals depend; scanCounted scans them.
const countedColumns = "uid, scheduled, ended, reason, requests, devices"

func scanCounted(scan Scan, before ...any) (*jobs.Run, error) {
	r := &jobs.Run{}
	var requests, devices string
	if err := scan(append(before, &r.Job.UID, &r.Scheduled, &r.Ended, &r.Reason, &requests, &devices)...); err != nil {
		return nil, err
	}
	if err := readAmounts(r, requests, devices); err != nil {
		return nil, fmt.Errorf("run of job %s: %w", r.Job.UID, err)
	}
	return r, nil
}

// runPlace is what indexes have of a run, beside the number of its last change.
type runPlace struct {
	log, pods                          int64
	namespace, uid, name, owner, queue string
	created, gone                      jobs.Time
}

func (r *Run) place(pods Log) runPlace {
	return runPlace{home(pods, r.Of), pods.ID, r.Namespace, r.Job.UID, r.Job.Name, r.Owner, r.Queue, r.Created, r.Gone}
}

// placedColumns are those of a runPlace but for the log and uid.
const placedColumns = "pod, pods, namespace, name, owner, queue, created, gone, "

// runsBefore are the runs of pods in a log of jobs as a transaction finds them, and where they are, by pod.
func (s *Store) runsBefore(ctx context.Context, tx *Tx, log int64, pods []string, places map[string]runPlace) (found []runChange, err error) {
	err = s.inParts(log, "pod", pods, func(w *where) error {
		return tx.Each(ctx, func(scan Scan) error {
			pod, at := "", runPlace{log: log}
			r, err := scanCounted(scan, &pod, &at.pods, &at.namespace, &at.name, &at.owner, &at.queue, &at.created, &at.gone)
			if err != nil {
				return err
			}
			at.uid = r.Job.UID
			places[pod] = at
			found = append(found, runChange{log, r, true})
			return nil
		}, "SELECT "+placedColumns+countedColumns+" FROM runs "+w.String(), w.args...)
	})
	return found, err
}

// countWritten changes totals by the runs of a batch, before these are written. It returns where
// those are that are there, by pod.
func (s *Store) countWritten(ctx context.Context, tx *Tx, runs []*Run) (map[string]runPlace, error) {
	in := map[int64][]string{}
	var changes []runChange
	for _, r := range runs {
		if r.Of != 0 {
			in[r.Of] = append(in[r.Of], r.UID)
			changes = append(changes, runChange{log: r.Of, run: r.Run})
		}
	}
	return s.countInPlaceOf(ctx, tx, in, changes)
}

// countRemoved takes runs out of totals that a log of pods numbers, before they are removed. The log is locked.
func (s *Store) countRemoved(ctx context.Context, tx *Tx, pods Log, runs []removable) error {
	in := map[int64][]string{}
	for _, r := range runs {
		if r.log != pods.ID {
			in[r.log] = append(in[r.log], r.pod)
		}
	}
	_, err := s.countInPlaceOf(ctx, tx, in, nil)
	return err
}

// countInPlaceOf changes totals by runs that come in place of those that are there of some pods, by
// log. It returns where these are.
func (s *Store) countInPlaceOf(ctx context.Context, tx *Tx, in map[int64][]string, changes []runChange) (map[string]runPlace, error) {
	places := map[string]runPlace{}
	for log, pods := range in {
		before, err := s.runsBefore(ctx, tx, log, pods, places)
		if err != nil {
			return nil, err
		}
		changes = append(changes, before...)
	}
	return places, s.countRuns(ctx, tx, changes)
}

// Began notes that a log of pods begins anew at a time: what was before may be missing.
func (s *Store) Began(ctx context.Context, pods Log, at jobs.Time) error {
	if _, err := s.execute(ctx, "UPDATE logs SET whole_since = ? WHERE id = ?", int64(at), pods.ID); err != nil {
		return fmt.Errorf("begin anew: %w", err)
	}
	return nil
}

// covered is the time of which all runs of a cluster's jobs were recorded; empty if none is.
type covered struct {
	from, until jobs.Time
	seq         uint64 // the number of the last change of a run, when this was asked
}

// covered asks for that time. Until has no end while somebody records them.
func (s *Store) covered(ctx context.Context, cluster string) (c covered, err error) {
	var since sql.NullInt64
	var lease, moved, now int64
	err = s.QueryRow(ctx, "SELECT seq, whole_since, lease, moved, "+s.dialect.now()+" FROM logs WHERE cluster = ? AND resource = ?", cluster, RunsResource).Scan(&c.seq, &since, &lease, &moved, &now)
	switch {
	case errors.Is(err, sql.ErrNoRows) || err == nil && !since.Valid:
		return c, nil
	case err != nil:
		return covered{}, fmt.Errorf("find since when runs are recorded: %w", err)
	}
	c.from, c.until = jobs.Time(since.Int64), jobs.Time(max(lease, moved))
	if lease > now {
		c.until = math.MaxInt64
	}
	return c, nil
}

// upTo is until when runs that hold their nodes count: since nobody records them any more, nobody
// knows that they have ended.
func (c covered) upTo(now jobs.Time) jobs.Time {
	if c.from == 0 {
		return now
	}
	return min(now, c.until)
}

// has reports whether all runs are there of a job that was created and ended at these times; an end of 0 is none yet.
func (c covered) has(created, end, now jobs.Time) bool {
	if end == 0 {
		end = now
	}
	return c.from != 0 && created >= c.from && (c.until == math.MaxInt64 || end <= c.until)
}

// totalsOf are the totals of jobs of a log that have runs, by uid.
func (s *Store) totalsOf(ctx context.Context, log Log, uids []string) (map[string]*jobs.Total, error) {
	found := make(map[string]*jobs.Total, len(uids))
	if err := s.inParts(log.ID, "uid", uids, func(w *where) error {
		return s.Each(ctx, func(scan Scan) error {
			var uid, text string
			if err := scan(&uid, &text); err != nil {
				return err
			}
			total := &jobs.Total{}
			if err := json.Unmarshal([]byte(text), total); err != nil {
				return fmt.Errorf("job %s: %w", uid, err)
			}
			if total.Runs > 0 {
				found[uid] = total
			}
			return nil
		}, "SELECT uid, total FROM totals "+w.String(), w.args...)
	}); err != nil {
		return nil, fmt.Errorf("read totals: %w", err)
	}
	return found, nil
}

// Uses is what jobs have used up to now, by uid. A job is not there of which that is not known: it
// has no run, and may have had some while nobody recorded them.
func (s *Store) Uses(ctx context.Context, log Log, jobList []*jobs.Job, now jobs.Time) (map[string]jobs.Use, error) {
	c, err := s.covered(ctx, log.Cluster)
	if err != nil {
		return nil, err
	}
	uids := make([]string, len(jobList))
	for i, j := range jobList {
		uids[i] = j.UID
	}
	totals, err := s.totalsOf(ctx, log, uids)
	if err != nil {
		return nil, err
	}
	uses := make(map[string]jobs.Use, len(jobList))
	var shares []string
	for _, j := range jobList {
		switch total := totals[j.UID]; {
		case total == nil:
			if j.Parent.UID == "" && c.has(j.Created, max(j.Ended, j.Deleted), now) { // a part's pods are the topmost job's
				uses[j.UID] = jobs.Use{}
			}
		default:
			if uses[j.UID] = total.Use(c.upTo(now)); sharesDevices(total) {
				shares = append(shares, j.UID)
			}
		}
	}
	err = s.heldBy(ctx, log, shares, totals, c.upTo(now), func(uid string, holds []jobs.Hold) error {
		use := uses[uid]
		use.Hours = jobs.HoursOf(holds)
		uses[uid] = use
		return nil
	})
	return uses, err
}

// mostSharing is with how many runs it is looked up which devices several of them had at a time.
const mostSharing = 200

// sharesDevices reports whether runs of a job may have had a device at the same time, which counts once.
func sharesDevices(t *jobs.Total) bool {
	return t.Devices > 0 && t.Runs > 1 && t.Runs <= mostSharing
}

// heldBy calls visit with what the runs of jobs hold or held. Of a job of many runs it is called
// for some of them at a time. Runs are read some at a time, each time in a turn of its own.
func (s *Store) heldBy(ctx context.Context, log Log, uids []string, totals map[string]*jobs.Total, now jobs.Time, visit func(uid string, holds []jobs.Hold) error) error {
	for len(uids) > 0 {
		n, runs := 1, totals[uids[0]].Runs
		for n < len(uids) && n < batchOfKeys && runs+totals[uids[n]].Runs <= usageRows {
			runs += totals[uids[n]].Runs
			n++
		}
		if err := s.heldByThese(ctx, log, uids[:n], totals, now, visit); err != nil {
			return fmt.Errorf("read runs: %w", err)
		}
		uids = uids[n:]
	}
	return nil
}

func (s *Store) heldByThese(ctx context.Context, log Log, uids []string, totals map[string]*jobs.Total, now jobs.Time, visit func(string, []jobs.Hold) error) error {
	after := RunAfter{Created: math.MinInt64}
	for {
		w := &where{}
		w.add("log = ?", log.ID)
		oneOf(w, "uid", uids)
		order, limit := "", math.MaxInt32
		if len(uids) == 1 {
			w.add("created >= ? AND (created > ? OR pod > ?)", int64(after.Created), int64(after.Created), after.Pod)
			order, limit = " ORDER BY created, pod", usageRows
		}
		found, n := map[string][]*jobs.Run{}, 0
		if err := s.Each(ctx, func(scan Scan) error {
			r, err := scanCounted(scan, &after.Created, &after.Pod)
			if err == nil {
				n++
				found[r.Job.UID] = append(found[r.Job.UID], r)
			}
			return err
		}, "SELECT created, pod, "+countedColumns+" FROM runs"+s.dialect.use("runs_uid")+" "+w.String()+order+" LIMIT ?", append(w.args, limit)...); err != nil {
			return err
		}
		for uid, runs := range found {
			var holds []jobs.Hold
			if sharesDevices(totals[uid]) {
				holds = jobs.HoldsOf(runs, now)
			} else {
				for _, r := range runs {
					holds = append(holds, jobs.HoldsOf([]*jobs.Run{r}, now)...)
				}
			}
			if err := visit(uid, holds); err != nil {
				return err
			}
		}
		if n < limit {
			return nil
		}
	}
}
