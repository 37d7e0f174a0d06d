// Package request owns what is known of each request, whatever it asks for: its id, the address for which it counts,
// whether it was HEAD, its query, what stands before its path, and which parts of it may be logged.
//
// What it promises: the part of a URL that is logged has no token and no query.
//
// What it refuses: to say who sent a request. That is known only to the code that checks credentials.
package request
