// Package pending owns in which order jobs wait in ClusterQueues of Kueue and in Queues of Volcano, kept up to date for all who read it.
//
// What it promises: what is read of a ClusterQueue is made once for all readers. Kueue is asked for its order when
// something has changed in the queue, and again until its answer fits the objects; in between it is left alone.
//
// What it refuses: to know callers. What of a snapshot somebody may see is decided by whoever reads it.
package pending
