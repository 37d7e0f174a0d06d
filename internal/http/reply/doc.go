// Package reply owns what an HTTP answer is made of, whichever room gives it: the errors that clients are told, in one
// table and one format, the form that the Accept header chooses, ETags, and the headers that answers have in common.
//
// What it promises: an error says to a client what that client can do about it, in Kubernetes' own words where
// Kubernetes has them. No error text of the inside reaches a client: what the table does not know is a bare 500, whose
// cause is for the log.
//
// What it refuses: to know who asks, or what for. It imports none of the rooms.
package reply
