package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// snapshotEtcd copies etcd's data directory while etcd is stopped by SIGSTOP. The files then hold what a kill at that
// moment would leave. etcd recovers from a kill without losing what it has acknowledged; that is true even without
// fsync, since the page cache survives the process.
func (c *cluster) snapshotEtcd() error {
	pid := c.processes["etcd"].cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stopping etcd: %w", err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	// The stop is reported when all threads have stopped. WNOWAIT and the missing WEXITED leave an exit for
	// startProcess to collect.
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for etcd to stop: %w", err)
		}
	}
	unfinished := c.dir.etcdSnapshot() + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := copyTree(unfinished, c.dir.etcdData()); err != nil {
		return fmt.Errorf("copying etcd's data: %w", err)
	}
	if err := os.RemoveAll(c.dir.etcdSnapshot()); err != nil {
		return err
	}
	return os.Rename(unfinished, c.dir.etcdSnapshot())
}

// restoreEtcdData replaces etcd's data by a copy of the snapshot, which is kept. etcd must not run.
func (c *cluster) restoreEtcdData() error {
	if err := os.RemoveAll(c.dir.etcdData()); err != nil {
		return fmt.Errorf("removing etcd's data: %w", err)
	}
	if err := copyTree(c.dir.etcdData(), c.dir.etcdSnapshot()); err != nil {
		return fmt.Errorf("restoring etcd's data: %w", err)
	}
	return nil
}

func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.Mkdir(filepath.Join(to, relative), 0o700)
		}
		return copySparse(filepath.Join(to, relative), path)
	})
}

// copySparse copies a file, and leaves holes for blocks of zeros: etcd reserves some hundred megabytes in its files
// in advance.
func copySparse(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	var size int64
	block, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(in, block)
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := out.WriteAt(block[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := out.Truncate(size); err != nil {
		return err
	}
	return out.Close()
}
