// Package render owns the forms in which an object is sent: whole, reduced to some fields, as a row of a table, as
// its metadata, or as a patch.
//
// What it promises: a form has nothing that the object does not have, and always what identifies the object and its
// version. A patch, applied to the state before, gives exactly the state after.
//
// What it refuses: to know who asks. Its callers have already decided what may be seen.
package render
