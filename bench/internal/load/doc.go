//go:build linux

// Package load is the client side of the benchmarks: thousands of readers of event streams in one process, the same for
// every server that is measured.
//
// It has to cost much less than the servers do, or it would be what is measured. So one thread waits for all connections
// (epoll), reads into one buffer, undoes the chunks, splits lines, and looks into an event no further than for its mark.
package load
