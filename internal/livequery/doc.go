// Package livequery keeps the answers to queries whose answers change all the time: how many
// objects there are of each value, and in which order a selection stands. A query is about a
// target, as far as somebody may see it, and a selector. It is kept once for all who ask the same,
// fed by one cursor, and dropped soon after nobody asks any more.
//
// What it promises: a Snapshot is true at its version, and never changes. Its readers are woken
// once there is another. Where a query's cursor was overtaken, or another history has begun, the
// answer is made anew from the present state.
//
// What it refuses: to keep more queries, or more bytes, than its bounds. Whoever holds most loses one then.
package livequery
