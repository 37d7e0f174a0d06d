// Package outbox keeps the messages that webhooks have to be sent, in tables beside the history's.
//
// A message is written in the transaction that writes its transition, so there is one if, and only if, there is the
// other. It stays until its target has accepted it, or until it has been kept for long enough. The messages of one job
// have an order, that of their numbers. Those of different jobs have none.
//
// What it refuses: to send anything. Package webhook does that, and holds the lease of a target meanwhile. The lease
// saves work and keeps the order; that each message arrives at least once does not depend on it.
package outbox
