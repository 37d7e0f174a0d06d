// Package budget shares what the gateway has between its users: turns to do something (Queue), and the memory of what is kept
// to be done once only (Memory, Texts). It promises that a user who asks for too much waits behind those who ask for little,
// is refused, or has their own forgotten, and that nobody else notices. Users are told apart by a string that the caller
// chooses. The package knows nothing of what it shares.
package budget
