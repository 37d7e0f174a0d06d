package pending

import "time"

// owners knows whose the jobs of a line are. It is asked beside the line's goroutine, since the database may be slow.
type owners struct {
	known  map[string]Owned // by uid
	asking bool
	tried  int       // how often it was asked in vain
	next   time.Time // it is not asked again before
}

const (
	// ownersAtOnce bounds how many jobs are asked about at once.
	ownersAtOnce = 500
	// ownersAgain and ownersMost are between what is asked again: the history may be behind, or never know.
	ownersAgain, ownersMost = time.Second, time.Minute
)

// lookUpOwners says whose jobs are as far as that is known, and has it found out of the others.
func (l *line) lookUpOwners(s *Snapshot) {
	if l.board.registry.opts.Owners == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.owners
	unknown := map[string][]string{}
	waits := map[string]bool{}
	ofOne := map[LocalQueue]int{}
	for i := range s.Places {
		p := &s.Places[i]
		if p.Job == nil || !p.Known {
			continue
		}
		in := LocalQueue{p.Namespace, p.Queue}
		if ofOne[in]++; i >= mostTold && ofOne[in] > mostOfOne {
			continue
		}
		waits[p.Job.UID] = true
		// A Workload may name any uid.
		if known, ok := o.known[p.Job.UID]; !ok {
			if kind := p.Kind.String(); len(unknown[kind]) < ownersAtOnce {
				unknown[kind] = append(unknown[kind], p.Job.UID)
			}
		} else if known.Namespace == p.Namespace && known.Name == p.Job.Name {
			p.Owner = known.Owner
		}
	}
	for uid := range o.known {
		if !waits[uid] {
			delete(o.known, uid)
		}
	}
	if len(unknown) > 0 && !o.asking && !time.Now().Before(o.next) {
		o.asking = true
		l.looking.Go(func() { l.askOwners(unknown) })
	}
	s.Asking = s.Asking || o.asking && o.known == nil
}

// askOwners asks whose jobs are, by their kinds. What nobody knows is asked again later.
func (l *line) askOwners(unknown map[string][]string) {
	registry := l.board.registry
	var found []Owned
	for kind, uids := range unknown {
		some, err := registry.opts.Owners(l.life, l.board.kinds.Cluster(), l.payer(), kind, uids)
		if err == nil {
			found = append(found, some...)
		}
	}
	l.mu.Lock()
	o := &l.owners
	isFirst := o.known == nil
	if isFirst {
		o.known = map[string]Owned{}
	}
	for _, f := range found {
		o.known[f.UID] = f
	}
	if o.tried++; len(found) > 0 {
		o.tried = 0
	}
	wait := min(ownersAgain<<min(o.tried, 6), ownersMost)
	o.asking, o.next = false, time.Now().Add(wait)
	l.mu.Unlock()
	if len(found) > 0 || isFirst {
		l.wakes.Wake()
	}
	time.AfterFunc(wait, l.wakes.Wake)
}
