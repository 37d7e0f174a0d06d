// Package access owns what a Kubernetes path names, and what of that a caller may see: it finds the store of a target for
// those who are granted something of it, and says how much that is.
//
// What it promises: permission comes first, so that nobody learns of a kind that they may not see whether it exists. A
// Visibility never changes, and is told from all others by the whole of what it shows.
//
// What it refuses: to remember. Each request is decided for itself, and whoever goes on with a grant asks again (See).
package access
