// Package visibility owns what a Kubernetes path names (Target), how much of it a caller may see
// (Visibility), and the two together (VisibleTarget), by which lists, counts and streams read a store.
//
// What it promises: a Visibility never changes, and is identified by all that it shows, on all
// replicas alike. What a Visibility does not show is neither listed nor counted.
//
// What it refuses: to ask who may see what. Package http/access does that.
package visibility
