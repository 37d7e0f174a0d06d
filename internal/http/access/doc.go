// Package access owns what a Kubernetes path names, and how much of it a caller may see. For a caller who may see
// something of a target, it finds the store, and says what the caller may see.
//
// What it promises: the permission is checked first, so that callers do not learn whether a kind exists that they may
// not see. A Visibility never changes, and is identified by all that it shows.
//
// What it refuses: to remember. Each request is decided by itself, and a stream that goes on with a grant asks again
// (See).
package access
