// Package notifications answers what is below /notifications: what its caller is to be told of
// their own jobs, as a list and as a stream, what of it they have read, and their settings
// (docs/wire.md, "Notifications").
//
// What it promises: callers are told of no job that they could not get now, not even by a number.
// Nobody else's inbox can be named.
//
// What it refuses: callers without a name of their own. That are anonymous callers, and service
// accounts of a cluster, whose names mean others in other clusters.
package notifications
