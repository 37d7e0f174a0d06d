// Package rules reads what an object says of the state of the job that it is. For the kinds that
// are used most, it has built-in rules, made from what their controllers were recorded to write.
// Other kinds are read by CEL expressions, which can also take the place of a part of a built-in
// rule.
//
// A built-in rule sees the object and the job as it was: its state, and what was counted of it. So
// it tells what grew from what is: a number of failures never falls, and says nothing of the
// present.
//
// An expression gets the object as `object`, without nulls, since controllers write null where they
// mean nothing. It also gets `state`. For the expression of the state, this is the state that the
// job was in, or the empty text for a new job. For all other expressions it is the result of that
// one. `object.condition('Failed')` is the condition of that type. Its members type, status,
// reason, message and lastTransitionTime are texts, which are empty if there is no such condition.
//
// An expression that is wrong is refused when it is compiled, by an error that names the key. An
// expression that fails later says nothing, and the job stays what it was. That happens if a member
// does not exist, or if the cost exceeds the limit.
package rules
