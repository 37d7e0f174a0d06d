// Package rest owns the answers that are no streams: objects, lists and their pages, counts, the API server's documents, and
// what clusters and kinds there are for a caller.
//
// What it promises: all pages of a walk are of one version, or the client is told that they cannot be. What one user walks,
// sorts or asks for takes nothing from another: turns, memory and requests are shared between users.
//
// What it refuses: to hold anything for a client that does not take it. A list is a snapshot, which holds no lock.
package rest
