// Package jobs says what the life of a job is: its states, the transitions between them, and
// what a job is after each.
//
// All of it is a function of a log: of what was seen of the job objects of one kind and cluster, in the order of their
// versions. Next is one step of that function. It has no clock, no memory and no lock. So whoever reads the log again
// from the same place finds the same transitions. That is why a recorder that was killed can go on without a gap, and
// without telling anything twice.
//
// The pods of jobs are another log. A Run is the life of one of them, and NextRun one step.
//
// Package rules reads what an object says of its state, package pods what a pod says of its life,
// and package store keeps the jobs.
package jobs
