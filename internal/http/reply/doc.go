// Package reply owns what all HTTP answers have in common: the errors that clients are told, in one table and one
// format, the form that the Accept header chooses, ETags, and common headers.
//
// What it promises: an error tells the client what it can do about it, in Kubernetes' own words where there are any.
// No internal error text reaches a client: an error that is not in the table is a bare 500, and its cause goes to the
// log.
//
// What it refuses: to know who asks, or for what. It imports none of the packages that handle requests.
package reply
