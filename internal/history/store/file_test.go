package store

import (
	"os"
	"testing"

	"github.com/kubecast/kubecast/internal/history"
)

// The file has what all tenants' jobs are called and say. An earlier gateway left it open to everybody on the machine.
func TestNobodyElseMayReadTheHistorysFile(t *testing.T) {
	path := t.TempDir() + "/h.db"
	closed := func() {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			info, err := os.Stat(path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has the mode %o", path+suffix, info.Mode().Perm())
			}
		}
	}
	open := func() *Store {
		s := openAt(t, "sqlite://"+path)
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		write(t, s, take(t, s, "a"), seen(5, "n", "o", []string{"u"}, history.Running))
		return s
	}
	first := open()
	closed()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Chmod(path+suffix, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	again := openAt(t, "sqlite://"+path)
	if err := again.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}
