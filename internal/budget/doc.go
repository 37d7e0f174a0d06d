// Package budget shares the gateway's means between its users: turns to do work (Queue, Task), and memory for results
// that are kept so that work is done once (Memory, Texts). It promises that a user who asks for too much waits behind
// those who ask for little, is refused, or loses their own results, and that no other user notices. Users are told
// apart by a string that the caller chooses. The package knows nothing of the work or the results.
package budget
