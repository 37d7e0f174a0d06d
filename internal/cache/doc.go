// Package cache holds the state of clusters: one Store per cluster and kind, filled by a shared informer, and Kinds,
// which starts and stops them as they are used.
//
// What it promises: a Store's state, its indexes and its stream.Topic move together under one lock. A Snapshot is
// all of them at one moment, costs nothing to take and holds no lock, so a list and the stream that begins at its
// version join without gap or duplicate. Objects come in the order of Kubernetes' lists.
//
// What it refuses: to write, and to answer before the first list is complete.
package cache
