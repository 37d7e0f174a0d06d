// Package auditrecord owns what the audit log says of requests. Each request has a record in its
// context. The packages that handle the request add what they know: who sent it, by which
// credential, what it asked for, and what was decided.
//
// What it promises: a request or stream that reads objects, was refused, or signs in or out, has its lines, however
// it ends. A line has no token, and only a bounded part of each value that the client sent.
//
// What it refuses: to decide anything. A gateway without an audit log has no trails, and behaves the same.
package auditrecord
