package recorder

import "time"

// How much of a job is done is known in memory at once, and written with each of its transitions.
// Without one it is written at most once in progressPause for each job: a job of 10,000 completions
// says 10,000 times that it has come further. A recorder that is killed has not written the last of
// it; the next one finds that in the object.

// progressPause is the least time between two writes of a job's progress.
const progressPause = 5 * time.Second

// progresses are the jobs of a term whose progress is not written, and those of which it was written lately.
type progresses struct {
	due   map[string]time.Time // by uid: when it may be written
	rests map[string]time.Time // by uid: until when it is not
}

func newProgresses() *progresses {
	return &progresses{due: map[string]time.Time{}, rests: map[string]time.Time{}}
}

// moved notes that a job's progress in memory is not what is written.
func (p *progresses) moved(uid string, now time.Time) {
	if _, known := p.due[uid]; known {
		return
	}
	p.due[uid] = now
	if rest := p.rests[uid]; now.Before(rest) {
		p.due[uid] = rest
	}
}

// written notes that a job is written as it is.
func (p *progresses) written(uid string) { delete(p.due, uid) }

// advance takes into a batch the jobs whose progress may be written now.
func (r *Recorder) advance(b *batch, now time.Time) {
	p := r.progresses
	for uid, rest := range p.rests {
		if !now.Before(rest) {
			delete(p.rests, uid)
		}
	}
	for _, uid := range r.inTurns(p.due, now) {
		if len(b.order) == batchSize/2 { // the rest is for reasons
			break
		}
		b.put(r.living[uid])
		p.written(uid)
		p.rests[uid] = now.Add(progressPause)
	}
}
