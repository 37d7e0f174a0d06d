// Package reasons says why jobs wait. It reads pods, Kueue's Workloads and PodGroups from the caches. By owners or
// labels it finds the jobs to which they belong.
//
// What it promises: it keeps only what those objects say now, so its memory grows with what waits
// and not with what there is; of all others it has one number for each job. Nobody waits for it,
// and it asks the cluster for nothing but its watches. It does not ask for a kind that the cluster
// does not have, that the gateway may not list, or that the gateway does not serve.
//
// What it refuses: to say what state a job is in. These objects only say why.
package reasons
