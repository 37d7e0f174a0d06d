package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/jobs"
)

// A cause is written with the transition to its state, in the row of the transition and in that of
// the job. More may be known of it later, since it is made of what other logs say, too. Then both
// rows are changed where they are: that is no transition, and takes no number.

// KnownCause is what is known by now of why a job came to a state.
type KnownCause struct {
	UID     string     // of the job
	Version uint64     // of the transition
	To      jobs.State // to which it led
	Ended   jobs.Time  // when the job came to its end by that; 0: it is none. One that is Deleted keeps the cause of its end.
	Cause   *jobs.Cause
	// Reason and Message are those of the transition, if it has none yet.
	Reason, Message string
}

// causeRow is what the columns of a cause have: the cause, and its reason, by which it is found.
func causeRow(c *jobs.Cause) (cause, reason any, err error) {
	if c == nil {
		return nil, nil, nil
	}
	text, err := json.Marshal(c)
	return string(text), known(c.Reason), err
}

func readCause(into **jobs.Cause, text sql.NullString) error {
	if text.String == "" {
		return nil
	}
	return json.Unmarshal([]byte(text.String), into)
}

func (s *Store) writeCauses(ctx context.Context, tx *Tx, log Log, causes []KnownCause) error {
	for _, c := range causes {
		text, reason, err := causeRow(c.Cause)
		if err != nil {
			return err
		}
		seq, err := s.cameTo(ctx, tx, log, c)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE transitions SET cause = ?, cause_reason = ? WHERE log = ? AND seq = ?", text, reason, log.ID, seq); err != nil {
			return err
		}
		if c.Reason != "" {
			if _, err := tx.Exec(ctx, "UPDATE transitions SET reason = ?, message = ? WHERE log = ? AND seq = ? AND reason = ''", c.Reason, c.Message, log.ID, seq); err != nil {
				return err
			}
		}
		if c.Ended == 0 {
			continue
		}
		if _, err := tx.Exec(ctx, "UPDATE jobs SET cause = ?, cause_reason = ? WHERE log = ? AND uid = ? AND state = ? AND ended = ?",
			text, reason, log.ID, c.UID, string(jobs.Deleted), int64(c.Ended)); err != nil {
			return err
		}
	}
	return nil
}

// Explanation is why a job came to a state, as its transition says it now.
type Explanation struct {
	Cause           *jobs.Cause
	Reason, Message string
}

// Explained are those of some transitions of a log, by number. What is kept no more is not among them.
func (s *Store) Explained(ctx context.Context, log LogName, seqs []uint64) (map[uint64]Explanation, error) {
	w := &where{}
	w.add("log = (SELECT id FROM logs WHERE cluster = ? AND resource = ?)", log.Cluster, log.Resource)
	found := make(map[uint64]Explanation, len(seqs))
	return found, s.explained(ctx, w, seqs, func(seq uint64, _ string, e Explanation) { found[seq] = e })
}

// ExplainedOf does so for transitions of a cluster, by its name for people, and a kind, whose jobs have these uids: several
// clusters may have had that name.
func (s *Store) ExplainedOf(ctx context.Context, cluster, resource string, uids map[uint64]string) (map[uint64]Explanation, error) {
	w := &where{}
	w.add("log IN (SELECT id FROM logs WHERE name = ? AND resource = ?)", cluster, resource)
	found := make(map[uint64]Explanation, len(uids))
	return found, s.explained(ctx, w, slices.Collect(maps.Keys(uids)), func(seq uint64, uid string, e Explanation) {
		if uids[seq] == uid {
			found[seq] = e
		}
	})
}

func (s *Store) explained(ctx context.Context, w *where, seqs []uint64, each func(seq uint64, uid string, e Explanation)) error {
	args := make([]any, len(seqs))
	for i, seq := range seqs {
		args[i] = int64(seq)
	}
	w.add("seq IN (?"+strings.Repeat(", ?", len(seqs)-1)+")", args...)
	return s.Each(ctx, func(scan Scan) error {
		var seq uint64
		var uid string
		var e Explanation
		var cause sql.NullString
		if err := scan(&seq, &uid, &cause, &e.Reason, &e.Message); err != nil {
			return err
		}
		err := readCause(&e.Cause, cause)
		each(seq, uid, e)
		return err
	}, "SELECT seq, uid, cause, reason, message FROM transitions "+w.String(), w.args...)
}

// cameTo is the number of the transition of which a cause is known; 0: it is not there. A version
// of a cluster that was restored may come again, so it is the last; and that a queue gave the job
// up is another transition, which may have the same version.
func (s *Store) cameTo(ctx context.Context, tx *Tx, log Log, c KnownCause) (seq int64, err error) {
	err = tx.QueryRow(ctx, "SELECT COALESCE(MAX(seq), 0) FROM transitions WHERE log = ? AND uid = ? AND version = ? AND to_state = ? AND from_state <> to_state",
		log.ID, c.UID, int64(c.Version), string(c.To)).Scan(&seq)
	return seq, err
}

// runBounds bound the runs that are read to find causes: of many jobs at once, then, if these have
// more together, of each, until there are so many in all. Then it is a few of each.
type runBounds struct{ together, each, all, least int }

var firstRunBounds = runBounds{5_000, 2_000, 20_000, 20}

// share is how many runs are read of one of some jobs, if so many are left to be read of them.
func (b runBounds) share(left, jobs int) int { return min(b.each, max(b.least, left/jobs)) }

// RunsOfJobs are the runs of jobs of a log, by the jobs' uids, in the order in which their pods
// were made. Of jobs that have more together than are read, those that have few have them all, and
// the others as many as is left for each, the newest. So nobody's pods, however many, keep others'
// jobs from having theirs.
func (s *Store) RunsOfJobs(ctx context.Context, log Log, uids []string) (map[string][]*jobs.Run, error) {
	found := make(map[string][]*jobs.Run, len(uids))
	left := s.bounds.all
	for part := range slices.Chunk(uids, batchOfKeys) {
		if left <= 0 {
			break
		}
		runs, err := s.runsOfThese(ctx, log, part)
		if err == nil && len(runs) > s.bounds.together {
			runs, err = s.runsInShares(ctx, log, part, left, len(uids)-len(found))
		}
		left -= len(runs)
		if err != nil {
			return nil, fmt.Errorf("find causes: %w", err)
		}
		for _, uid := range part {
			found[uid] = nil
		}
		for _, r := range runs {
			found[r.Job.UID] = append(found[r.Job.UID], r.Run)
		}
	}
	for _, runs := range found {
		slices.SortFunc(runs, func(a, b *jobs.Run) int {
			return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.UID, b.UID))
		})
	}
	return found, nil
}

// runsOfThese are the runs of jobs, unless these are too many together.
func (s *Store) runsOfThese(ctx context.Context, log Log, uids []string) ([]*Run, error) {
	w := &where{}
	w.add("log = ?", log.ID)
	oneOf(w, "uid", uids)
	return s.runs(ctx, log, "runs"+s.dialect.use("runs_uid")+" "+w.String()+" LIMIT ?", append(w.args, s.bounds.together+1)...)
}

// runsInShares are the runs of jobs that have too many together, of those that have fewest first.
// Left is how many may be read of these and others, which are so many jobs together.
func (s *Store) runsInShares(ctx context.Context, log Log, uids []string, left, jobs int) (all []*Run, err error) {
	totals, err := s.totalsOf(ctx, log, uids)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int, len(uids))
	for uid, total := range totals {
		counts[uid] = int(total.Runs)
	}
	uids = slices.SortedFunc(slices.Values(uids), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b))
	})
	for len(uids) > 0 {
		n, sum := 0, 0
		for n < len(uids) && counts[uids[n]] <= s.bounds.share(left-sum, jobs-n) && sum+counts[uids[n]] <= s.bounds.together {
			sum += counts[uids[n]]
			n++
		}
		var runs []*Run
		if n > 0 {
			runs, err = s.runsOfThese(ctx, log, uids[:n])
		}
		if n == 0 || len(runs) > s.bounds.together { // they may have come to have more
			n = 1
			runs, err = s.runs(ctx, log, "runs"+s.dialect.use("runs_uid")+" WHERE log = ? AND uid = ? ORDER BY created DESC, pod DESC LIMIT ?", log.ID, uids[0], s.bounds.share(left, jobs))
		}
		if err != nil {
			return nil, err
		}
		all, left, jobs, uids = append(all, runs...), left-len(runs), jobs-n, uids[n:]
	}
	return all, nil
}
