// Package history says what the life of a job is: its states, the transitions between them, and what a job is after each.
//
// All of it is a function of a log: what was seen of the job objects of one kind and cluster, in the order of their
// versions. Next is one step of that function. It holds no clock, no memory and no lock, so whoever reads the log again
// from the same place finds the same transitions; that is what makes a recorder that was killed go on without a gap
// and without telling anything twice.
//
// What an object says of its state is the matter of package rules, where a job is kept that of package store.
package history
