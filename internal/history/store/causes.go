package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kubecast/kubecast/internal/history"
)

// A cause is written with the transition to its state, in the row of the transition and in that of the job. More may be known of it later, since it
// is made of what other logs say, too. Then both rows are changed where they are: that is no transition, and takes no number.

// KnownCause is what is known by now of why a job came to a state.
type KnownCause struct {
	UID     string       // of the job
	Version uint64       // of the transition
	Ended   history.Time // when the job came to its end by that; 0: it is none. One that is Deleted keeps the cause of its end.
	Cause   *history.Cause
}

// causeRow is what the columns of a cause have: the cause, and its reason, by which it is found.
func causeRow(c *history.Cause) (cause, reason any, err error) {
	if c == nil {
		return nil, nil, nil
	}
	text, err := json.Marshal(c)
	return string(text), known(c.Reason), err
}

func readCause(into **history.Cause, text sql.NullString) error {
	if text.String == "" {
		return nil
	}
	return json.Unmarshal([]byte(text.String), into)
}

func (s *Store) writeCauses(ctx context.Context, tx *sql.Tx, log Log, causes []KnownCause) error {
	for _, c := range causes {
		text, reason, err := causeRow(c.Cause)
		if err != nil {
			return err
		}
		if _, err := s.exec(ctx, tx, "UPDATE transitions SET cause = ?, cause_reason = ? WHERE log = ? AND uid = ? AND version = ?", text, reason, log.ID, c.UID, int64(c.Version)); err != nil {
			return err
		}
		if c.Ended == 0 {
			continue
		}
		if _, err := s.exec(ctx, tx, "UPDATE jobs SET cause = ?, cause_reason = ? WHERE log = ? AND uid = ? AND state = ? AND ended = ?",
			text, reason, log.ID, c.UID, string(history.Deleted), int64(c.Ended)); err != nil {
			return err
		}
	}
	return nil
}

// runBounds bound the runs that are read to find causes: of many jobs at once, then, if these have more together, of each by itself, until there are so
// many in all.
type runBounds struct{ together, each, all int }

var firstRunBounds = runBounds{5_000, 2_000, 20_000}

// RunsOfJobs are the runs of jobs of a log, by the jobs' uids, in the order in which their pods were made. Of a job with very many it has the newest. A
// job is not among them for which there was no room: it may be asked for again, with fewer others.
func (s *Store) RunsOfJobs(ctx context.Context, log Log, uids []string) (map[string][]*history.Run, error) {
	found := make(map[string][]*history.Run, len(uids))
	table, left := "runs"+s.dialect.use("runs_uid"), s.bounds.all
	for part := range slices.Chunk(uids, batchOfKeys) {
		if left <= 0 {
			break
		}
		w := &where{}
		w.add("log = ?", log.ID)
		oneOf(w, "uid", part)
		runs, err := s.runs(ctx, log, table+" "+w.String()+" LIMIT ?", append(w.args, s.bounds.together+1)...)
		if err != nil {
			return nil, fmt.Errorf("find causes: %w", err)
		}
		if len(runs) <= s.bounds.together {
			left -= len(runs)
			for _, uid := range part {
				found[uid] = nil
			}
			for _, r := range runs {
				found[r.Job.UID] = append(found[r.Job.UID], r.Run)
			}
			continue
		}
		for _, uid := range part {
			if left <= 0 {
				break
			}
			runs, err := s.runs(ctx, log, table+" WHERE log = ? AND uid = ? ORDER BY created DESC, pod DESC LIMIT ?", log.ID, uid, s.bounds.each)
			if err != nil {
				return nil, fmt.Errorf("find causes: %w", err)
			}
			left -= len(runs)
			found[uid] = nil
			for _, r := range runs {
				found[uid] = append(found[uid], r.Run)
			}
		}
	}
	for _, runs := range found {
		slices.SortFunc(runs, func(a, b *history.Run) int {
			return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.UID, b.UID))
		})
	}
	return found, nil
}
