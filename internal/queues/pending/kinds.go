package pending

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/queues"
)

// kinds knows the kinds that jobs of a line are said to be of, by group and kind alone. What the cluster has not said
// yet is asked beside the line's goroutine, since it may not answer, and a Workload may name any kind.
type kinds struct {
	known  map[queues.Job]kindFound
	asking map[queues.Job]bool
	more   bool // there are others to be asked about
}

type kindFound struct {
	kind  cluster.Kind
	known bool
	until time.Time // of one that is not known
}

const (
	// mostKinds bounds of how many kinds jobs may be: what may be seen of each is asked for each caller.
	mostKinds = 24
	// mostLookUps is how many kinds are looked for at once, and mostNamed of how many it is known whether they are.
	mostLookUps, mostNamed = 32, 1024
	// kindsKept is for how long it is known that there is no kind of a name, and kindsSoon of one that was looked
	// for once: it may have been installed right before.
	kindsKept, kindsSoon = 30 * time.Second, 2 * time.Second
)

// lookUpKinds says of which kinds the jobs are, as far as that is known, and has it found out of the others.
func (l *line) lookUpKinds(s *Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kinds.more = false
	jobs := map[cluster.Kind]bool{}
	for i := range s.Places {
		p := &s.Places[i]
		if p.Job == nil {
			continue
		}
		if p.Kind, p.Known = l.kindOf(queues.Job{Group: p.Job.Group, Kind: p.Job.Kind}); p.Known && !jobs[p.Kind] {
			jobs[p.Kind] = true
			s.Kinds = append(s.Kinds, p.Kind)
		}
	}
	for of := range l.kinds.asking {
		_, looked := l.kinds.known[of]
		s.Asking = s.Asking || !looked
	}
	if len(s.Kinds) > mostKinds {
		// Kinds that Kueue knows go first, so that others that somebody names do not hide everybody's jobs.
		slices.SortStableFunc(s.Kinds, func(a, b cluster.Kind) int { return cmp.Compare(l.isOfJobs(b), l.isOfJobs(a)) })
		for _, kind := range s.Kinds[mostKinds:] {
			delete(jobs, kind)
		}
		s.Kinds = s.Kinds[:mostKinds]
		for i := range s.Places {
			s.Places[i].Known = s.Places[i].Known && jobs[s.Places[i].Kind]
		}
	}
	slices.SortFunc(s.Kinds, func(a, b cluster.Kind) int { return cmp.Compare(a.String(), b.String()) })
}

// isOfJobs is 1 for a kind that Kueue or the history has jobs of.
func (l *line) isOfJobs(kind cluster.Kind) int {
	if queues.IsJob(kind.Group, kind.Kind) || slices.Contains(l.board.registry.opts.Kinds, kind.String()) {
		return 1
	}
	return 0
}

// kindOf is a kind as far as it is known. The lock is held.
func (l *line) kindOf(of queues.Job) (kind cluster.Kind, known bool) {
	k := &l.kinds
	found, looked := k.known[of]
	if found.known || looked && time.Now().Before(found.until) {
		return found.kind, found.known
	}
	if k.known == nil {
		k.known, k.asking = map[queues.Job]kindFound{}, map[queues.Job]bool{}
	}
	if kind, known = l.board.kinds.Cluster().Knows(of.Group, of.Kind); known {
		k.known[of] = kindFound{kind: kind, known: true}
		return kind, true
	}
	if len(k.known) >= mostNamed {
		maps.DeleteFunc(k.known, func(_ queues.Job, f kindFound) bool { return !f.known && !time.Now().Before(f.until) })
	}
	switch {
	case k.asking[of], len(k.known) >= mostNamed:
	case len(k.asking) >= mostLookUps:
		k.more = true
	default:
		k.asking[of] = true
		l.looking.Go(func() { l.askKind(of) })
	}
	return kind, false
}

// askKind asks the cluster for a kind that it has not named yet.
func (l *line) askKind(of queues.Job) {
	kind, err := l.board.kinds.Cluster().KindOf(l.life, of.Group, of.Kind)
	l.mu.Lock()
	k := &l.kinds
	delete(k.asking, of)
	kept := kindsKept
	_, again := k.known[of]
	if !again && len(k.known) < mostNamed/2 {
		kept = kindsSoon
	}
	k.known[of] = kindFound{kind, err == nil, time.Now().Add(kept)}
	wake := err == nil || k.more || !again
	l.mu.Unlock()
	if wake {
		l.wakes.Wake()
	}
	if err != nil && (kept == kindsSoon || !errors.Is(err, cluster.ErrNoKind)) { // it is not hidden for longer than it has to be
		time.AfterFunc(kept, l.wakes.Wake)
	}
}
