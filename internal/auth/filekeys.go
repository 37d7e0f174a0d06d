package auth

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// rereadEvery is how soon a changed key file is noticed. It is read rather than watched: a mounted
// Secret or ConfigMap is replaced by renaming directories above it.
const rereadEvery = 10 * time.Second

// fileKeys are keys from a file.
type fileKeys struct {
	path   string
	parse  func([]byte) (keySet, error)
	logger *slog.Logger
	keys   atomic.Pointer[keySet]
	data   []byte // what keys was made from; run's
}

func newFileKeys(path string, parse func([]byte) (keySet, error), logger *slog.Logger) (*fileKeys, error) {
	f := &fileKeys{path: path, parse: parse, logger: logger}
	if _, err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *fileKeys) current(context.Context) (keySet, error) { return *f.keys.Load(), nil }

// newer has nothing to offer: the file is read again by the clock, not because strangers ask.
func (f *fileKeys) newer(context.Context, keySet) (keySet, bool) { return nil, false }

func (f *fileKeys) run(ctx context.Context) {
	ticker := time.NewTicker(rereadEvery)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		changed, err := f.read()
		switch {
		case err != nil && !failing:
			f.logger.Warn("key file cannot be read; the keys read before stay in use", "err", err)
		case changed:
			f.logger.Info("key file read again", "path", f.path, "keys", len(*f.keys.Load()))
		}
		failing = err != nil
	}
}

func (f *fileKeys) read() (changed bool, err error) {
	data, err := os.ReadFile(f.path)
	if err != nil || f.data != nil && bytes.Equal(data, f.data) {
		return false, err
	}
	keys, err := f.parse(data)
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.path, err)
	}
	f.data = data
	f.keys.Store(&keys)
	return true, nil
}
