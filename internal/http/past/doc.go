// Package past answers what is below /history: the jobs of a kind, past ones too, their transitions, and what they used
// (docs/wire.md, "History").
//
// What it promises: nobody sees a job, deleted or not, that they could not list now, and nothing tells whether there are others: a
// job that may not be seen is filtered by the database, like one that was not asked for. A page goes on where it ended,
// whatever was written since.
//
// What it refuses: parameters that it does not know. One that was misspelled would show more than was asked for.
package past
