//go:build !unix

package app

// descriptors is how many files, connections included, the process may have open; 0, since it is not known on this
// system.
func descriptors() int { return 0 }
