// Package rules reads from an object what it says of the state of the job that it is: of a batch/v1 Job by itself, of other
// kinds by CEL expressions, which are ready-made for the kinds that are most used.
//
// An expression gets the object as `object`, without nulls, since controllers write null where they mean nothing. It gets
// `state`, too: for the state's expression the one the job was in, the empty text for a new one, for all others what that expression said. `object.condition('Failed')` is the condition
// of that type with its members type, status, reason, message and lastTransitionTime, each a text, empty where it is not there.
//
// What is wrong with an expression is told when it is compiled, by an error that names the key. What fails later (a member
// that is not there, a cost beyond the limit) says nothing: the job stays what it was.
package rules
