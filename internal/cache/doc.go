// Package cache holds the state of clusters. There is one Store per cluster and kind, filled by a shared informer;
// Kinds starts the stores when they are used, and stops them when they are not.
//
// What it promises: a Store's state, its indexes and its stream.Topic change together under one lock. A Snapshot has
// all of them at one moment; it is cheap to take, and holds no lock. So a list and the stream that begins at its
// version join without gap or duplicate. Objects come in the order of Kubernetes' lists.
//
// What it refuses: to write, and to answer before the first list is complete.
package cache
