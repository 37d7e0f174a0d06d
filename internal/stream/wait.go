package stream

// Waiter is a reader that waits, with any number of cursors at once.
type Waiter interface {
	// Wake says that an armed cursor may have something to read. It may be called without cause. It must not wait,
	// and must not call the topic.
	Wake()
}

// WakeChannel is a Waiter for a goroutine that waits on a channel.
type WakeChannel struct {
	// C holds a token once Wake was called.
	C chan struct{}
}

// NewWakeChannel returns a channel without a token.
func NewWakeChannel() *WakeChannel { return &WakeChannel{C: make(chan struct{}, 1)} }

// Wake implements Waiter. It leaves a token in C, unless one is there.
func (b *WakeChannel) Wake() {
	select {
	case b.C <- struct{}{}:
	default:
	}
}

// waitList holds the readers that wait for the events of one namespace, or of all.
type waitList struct {
	waiting []*registration
	noted   bool // whether the list is in Topic.wake
}

// registration is a reader's place in a waitList.
type registration struct {
	waiter Waiter
	list   *waitList // the list that it is in; nil: none
	index  int
}

func (l *waitList) add(r *registration) {
	r.list, r.index = l, len(l.waiting)
	l.waiting = append(l.waiting, r)
}

// remove takes a registration off its list. The list's last one moves to the free place.
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

// signal lets Run wake the readers that were noted. The writer itself wakes none, so that it costs the same however
// many there are.
func (t *Topic[O]) signal() {
	select {
	case t.dirty <- struct{}{}:
	default:
	}
}

// wakeReaders takes the noted readers off their lists, and wakes them once the lock is released. It collects them in
// woken, and returns that empty, so that its memory is used again.
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
