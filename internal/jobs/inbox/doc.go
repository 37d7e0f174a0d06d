// Package inbox keeps what users are told of their own jobs, in tables of the history's database:
// notifications, what of them was read, settings.
//
// What it promises: a notification is written in the transaction that writes its transition, so
// there is one for each, or none where the transition is not written. An inbox has one numbering
// for notifications and for marks of what was read. Its numbers have no gaps, and become visible in
// their order. A reader that goes on behind a number misses nothing, or learns that it does.
//
// What it refuses: to decide who may see what. Anybody who writes an object can name any owner. So
// whoever reads says which jobs (see JobRef) may be seen now, and all that is given is about
// these, counts included.
package inbox
