package logs

// Cursor is one reader's place in the log of a run. It is for one goroutine.
type Cursor struct {
	feeds  *Feeds
	feed   *feed
	user   string
	tail   int    // lines to begin with, before it is placed
	placed bool   // it has a place
	next   uint64 // number of the line to read next
	closed bool
}

// Next appends the lines that follow to batch, up to its capacity, and moves the cursor behind them. It does not wait: a batch
// that is not full means that there is no more, and then the waiter, unless it is nil, is woken once there is. The batch must have room for
// at least one line.
//
// An error comes without lines. After ErrSlow the cursor goes on with what is kept. With io.EOF the run has ended, and all of it was told; with
// ErrGone it is not known what else there was.
func (c *Cursor) Next(batch []Line, w Waiter) ([]Line, error) {
	f := c.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.placed {
		if !f.started {
			c.arm(w)
			return batch, nil
		}
		// A reset among them is no concern of who has just come.
		c.placed, c.next = true, max(f.first, f.next-min(f.next, uint64(c.tail)))
	}
	if c.next < f.first {
		c.next = f.first
		return batch, ErrSlow
	}
	before := len(batch)
	for c.next < f.next && len(batch) < cap(batch) {
		batch = append(batch, f.ring[c.next-f.first])
		c.next++
	}
	if c.next < f.next {
		return batch, nil
	}
	if f.err != nil && len(batch) == before {
		return batch, f.err
	}
	if f.err == nil {
		c.arm(w)
	} else if w != nil {
		w.Wake() // the end is to be told
	}
	return batch, nil
}

// arm has the waiter woken. The feed's lock is held.
func (c *Cursor) arm(w Waiter) {
	if w != nil {
		c.feed.waiting[c] = w
	}
}

// Disarm takes back what Next armed.
func (c *Cursor) Disarm() {
	c.feed.mu.Lock()
	defer c.feed.mu.Unlock()
	delete(c.feed.waiting, c)
}

// Close gives the place back.
func (c *Cursor) Close() {
	f := c.feeds
	f.mu.Lock()
	defer f.mu.Unlock()
	c.feed.mu.Lock()
	defer c.feed.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	delete(c.feed.waiting, c)
	if f.users[c.user]--; f.users[c.user] == 0 {
		delete(f.users, c.user)
	}
	if c.feed.readers--; c.feed.readers == 0 {
		f.rest(c.feed)
	}
}
