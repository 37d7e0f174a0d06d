// Package request owns what is known of a request before anybody has looked at what it asks for: its id, the address that
// it counts for, whether it was HEAD, its query, and what of it may be logged.
//
// What it promises: what is logged of an address holds no token, and no query.
//
// What it refuses: to say who sent a request; that is for whoever reads its credentials.
package request
