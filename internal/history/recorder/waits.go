package recorder

import (
	"context"
	"time"

	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/waiting"
)

const (
	// look is how often the recorder looks at what other objects say of jobs that wait.
	look = time.Second
	// stands is how long something must have been said before it is written: a job that starts at once has not waited.
	stands = time.Second
	// firstPause is the time between the first and the second write of a job's reason. Each later pause is twice as long,
	// up to longestPause, until the job's state changes. So reasons that alternate for ever cost few writes. A reason
	// that differs from the written one only in numbers ("0/12 nodes are available") always waits for longestPause.
	firstPause, longestPause = 5 * time.Second, 10 * time.Minute
)

// waits is what a tenure knows of why its jobs wait.
type waits struct {
	listener *waiting.Listener
	due      map[string]time.Time // by uid: when to look at what is said of a job
	paces    map[string]pace      // by uid: for jobs whose reason was written while they were in this state
}

// pace is how often a job's reason is written.
type pace struct {
	written time.Time
	pause   time.Duration // until it may be written again
}

// listen begins to listen to what other objects say of jobs. It also looks at what is already known of all living jobs.
func (r *Recorder) listen() {
	if r.opts.Waits == nil {
		return
	}
	r.waits = &waits{listener: r.opts.Waits.Listen(), due: map[string]time.Time{}, paces: map[string]pace{}}
	for _, job := range r.living {
		r.waits.changed(job, time.Now())
	}
}

func (r *Recorder) unlisten() {
	if r.waits != nil {
		r.waits.listener.Close()
		r.waits = nil
	}
}

// changed records that a job came to another state.
func (w *waits) changed(job *history.Job, now time.Time) {
	if w == nil {
		return
	}
	delete(w.paces, job.UID)
	delete(w.due, job.UID)
	if job.State.Waits() {
		w.due[job.UID] = now.Add(stands)
	}
}

// explain writes why jobs wait, for the jobs of which something else is said than what is written. It does not move seq,
// and writes nothing where nothing changes.
func (r *Recorder) explain(ctx context.Context) error {
	if r.waits == nil {
		return nil
	}
	w, now := r.waits, time.Now()
	for _, uid := range w.listener.Changed() {
		if job := r.living[uid]; job != nil && job.State.Waits() && w.due[uid].IsZero() {
			w.due[uid] = now.Add(stands)
		}
	}
	var b batch
	for uid, due := range w.due {
		if now.Before(due) {
			continue
		}
		why, known := r.opts.Waits.Why(uid)
		if why.Reason == "" && !known {
			continue // there may be a reason that could not be read yet
		}
		if why.Reason != "" && why.At == 0 {
			why.At = history.At(now)
		}
		next := history.Explained(r.living[uid], why)
		if next == nil {
			delete(w.due, uid)
			continue
		}
		if wait := w.paces[uid].until(r.living[uid], next); now.Before(wait) {
			w.due[uid] = wait // what is said at that time counts
			continue
		}
		b.put(next)
		r.living[uid] = next
		w.paces[uid] = w.paces[uid].next(now)
		delete(w.due, uid)
		if len(b.order) == batchSize {
			break
		}
	}
	return r.write(ctx, &b)
}

// until is when the next reason of a job may be written.
func (p pace) until(was, next *history.Job) time.Time {
	if was.Reason == next.Reason && alike(was.Message, next.Message) {
		return p.written.Add(longestPause)
	}
	return p.written.Add(p.pause)
}

func (p pace) next(now time.Time) pace {
	return pace{written: now, pause: min(max(2*p.pause, firstPause), longestPause)}
}

// alike reports whether texts differ only in their numbers.
func alike(a, b string) bool {
	for {
		for a != "" && isDigit(a[0]) {
			a = a[1:]
		}
		for b != "" && isDigit(b[0]) {
			b = b[1:]
		}
		switch {
		case a == "" || b == "":
			return a == b
		case a[0] != b[0]:
			return false
		}
		a, b = a[1:], b[1:]
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
