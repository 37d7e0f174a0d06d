//go:build linux

// Package load is the client side of the benchmarks: thousands of readers of event streams in one process, the same for
// every server that is measured.
//
// It has to cost much less than the servers, or it would itself be measured. So one thread waits for all connections
// (epoll), reads into one buffer, decodes the chunks and splits lines. Of an event, it reads no more than the mark.
package load
