// Package rest owns the answers that are not streams: objects, lists and their pages, counts, the API server's
// documents, and the clusters and kinds that a caller may see.
//
// What it promises: all pages of a list are of one version, or the client is told that this is not possible. Turns,
// memory and requests are shared between users, so that what one user lists or sorts takes nothing from another.
//
// What it refuses: to hold an answer for a client that does not take it. A list is made from a snapshot, which holds
// no lock.
package rest
