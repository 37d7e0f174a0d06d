package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubecast/kubecast/internal/jobs"
)

// What becomes known of a cause later changes the rows that are there, of this job's last
// transition and of no other, and takes no number; also if the transition is written by the same
// transaction.
func TestACauseThatIsKnownLaterTakesNoNumber(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		cause := func(text string) *jobs.Cause { return &jobs.Cause{Text: text, Reason: "R", Pods: 1} }
		b := seen(7, "n", "ann", []string{"one", "two"}, jobs.Running, jobs.Failed)
		b.Transitions[1].Cause, b.Jobs[0].Cause = cause("first"), cause("first")
		other := takeOf(t, s, "jobsets.x")
		write(t, s, other, seen(7, "n", "ann", []string{"one"}, jobs.Failed))
		for i := range b.Transitions { // one batch, two versions
			b.Transitions[i].Version = uint64(6 + i%2)
		}
		log := write(t, s, take(t, s, "a"), b)
		told := func() (causes []string) {
			t.Helper()
			transitions, err := s.TransitionsAfter(t.Context(), log, Filter{}, 0, 1000, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, tr := range transitions {
				if tr.Cause != nil {
					causes = append(causes, fmt.Sprint(tr.Name, " ", tr.To, ": ", tr.Cause.Text))
				}
			}
			living, err := s.Living(t.Context(), log)
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range living {
				if j.Cause != nil {
					causes = append(causes, fmt.Sprint(j.Name, ": ", j.Cause.Text))
				}
			}
			slices.Sort(causes)
			return causes
		}
		is := func(when string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, told()); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
		}
		is("with the transition", "name-one Failed: first", "name-one: first")
		next := *b.Jobs[0]
		next.Cause = cause("second")
		seq := log.Seq
		log = write(t, s, log, Batch{To: 7, Jobs: []*jobs.Job{&next}, Causes: []KnownCause{{UID: "one", Version: 7, To: jobs.Failed, Cause: next.Cause}}})
		is("later", "name-one Failed: second", "name-one: second")
		explained := seen(8, "n", "ann", []string{"three"}, jobs.Queued)
		explained.Transitions[0].Reason, explained.Transitions[0].Message = "", ""
		log = write(t, s, log, explained)
		for _, reason := range []string{"Preempted", "Other"} {
			log = write(t, s, log, Batch{To: log.Version + 1, Causes: []KnownCause{{UID: "three", Version: 8, To: jobs.Queued, Reason: reason, Message: "for " + reason}, {UID: "one", Version: 7, To: jobs.Failed, Cause: next.Cause, Reason: reason}}})
			found, err := s.TransitionsAfter(t.Context(), log, Filter{UIDs: []string{"one", "three"}}, 0, 1000, 1000)
			if err != nil || len(found) != 3 || found[1].Reason != "R" || found[2].Reason != "Preempted" || found[2].Message != "for Preempted" {
				t.Errorf("a reason that is known later: %+v, %v", found, err)
			}
		}
		seq++
		if log.Seq != seq {
			t.Errorf("it took %d numbers", log.Seq-seq)
		}
		again := seen(19, "n", "ann", []string{"two"}, jobs.Retrying)
		again.Jobs[0].Cause = cause("third")
		again.Causes = []KnownCause{{UID: "one", Version: 7, To: jobs.Failed}, {UID: "two", Version: 19, To: jobs.Retrying, Cause: cause("third")}}
		log = write(t, s, log, again)
		is("at once", "name-one: second", "name-two Retrying: third", "name-two: third")
		if found, err := s.TransitionsAfter(t.Context(), other, Filter{}, 0, 10, 10); err != nil || len(found) != 1 || found[0].Cause != nil {
			t.Errorf("a job of another kind: %+v, %v", found, err)
		}
		gone := next
		gone.State, gone.Ended, gone.Deleted = jobs.Deleted, 500, 600
		log = write(t, s, log, Batch{To: 20, Jobs: []*jobs.Job{&gone}})
		for _, at := range []jobs.Time{499, 500} {
			log = write(t, s, log, Batch{To: log.Version + 1, Causes: []KnownCause{{UID: "one", Version: 7, To: jobs.Failed, Ended: at, Cause: cause(fmt.Sprint("of ", at))}, {UID: "two", Version: 19, To: jobs.Retrying, Ended: at, Cause: cause("third")}}})
			found, err := s.Jobs(t.Context(), log, Filter{UIDs: []string{"one"}}, JobAfter{}, 10)
			if want := map[jobs.Time]string{499: "second", 500: "of 500"}[at]; err != nil || len(found) != 1 || found[0].Cause == nil || found[0].Cause.Text != want {
				t.Errorf("of an end at %d, a job that is gone: %+v, %v", at, found, err)
			}
		}
	})
}

// Of one job and version there may be several transitions: its queue has given it up, of which the
// version is another object's; or the cluster was restored, and versions came again. What is known
// later of the cause of one of them changes no other.
func TestACauseIsOfTheTransitionThatItExplains(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		for _, states := range [][2]jobs.State{{jobs.Running, jobs.Failed}, {jobs.Failed, jobs.Queued}, {jobs.Queued, jobs.Queued}, {jobs.Running, jobs.Failed}} {
			b := Batch{To: log.Version + 1, Transitions: []*jobs.Transition{{ObjectID: jobs.ObjectID{UID: "u", Namespace: "n", Name: "u"}, Version: 7, From: states[0], To: states[1], At: 5, Observed: 5}}}
			log = write(t, s, log, b)
		}
		log = write(t, s, log, Batch{To: log.Version + 1, Causes: []KnownCause{
			{UID: "u", Version: 7, To: jobs.Failed, Cause: &jobs.Cause{Reason: jobs.OOMKilled, Text: "failed"}, Reason: "OOM"},
			{UID: "u", Version: 7, To: jobs.Queued, Cause: &jobs.Cause{Reason: jobs.Evicted, Text: "taken back"}, Reason: "Back"},
			{UID: "u", Version: 7, To: jobs.Cancelled, Cause: &jobs.Cause{Reason: "None", Text: "of none"}, Reason: "None"},
		}})
		found, err := s.TransitionsAfter(t.Context(), log, Filter{}, 0, 10, 10)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, tr := range found {
			line := string(tr.From + "→" + tr.To + " " + jobs.State(tr.Reason))
			if tr.Cause != nil {
				line += ": " + tr.Cause.Text
			}
			told = append(told, line)
		}
		if want := []string{"Running→Failed ", "Failed→Queued Back: taken back", "Queued→Queued ", "Running→Failed OOM: failed"}; !slices.Equal(told, want) {
			t.Errorf("%q, not %q", told, want)
		}
	})
}

func takeOf(t *testing.T, s *Store, resource string) Log {
	t.Helper()
	log, err := s.Take(t.Context(), LogName{Cluster: jobLog.Cluster, Resource: resource}, "default", "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// Runs that say why jobs ended are those of these jobs, of this log, and of no pod that only claims
// to belong to one; of jobs with very many pods they are the newest, and never so many that there
// are none left for other jobs.
func TestRunsThatSayWhyAreTheJobsOwnAndBounded(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.bounds = runBounds{6, 4, 5, 2}
		log, other, pods := take(t, s, "a"), takeOf(t, s, "jobsets.x"), takePods(t, s)
		var runs []*Run
		for i := range 9 {
			runs = append(runs, podOf(fmt.Sprint("many-", i), log.ID, "many", jobs.Time(1000+i)), podOf(fmt.Sprint("also-", i), log.ID, "also", jobs.Time(1000+i)))
		}
		runs = append(runs, podOf("few-1", log.ID, "few", 2000), podOf("few-0", log.ID, "few", 2000), podOf("claims", 0, "few", 2000), podOf("theirs", other.ID, "few", 2000))
		write(t, s, pods, Batch{To: 5, Runs: runs})
		for name, test := range map[string]struct {
			uids []string
			want map[string][]string
		}{
			"few and none": {[]string{"few", "none"}, map[string][]string{"few": {"few-0", "few-1"}, "none": nil}},
			"many":         {[]string{"many"}, map[string][]string{"many": {"many-5", "many-6", "many-7", "many-8"}}},
			"little room":  {[]string{"many", "few", "none"}, map[string][]string{"many": {"many-6", "many-7", "many-8"}, "few": {"few-0", "few-1"}, "none": nil}},
			"no room":      {[]string{"also", "few", "many"}, map[string][]string{"also": {"also-7", "also-8"}, "few": {"few-0", "few-1"}, "many": {"many-7", "many-8"}}},
			"nobody":       {nil, map[string][]string{}},
		} {
			found, err := s.RunsOfJobs(t.Context(), log, test.uids)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for uid, runs := range found {
				got[uid] = nil
				for _, r := range runs {
					got[uid] = append(got[uid], r.UID)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})
}

// One tenant has many jobs of many pods that end together with others'. Each of these has its few
// runs at once, whatever their order is.
func TestJobsOfManyPodsLeaveOthersTheirs(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.bounds = runBounds{100, 50, 200, 3}
		log, pods := take(t, s, "a"), takePods(t, s)
		var uids []string
		for i := range 20 {
			var runs []*Run
			uid := fmt.Sprint("large-", i)
			for n := range 60 {
				runs = append(runs, podOf(fmt.Sprint(uid, "-", n), log.ID, uid, jobs.Time(1000+n)))
			}
			small := fmt.Sprint("small-", i)
			runs = append(runs, podOf(small+"-0", log.ID, small, 2000), podOf(small+"-1", log.ID, small, 2000))
			pods = write(t, s, pods, Batch{To: pods.Version + 1, Runs: runs})
			uids = append(uids, uid, small)
		}
		found, err := s.RunsOfJobs(t.Context(), log, uids)
		if err != nil {
			t.Fatal(err)
		}
		all := 0
		for _, uid := range uids {
			all += len(found[uid])
			if n := len(found[uid]); strings.HasPrefix(uid, "small") && n != 2 || n == 0 || n > 60/2 {
				t.Errorf("%s has %d", uid, n)
			}
		}
		if all > 200 {
			t.Errorf("%d are read", all)
		}
	})
}

// After a gap any number of jobs may have failed, each with a few pods. However many they are, so
// many runs are in memory, and the other jobs are left out.
func TestRunsThatSayWhyManyJobsEndedAreBoundedTogether(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.bounds = runBounds{batchOfKeys, 4, batchOfKeys + 1, 1}
		log, pods, uids := take(t, s, "a"), takePods(t, s), numbered("u", 2*batchOfKeys+10)
		var runs []*Run
		for _, uid := range uids {
			runs = append(runs, podOf("pod of "+uid, log.ID, uid, 1000))
		}
		write(t, s, pods, Batch{To: 5, Runs: runs})
		found, err := s.RunsOfJobs(t.Context(), log, uids)
		if err != nil || len(found) != 2*batchOfKeys {
			t.Errorf("the runs of %d jobs are read; %v", len(found), err)
		}
	})
}

// A database of a gateway that knew no causes has jobs and transitions of which none is known, and none is invented.
func TestRowsOfBeforeHaveNoCause(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := write(t, s, take(t, s, "a"), seen(7, "n", "ann", []string{"old"}, jobs.Running, jobs.Failed))
		for _, table := range []string{"jobs", "transitions"} {
			if _, err := s.execute(t.Context(), "UPDATE "+table+" SET cause = NULL"); err != nil {
				t.Fatal(err)
			}
		}
		living, err := s.Living(t.Context(), log)
		if err != nil || len(living) != 1 || living[0].Cause != nil || living[0].State != jobs.Failed {
			t.Errorf("%+v, %v", living, err)
		}
		page, err := s.Transitions(t.Context(), log, Filter{}, 0, 10)
		if err != nil || len(page) != 2 || page[0].Cause != nil {
			t.Errorf("%+v, %v", page, err)
		}
	})
}
