// Package webhook sends the messages of package outbox to their targets, as the specification
// Standard Webhooks 1.0 has it.
//
// What it promises: each message arrives at least once, with the same id at each attempt, and the
// messages of one job in their order. A target that hangs, fails or is away delays no other
// target's messages, and a message that fails delays none but its own job's. Namespaces take turns.
// Of several replicas, one sends to a target; if it is gone, another one does within seconds.
//
// What it refuses: to follow redirects, to read much of an answer, and to tell users what a target said. Operators are
// told. It does not restrict where a target is: its URL is the operator's configuration, and an address within the
// cluster or of the machine itself is a good one.
package webhook
