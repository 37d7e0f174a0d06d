// Package access asks the authorizer how much of a target a caller may see. For a caller who may
// see something of it, it finds the store, and says how much (a visibility.Visibility).
//
// What it promises: the permission is checked first, so that callers do not learn whether a kind exists that they may
// not see.
//
// What it refuses: to remember. Each request is decided by itself, and a stream that goes on with a grant asks again
// (See).
package access
