// Package render owns the forms in which an object is told: as it is, reduced to some fields, as a row of a table, as its
// metadata, or as a patch.
//
// What it promises: a form holds nothing that the object does not, and always what identifies the object and its version. A
// patch, applied to what it was made from, gives exactly what it was made to.
//
// What it refuses: to know who asks. What may be seen was decided before.
package render
