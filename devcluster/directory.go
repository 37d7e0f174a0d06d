package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// directory is what --dir names: everything one devcluster keeps on disk.
type directory string

func (d directory) path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

func (d directory) kubeconfig() string          { return d.path("kubeconfig") }
func (d directory) logs() string                { return d.path("logs") }
func (d directory) log(component string) string { return d.path("logs", component+".log") }
func (d directory) pki(file string) string      { return d.path("pki", file) }
func (d directory) etcdData() string            { return d.path("etcd") }
func (d directory) kubectlCache() string        { return d.path("kubectl-cache") }
func (d directory) etcdSnapshot() string        { return d.path("etcd-snapshot") }

// openDirectory resolves the argument of --dir.
func openDirectory(command, arg string) (directory, error) {
	if arg == "" {
		return "", fmt.Errorf("%s: --dir is required", command)
	}
	abs, err := filepath.Abs(arg)
	if err != nil {
		return "", fmt.Errorf("%s: --dir %s: %w", command, arg, err)
	}
	return directory(abs), nil
}

// lock reserves the directory for this process until it ends. The kernel drops the lock however the process ends. So
// the directory of a devcluster that was killed can be told from one in use.
func (d directory) lock() (unlock func(), err error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory: %w", err)
	}
	file, err := os.OpenFile(d.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		owner := make([]byte, 16)
		n, _ := file.Read(owner)
		file.Close()
		return nil, fmt.Errorf("%s is in use by a running devcluster (process %s); stop it first, or use another directory", d, owner[:n])
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", d, err)
	}
	if err := file.Truncate(0); err == nil {
		fmt.Fprint(file, os.Getpid())
	}
	return func() { file.Close() }, nil
}

// clear removes what an earlier devcluster left, its data included: a test or a demo must begin with a known content,
// and not with the half-run jobs of last week.
func (d directory) clear() error {
	for _, name := range []string{"kubeconfig", "control.sock", "logs", "pki", "etcd", "etcd-snapshot", "etcd-snapshot.new", "config", "kubectl-cache", "pod-logs"} {
		if err := os.RemoveAll(d.path(name)); err != nil {
			return fmt.Errorf("removing what is left of an earlier devcluster: %w", err)
		}
	}
	for _, name := range []string{"logs", "pki", "config"} {
		if err := os.Mkdir(d.path(name), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file so that a reader sees either all of it or nothing.
func writeFile(name string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	if _, err := temporary.Write(data); err != nil {
		temporary.Close()
		return err
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), name)
}
