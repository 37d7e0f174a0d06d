// Package livepage has the event streams that are answers and not all objects: live counts, and
// live pages, which are what stands on some places of a sorted selection. The answers are kept by
// package livequery, once for all who ask the same.
//
// What it promises: what a client is told is true at the version that it is told with, and within
// what its caller may see. A client that was cut off anywhere is told what it needs to hold the
// answer again, without a reset: counts say all each time, and so does a page if anything of its
// selection changed meanwhile.
//
// What it refuses: to tell more often than the client wants. What happened in between is told as what became of it.
package livepage
