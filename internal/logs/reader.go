package logs

import "time"

// Start is where a reader begins.
type Start struct {
	After *LinePosition // behind which it goes on; then nothing else counts
	Whole bool          // with the log's first line; then neither of these counts
	Since time.Time     // with a line of this second at the earliest; the zero time: any
	Tail  int           // with so many lines of those that are there; negative: all
}

// Reader reads the log of a run, from where it begins. It is for one goroutine.
type Reader struct {
	feeds *Feeds
	feed  *feed
	user  string
	start Start

	placed  bool     // it has a place in the ring
	next    uint64   // number of the line to read there
	catchUp *catchUp // nil: what it reads is in the ring, or it is not known yet
	closed  bool
}

// Next appends the lines that follow to batch, up to its capacity, and moves the reader behind
// them. It does not wait: a batch that is not full means that there is no more, and then the
// waiter, unless it is nil, is woken once there is. The batch must have room for at least one line.
//
// An error comes without lines. After ErrSlow the reader goes on with what is kept. With ErrLimit
// the log cannot be read back so far for now. With io.EOF the run has ended, and all of it was
// told; with ErrGone it is not known what else there was, and with ErrUnreadable it could not be
// read.
func (r *Reader) Next(batch []*Line, w Waiter) ([]*Line, error) {
	before := len(batch)
	for {
		var err error
		switch {
		case r.placed:
			batch, err = r.present(batch, before, w)
			return batch, err
		case r.catchUp == nil:
			known, err := r.place(w)
			if !known || err != nil {
				return batch, err
			}
		default:
			had := len(batch)
			batch, err = r.catchUp.take(batch, w)
			switch {
			case len(batch) > had:
				if r.join(batch[len(batch)-1]); len(batch) == cap(batch) {
					return batch, nil
				} // else until there is nothing, so that it is woken
			case err != nil && len(batch) > before:
				wake(w) // the end is to be told
				return batch, nil
			default:
				return batch, err
			}
		}
	}
}

// place looks where the reader begins. Known is false while that has to be waited for.
func (r *Reader) place(w Waiter) (known bool, err error) {
	f := r.feed
	f.mu.Lock()
	if !f.started {
		if w != nil {
			f.waiting[r] = w
		}
		f.mu.Unlock()
		return false, nil
	}
	if r.start.After != nil {
		r.next, r.placed = f.after(*r.start.After)
	} else {
		r.next, r.placed = f.from(r.start)
	}
	f.mu.Unlock()
	if r.placed {
		return true, nil
	}
	r.catchUp, err = r.feeds.beginCatchUp(f, r.user, r.start)
	return true, err
}

// join goes over to the ring behind the last line of a batch, where it can.
func (r *Reader) join(last *Line) {
	f := r.feed
	f.mu.Lock()
	r.next, r.placed = f.after(last.After)
	f.mu.Unlock()
	if r.placed && r.catchUp != nil {
		r.feeds.mu.Lock()
		defer r.feeds.mu.Unlock()
		r.endPast()
	}
}

// present reads the ring.
func (r *Reader) present(batch []*Line, before int, w Waiter) ([]*Line, error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.next < f.first {
		if len(batch) > before {
			wake(w)
			return batch, nil
		}
		r.next = f.first
		return batch, ErrSlow
	}
	for r.next < f.next && len(batch) < cap(batch) {
		batch = append(batch, f.ring[r.next-f.first])
		r.next++
	}
	switch {
	case len(batch) == cap(batch):
	case f.err != nil && len(batch) == before:
		return batch, f.err
	case f.err != nil:
		wake(w) // the end is to be told
	case w != nil:
		f.waiting[r] = w
	}
	return batch, nil
}

func wake(w Waiter) {
	if w != nil {
		w.Wake()
	}
}

// Settled reports whether all was read that was there when the reader began.
func (r *Reader) Settled() bool {
	if r.catchUp != nil {
		return r.catchUp.hasSettled()
	}
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	return r.placed && r.feed.settled && r.next >= r.feed.next
}

// Trouble is why the log cannot be read for now; nil if it can, or has been read to its end.
func (r *Reader) Trouble() error {
	if p := r.catchUp; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.failing
	}
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	return r.feed.failing
}

// endPast closes the connection that was the reader's own. It counts no more from now on, though its goroutine may take a moment
// to end: who comes back at once would be refused for what they have just left. The lock of the Feeds is held.
func (r *Reader) endPast() {
	if r.catchUp != nil {
		r.catchUp.cancel()
		r.catchUp.uncount()
		r.catchUp = nil
	}
}

// Close gives the place back. Nothing wakes the waiter any more.
func (r *Reader) Close() {
	f := r.feeds
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	if r.catchUp != nil {
		r.catchUp.change(func() { r.catchUp.waiter = nil })
	}
	r.endPast()
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	delete(r.feed.waiting, r)
	of, run := f.users[r.user], r.feed.follower.run
	if of[run]--; of[run] == 0 {
		delete(of, run)
	}
	if len(of) == 0 {
		delete(f.users, r.user)
	}
	if r.feed.readers--; r.feed.readers == 0 {
		f.rest(r.feed)
	}
}
