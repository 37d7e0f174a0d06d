//go:build unix

package app

import "syscall"

// descriptors is how many files, connections included, the process may have open; 0 if that is not known. Go's
// runtime has already raised the soft limit to the hard one.
func descriptors() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), 1<<30)) // Cur is signed on some systems
}
