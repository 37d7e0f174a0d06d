// Package waiting says why jobs wait: it reads pods, Kueue's Workloads and PodGroups from the caches, and finds by owner or label
// whose they are.
//
// What it promises: what it keeps is what those objects say now, so it grows with what waits, not with what there is. Nobody waits
// for it, and it asks the cluster nothing beyond its watches. A kind that the cluster does not have, that the gateway may not
// list, or that it does not serve, is not asked.
//
// What it refuses: to say what a job's state is. These objects say why, never what.
package waiting
