package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/seal"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// ErrAway means that the database cannot be read now.
var ErrAway = errors.New("the history's database cannot be read")

// pageWithin is how long one question to the database may take.
const pageWithin = 10 * time.Second

// Kinds are those whose history is kept, as resource[.group].
func (a *Service) Kinds() []string { return slices.Clone(a.kinds) }

// Records reports whether the history of a kind, given as resource[.group], is kept.
func (a *Service) Records(kind string) bool { return slices.Contains(a.kinds, kind) }

// Reader asks about what was recorded, in the name of somebody who pays for it.
type Reader struct {
	service    *Service
	database   *store.Store
	quotaOwner string
}

// For is a Reader in the name of a user.
func (a *Service) For(quotaOwner string) Reader {
	return Reader{a, a.database.For(store.User(quotaOwner)), quotaOwner}
}

// Knows reports whether a kind was ever recorded. Errors are those of Jobs.
func (r Reader) Knows(ctx context.Context, c *cluster.Cluster, kind string) (bool, error) {
	found, err := read(ctx, r, c, kind, func(context.Context, store.Log) ([]struct{}, error) { return make([]struct{}, 1), nil })
	return len(found) > 0, err
}

// Jobs is a page of a kind's jobs; see store.Store.Jobs. An error wraps ErrAway, or is of the
// cluster, or of the context, or store.ErrUnfinished, with which comes what was found.
func (r Reader) Jobs(ctx context.Context, c *cluster.Cluster, kind string, f store.Filter, after store.JobAfter, limit int) ([]*jobs.Job, error) {
	return read(ctx, r, c, kind, func(ctx context.Context, log store.Log) ([]*jobs.Job, error) {
		return r.database.Jobs(ctx, log, f, after, limit)
	})
}

// KindsOfParts are the kinds of jobs that are parts of jobs with these uids, of any kind. Errors are those of Jobs.
func (r Reader) KindsOfParts(ctx context.Context, c *cluster.Cluster, kind string, parents []string) ([]string, error) {
	return read(ctx, r, c, kind, func(ctx context.Context, log store.Log) ([]string, error) {
		return r.database.KindsOfParts(ctx, log.Cluster, parents)
	})
}

// Parts counts the jobs of a kind by what they are parts of; see store.Store.Parts. Errors are those of Jobs.
func (r Reader) Parts(ctx context.Context, c *cluster.Cluster, kind string, f store.Filter) (parts map[string]int, err error) {
	_, err = read(ctx, r, c, kind, func(ctx context.Context, log store.Log) (_ []struct{}, err error) {
		parts, err = r.database.Parts(ctx, log, f)
		return nil, err
	})
	return parts, err
}

// Transitions is a page of a kind's transitions, the newest first, of those before a number; 0 is
// before all. Errors are those of Jobs.
func (r Reader) Transitions(ctx context.Context, c *cluster.Cluster, kind string, f store.Filter, before uint64, limit int) ([]*jobs.Transition, error) {
	return read(ctx, r, c, kind, func(ctx context.Context, log store.Log) ([]*jobs.Transition, error) {
		return r.database.Transitions(ctx, log, f, before, limit)
	})
}

// Runs is a page of the runs of the pods of a kind's jobs; see store.Store.Runs. Errors are those of Jobs.
func (r Reader) Runs(ctx context.Context, c *cluster.Cluster, kind string, f store.Filter, after store.RunAfter, limit int) ([]*store.Run, error) {
	return read(ctx, r, c, kind, func(ctx context.Context, log store.Log) ([]*store.Run, error) {
		return r.database.Runs(ctx, log, f, after, limit)
	})
}

// RunsOf are the runs of those of a job's pods that are named; see store.Store.RunsOf. Errors are those of Jobs.
func (r Reader) RunsOf(ctx context.Context, c *cluster.Cluster, kind, uid string, pods []string) ([]*store.Run, error) {
	return read(ctx, r, c, kind, func(ctx context.Context, log store.Log) ([]*store.Run, error) {
		return r.database.RunsOf(ctx, log, uid, pods)
	})
}

// JobsAndKept is Jobs, with what is kept of these; see store.Store.Keeps.
func (r Reader) JobsAndKept(ctx context.Context, c *cluster.Cluster, kind string, f store.Filter, after store.JobAfter, limit int) (jobList []*jobs.Job, kept store.Keeping, err error) {
	jobList, err = read(ctx, r, c, kind, func(ctx context.Context, log store.Log) ([]*jobs.Job, error) {
		jobList, err := r.database.Jobs(ctx, log, f, after, limit)
		if err != nil && !errors.Is(err, store.ErrUnfinished) {
			return nil, err
		}
		var uids []string
		for _, j := range jobList {
			// No other has ever ended. Logs of pods are kept before, and are told with a job that is asked for by its uid.
			if j.Ended != 0 || j.Deleted != 0 || j.Attempt > 1 || len(f.UIDs) == 1 {
				uids = append(uids, j.UID)
			}
		}
		var failed error
		if kept, failed = r.database.Keeps(ctx, log, uids); failed != nil {
			err = failed
		}
		return jobList, err
	})
	return jobList, kept, err
}

// Kept is the text that is kept of a job. The error is store.ErrNotKept or store.ErrOverBudget if
// there is none, or one of Jobs.
func (r Reader) Kept(ctx context.Context, c *cluster.Cluster, kind, uid string, what store.KeptKind) (text []byte, err error) {
	missing := store.ErrNotKept
	_, err = read(ctx, r, c, kind, func(ctx context.Context, log store.Log) ([]struct{}, error) {
		k, err := r.database.Kept(ctx, log, uid, what)
		switch {
		case errors.Is(err, store.ErrNotKept):
			return nil, nil
		case errors.Is(err, store.ErrOverBudget):
			missing = store.ErrOverBudget
			return nil, nil
		case err == nil:
			text, err = store.Unpack(k.Data)
			missing = nil
		}
		return nil, err
	})
	if err == nil {
		err = missing
	}
	return text, err
}

// Uses is what jobs of a kind have used up to now, by uid; see store.Store.Uses. Errors are those of Jobs.
func (r Reader) Uses(ctx context.Context, c *cluster.Cluster, kind string, jobList []*jobs.Job, now jobs.Time) (uses map[string]jobs.Use, err error) {
	_, err = read(ctx, r, c, kind, func(ctx context.Context, log store.Log) (_ []struct{}, err error) {
		uses, err = r.database.Uses(ctx, log, jobList, now)
		return nil, err
	})
	return uses, err
}

// Newest are the newest transitions up to a number, or the runs of the newest pods, in the order of
// their numbers. Errors are those of Jobs.
func (r Reader) Newest(ctx context.Context, c *cluster.Cluster, kind string, what What, f store.Filter, upTo uint64, limit int) ([]LogRecord, error) {
	if what == Transitions {
		transitions, err := r.Transitions(ctx, c, kind, f, upTo+1, limit)
		if errors.Is(err, store.ErrUnfinished) {
			err = nil // these are the newest; what follows is told whatever was found
		}
		slices.Reverse(transitions)
		return ofTransitions(transitions), err
	}
	runs, err := r.Runs(ctx, c, kind, f, store.RunAfter{}, limit)
	runs = slices.DeleteFunc(runs, func(run *store.Run) bool { return run.Seq > upTo }) // they follow
	slices.SortFunc(runs, func(a, b *store.Run) int { return cmp.Compare(a.Seq, b.Seq) })
	return ofRuns(runs), err
}

// errVisit ends a reading because its reader has enough. It is no failure of the database.
var errVisit = errors.New("the reader has enough")

const (
	// usageWithin is how long a question for usage may take. It reads all jobs of a time.
	usageWithin = time.Minute
	// usagesAtOnce is how many questions for usage are answered at once, one of each quotaOwner's,
	// since each keeps in memory what it has counted. What they read they read in their
	// quotaOwners' turns.
	usagesAtOnce = 8
)

// Lives gives what usage needs of a kind's jobs; see store.Store.Lives. Errors are those of Jobs, or visit's.
func (r Reader) Lives(
	ctx context.Context, c *cluster.Cluster, kind string, f store.Filter, by store.By, span jobs.Span, now jobs.Time, visit func([]jobs.Lived) error,
) error {
	return readAll(ctx, r, c, kind, visit, func(ctx context.Context, log store.Log, visit func([]jobs.Lived) error) error {
		return r.database.Lives(ctx, log, f, by, span, now, visit)
	})
}

// Ends gives the transitions of a kind that led to an end; see store.Store.Ends. Errors are those of Lives.
func (r Reader) Ends(ctx context.Context, c *cluster.Cluster, kind string, f store.Filter, visit func([]*jobs.Transition) error) error {
	return readAll(ctx, r, c, kind, visit, func(ctx context.Context, log store.Log, visit func([]*jobs.Transition) error) error {
		return r.database.Ends(ctx, log, f, visit)
	})
}

// readAll reads all of a time, of which visit gets some at a time.
func readAll[T any](
	ctx context.Context, r Reader, c *cluster.Cluster, kind string, visit func([]T) error, ask func(context.Context, store.Log, func([]T) error) error,
) error {
	release, err := r.service.usages.TakeWithin(ctx, usageWithin, r.quotaOwner)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = store.ErrBusy
	}
	if err != nil {
		return err
	}
	defer release()
	var refused error
	_, err = readWithin(ctx, r, c, kind, usageWithin, func(ctx context.Context, log store.Log) ([]struct{}, error) {
		return nil, ask(ctx, log, func(batch []T) error {
			if refused = visit(batch); refused != nil {
				return errVisit
			}
			return nil
		})
	})
	if refused != nil {
		return refused
	}
	return err
}

// maxSpan is how many numbers of a log one question looks at. A filter may leave few of them. Without a bound, the
// question of a reader that was away for millions would take longer than is allowed, and again each time.
const maxSpan = 20_000

// After are the transitions or runs that follow a number, in order. Up to upTo, which may be before
// the end of the log, there are no others. Beside the errors of Jobs there are ErrAhead and
// ErrExpired.
func (r Reader) After(ctx context.Context, c *cluster.Cluster, kind string, what What, f store.Filter, after uint64, limit int) (found []LogRecord, upTo uint64, err error) {
	var failed error // an error that is not the database's
	found, err = read(ctx, r, c, kind, func(ctx context.Context, log store.Log) (found []LogRecord, err error) {
		numbers, err := numbered(ctx, r.database, what, log)
		if err != nil {
			return nil, err
		}
		found, upTo, err = r.follow(ctx, what, log, numbers, f, after, limit)
		if errors.Is(err, ErrAhead) || errors.Is(err, ErrExpired) {
			failed, err = err, nil
		}
		return found, err
	})
	switch {
	case err != nil:
		return nil, 0, err
	case failed != nil:
		return nil, 0, failed
	case upTo == 0 && after > 0: // nothing was ever recorded
		return nil, 0, ErrAhead
	}
	return found, upTo, nil
}

// follow reads what follows a number in a log that stood as is said a moment ago.
func (r Reader) follow(ctx context.Context, what What, log, numbers store.Log, f store.Filter, after uint64, limit int) (found []LogRecord, upTo uint64, err error) {
	if after > numbers.Seq {
		return nil, 0, ErrAhead
	}
	upTo = min(numbers.Seq, after+maxSpan)
	if found, err = changesAfter(ctx, r.database, what, log, f, after, upTo, limit); err != nil {
		return nil, 0, err
	}
	if n := len(found); n == limit {
		upTo = found[n-1].Seq
	}
	now, err := r.database.Find(ctx, numbers.LogName) // afterwards: if it came first, something could be removed before it is read
	if err == nil && now.Expired > after {
		err = ErrExpired
	}
	return found, upTo, err
}

// Head is the last number of a kind's log, 0 if there is none. Errors are those of Jobs.
func (r Reader) Head(ctx context.Context, c *cluster.Cluster, kind string, what What) (seq uint64, err error) {
	_, err = read(ctx, r, c, kind, func(ctx context.Context, log store.Log) ([]struct{}, error) {
		numbers, err := numbered(ctx, r.database, what, log)
		seq = numbers.Seq
		return nil, err
	})
	return seq, err
}

// Numbers seals the numbers of a kind's log. Errors are those of Jobs.
func (r Reader) Numbers(ctx context.Context, c *cluster.Cluster, kind string) (*seal.Numbers, error) {
	identity, err := c.Identity(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-r.service.ready:
		return r.service.numbersOf(store.LogName{Cluster: identity, Resource: kind}), nil
	default:
		return nil, errNotReady
	}
}

// Seal is a row's number as it is told to callers who may not see all of its log. The service must be ready.
func (a *Service) Seal(log store.LogName, seq uint64) string { return a.numbersOf(log).Row(seq) }

// numbersOf seals the numbers of a log. There are as many as logs that somebody reads.
func (a *Service) numbersOf(log store.LogName) *seal.Numbers {
	if known, ok := a.numbers.Load(log); ok {
		return known.(*seal.Numbers)
	}
	made, _ := a.numbers.LoadOrStore(log, seal.New(a.key, log.Cluster, log.Resource))
	return made.(*seal.Numbers)
}

// errNotReady is what readers get until the schema is ready.
var errNotReady = fmt.Errorf("%w: its schema is not ready", ErrAway)

// read asks the database about a log. A log that was never recorded is empty.
func read[T any](ctx context.Context, r Reader, c *cluster.Cluster, kind string, ask func(context.Context, store.Log) ([]T, error)) ([]T, error) {
	return readWithin(ctx, r, c, kind, pageWithin, ask)
}

func readWithin[T any](
	ctx context.Context, r Reader, c *cluster.Cluster, kind string, limit time.Duration, ask func(context.Context, store.Log) ([]T, error),
) ([]T, error) {
	identity, err := c.Identity(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.database.Refused(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	select {
	case <-r.service.ready:
	default:
		return nil, errNotReady
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	log, err := r.database.Find(within, store.LogName{Cluster: identity, Resource: kind})
	if errors.Is(err, store.ErrNoLog) {
		return nil, nil
	}
	var found []T
	if err == nil {
		found, err = ask(within, log)
	}
	switch {
	case err == nil:
		return found, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, store.ErrUnfinished):
		return found, err
	case errors.Is(err, errVisit), errors.Is(err, store.ErrBusy):
		return nil, err
	}
	r.service.metrics.Failed(ctx, err)
	return nil, fmt.Errorf("%w: %w", ErrAway, err)
}

// split takes resource.group apart.
func split(kind string) (resource, group string) {
	resource, group, _ = strings.Cut(kind, ".")
	return resource, group
}
