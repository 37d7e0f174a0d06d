// Package trail owns what the audit log says of requests: each has a trail, in its context, to which every room adds what
// it alone knows, namely who sent it, by which credential, what it asked for and what was decided.
//
// What it promises: a request or stream that reads objects, was refused, or signs in or out, has its lines, whatever
// becomes of it. A line holds no token, and no more of what a client sent than is bounded.
//
// What it refuses: to decide anything. A gateway without an audit log has no trails, and nothing behaves differently.
package trail
