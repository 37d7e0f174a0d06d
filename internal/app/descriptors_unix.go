//go:build unix

package app

import "syscall"

// descriptors is how many files, connections included, the process may have open; 0 if that is not known. Go has raised it
// to what it may be raised to.
func descriptors() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), 1<<30)) // which is signed on some systems
}
