// Package logtail keeps the end of the log of each job that has ended: the last lines of the container that decided it.
// Of pods that fail, or are deleted, it keeps the ends of theirs at once, since these may be gone when the job ends.
//
// What it promises: recording never waits for it. Namespaces take turns, so however many jobs end
// in one of them, and however slow its logs are, others' are read; what waits is bounded, and the
// namespace that has most of it gives way. What is kept was written by a pod of that job.
//
// What it refuses: to miss nothing. Of a pod that is gone before its log was read, nothing is kept,
// nor of one whose last line does not end. A gateway that is killed loses what it had not read, but
// for jobs that ended a moment before another one takes over, and for pods that are there until then.
package logtail
