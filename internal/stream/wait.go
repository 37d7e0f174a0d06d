package stream

// Waiter is one stream that waits, with any number of cursors at once.
type Waiter interface {
	// Wake says that a cursor that was armed may have something to read; it may be said without cause. It must not
	// wait, nor call the topic.
	Wake()
}

// Bell is a Waiter for a goroutine that waits on a channel.
type Bell struct {
	// C holds a token once the bell was rung.
	C chan struct{}
}

// NewBell makes a bell.
func NewBell() *Bell { return &Bell{C: make(chan struct{}, 1)} }

// Wake implements Waiter; it leaves a token.
func (b *Bell) Wake() {
	select {
	case b.C <- struct{}{}:
	default:
	}
}

// waitList holds the readers to wake when something happens that concerns them, each once.
type waitList struct {
	waiting []*registration
	noted   bool // is in Topic.wake
}

// registration is a reader's place in a waitList.
type registration struct {
	waiter Waiter
	list   *waitList // nil: in none
	index  int
}

func (l *waitList) add(r *registration) {
	r.list, r.index = l, len(l.waiting)
	l.waiting = append(l.waiting, r)
}

// remove takes the last into the place that gets free.
func (r *registration) remove() {
	if r.list == nil {
		return
	}
	waiting := r.list.waiting
	last := waiting[len(waiting)-1]
	waiting[r.index], last.index = last, r.index
	waiting[len(waiting)-1] = nil
	r.list.waiting = waiting[:len(waiting)-1]
	r.list = nil
}

// note remembers that a list's readers are to be woken.
func (t *Topic[O]) note(list *waitList) {
	if len(list.waiting) > 0 && !list.noted {
		list.noted = true
		t.wake = append(t.wake, list)
	}
}

func (t *Topic[O]) wakeEveryone() {
	t.note(&t.everyone)
	for _, c := range t.chains {
		t.note(&c.waiting)
	}
}

// signal lets Run wake whoever was noted; the writer itself wakes nobody.
func (t *Topic[O]) signal() {
	select {
	case t.dirty <- struct{}{}:
	default:
	}
}

// wakeReaders takes those who were noted off their lists, and wakes them when no lock is held any more. It collects
// them in woken, whose room the caller may use again.
func (t *Topic[O]) wakeReaders(woken []Waiter) []Waiter {
	t.mu.Lock()
	for _, list := range t.wake {
		for i, r := range list.waiting {
			woken = append(woken, r.waiter)
			r.list = nil
			list.waiting[i] = nil
		}
		list.waiting = list.waiting[:0]
		list.noted = false
	}
	t.wake = t.wake[:0]
	t.mu.Unlock()
	for _, w := range woken {
		w.Wake()
	}
	clear(woken)
	return woken[:0]
}
