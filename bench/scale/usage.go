//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/process"
)

// usage is what a run has used so far.
type usage struct {
	servers, core, source, clients time.Duration // processor time
	memory                         int64         // resident, of the servers
	kernel                         int64         // the kernel's own, of the whole machine
}

func (u usage) since(before usage) usage {
	return usage{u.servers - before.servers, u.core - before.core, u.source - before.source, u.clients - before.clients,
		u.memory - before.memory, u.kernel - before.kernel}
}

// used reads what servers, and those behind and before them, have used.
func used(servers []int, core, source int, c *crowd) (u usage, err error) {
	cpu := func(pid int) time.Duration {
		if pid == 0 {
			return 0
		}
		t, failed := process.CPU(pid)
		err = errors.Join(err, failed)
		return t
	}
	for _, pid := range servers {
		u.servers += cpu(pid)
		m, failed := process.ReadMemory(pid)
		err = errors.Join(err, failed)
		u.memory += m.Now
	}
	u.core, u.source = cpu(core), cpu(source)
	clients, failed := c.cpu()
	kernel, unread := kernelMemory()
	u.clients, u.kernel = clients, kernel
	return u, errors.Join(err, failed, unread)
}

// kernelMemory is the memory of the kernel's objects (sockets, files, what epoll holds) and of the buffers of TCP, in
// bytes. Nothing says which process they are for.
func kernelMemory() (int64, error) {
	slab, err := field("/proc/meminfo", "SUnreclaim:", 0)
	if err != nil {
		return 0, err
	}
	// TCP: inuse 5 orphan 0 tw 0 alloc 6 mem 1
	pages, err := field("/proc/net/sockstat", "TCP:", 9)
	return slab<<10 + pages*int64(os.Getpagesize()), err
}

// field is a number in a line of a file that begins with a name.
func field(file, name string, index int) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			if fields := strings.Fields(rest); index < len(fields) {
				return strconv.ParseInt(fields[index], 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("%s has no %s with %d fields", file, name, index+1)
}
