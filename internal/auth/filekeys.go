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

// rereadEvery is the interval at which a key file is read again. It is not watched, since a mounted Secret or
// ConfigMap is replaced by renaming directories above the file.
const rereadEvery = 10 * time.Second

// fileKeys are keys from a file.
type fileKeys struct {
	path   string
	parse  func([]byte) (keySet, error)
	logger *slog.Logger
	keys   atomic.Pointer[keySet]
	data   []byte // the content from which keys was made; used only by run
}

func newFileKeys(path string, parse func([]byte) (keySet, error), logger *slog.Logger) (*fileKeys, error) {
	f := &fileKeys{path: path, parse: parse, logger: logger}
	if _, err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *fileKeys) current(context.Context) (keySet, error) { return *f.keys.Load(), nil }

// newer never has other keys: the file is read again at intervals, and not because of strangers' tokens.
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
			f.logger.Warn("key file cannot be read; the keys read before stay in use", "error", err)
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
