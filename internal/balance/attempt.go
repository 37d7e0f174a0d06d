package balance

import "time"

// attempt is what has come of moving streams since this replica had too many. It lasts until it has helped or was in vain, or
// the replicas are level and most clients have stayed away, whichever replicas come and go meanwhile.
type attempt struct {
	streams, excess int       // when it began
	returned        int       // what Options.Returned was then
	moved, back     int       // since, and of how many of these the clients are here again
	sampled         time.Time // when its first streams were moved; zero: none were
	moving          bool      // the excess is being moved
}

// size is how many streams are to be moved now: of the first attempt a sample first.
func (a *attempt) size(excess int) int {
	if a.sampled.IsZero() {
		return min(excess, max((excess+sampleShare-1)/sampleShare, sampleLeast))
	}
	return (excess + share - 1) / share
}

// add takes note of streams that are moved.
func (a *attempt) add(streams int, now time.Time) {
	a.moved += streams
	a.moving = true
	if a.sampled.IsZero() {
		a.sampled = now
	}
}

// pending reports whether it is not known yet what has come of the sample.
func (a *attempt) pending(now time.Time) bool {
	return !a.sampled.IsZero() && now.Sub(a.sampled) < pause
}

// cameBack reports whether nearly all clients that were moved are here again.
func (a *attempt) cameBack(now time.Time) bool {
	return a.moved > 0 && !a.pending(now) && a.back >= a.moved-a.moved/8
}

// helped reports whether it can be for the streams that were moved that this replica has not too many any more. It may also be
// because another replica is away.
func (a *attempt) helped(streams int) bool {
	return a.moved > 0 && streams <= a.streams-min(a.moved, a.excess)/2
}

// stayAway reports whether more than half of the clients that were moved are not here again. That is less than to have helped:
// where all replicas get more streams meanwhile, none has fewer; but some clients are not known when they come back.
func (a *attempt) stayAway() bool { return 2*a.back < a.moved }

// rests are the times in which nothing is moved, since it was in vain.
type rests struct {
	until time.Time
	last  time.Duration // how long it was
}

// begin begins one that is twice as long as the one before, and returns its length.
func (r *rests) begin(now time.Time) time.Duration {
	r.last = min(max(rest, 2*r.last), longest)
	r.until = now.Add(r.last)
	return r.last
}
