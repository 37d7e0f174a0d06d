// Package historyapi answers what is below /history: the jobs of a kind, past ones too, their
// transitions, and what they used (docs/wire.md, "History").
//
// What it promises: callers see no job, deleted or not, that they could not list now, and cannot
// find out whether there are others. The database filters jobs that may not be seen together with
// those that were not asked for. A page goes on where the one before ended, whatever was written
// since.
//
// What it refuses: unknown parameters. A misspelled one would show more than was asked for.
package historyapi
