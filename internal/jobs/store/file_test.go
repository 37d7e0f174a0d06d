package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
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
		write(t, s, take(t, s, "a"), seen(5, "n", "o", []string{"u"}, jobs.Running))
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

// Of what others sort, or of a new index, nobody knows how large it is.
func TestOnlyRecordersOfAFileKeepWhatIsForTheMomentInMemory(t *testing.T) {
	s, err := New(Options{Address: "sqlite", StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const inMemory = 2
	for _, quotaOwner := range []struct {
		QuotaOwner
		want bool
	}{{Recorder("jobs"), true}, {System("a part"), false}, {User("somebody"), false}} {
		reads, writes := 0, 0
		of := s.For(quotaOwner.QuotaOwner)
		if err := of.QueryRow(t.Context(), "PRAGMA temp_store").Scan(&reads); err != nil {
			t.Fatal(err)
		}
		if err := of.Transact(t.Context(), func(tx *Tx) error {
			return tx.QueryRow(t.Context(), "PRAGMA temp_store").Scan(&writes)
		}); err != nil {
			t.Fatal(err)
		}
		if (reads == inMemory) != quotaOwner.want || (writes == inMemory) != quotaOwner.want {
			t.Errorf("%v: temp_store is %d to read and %d to write", quotaOwner.QuotaOwner, reads, writes)
		}
	}
}

// The root of a container cannot be written to, and has no folder for such files.
func TestWhatAFileSortsIsBesideIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's here")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Address: "sqlite", StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// 16 MB, of which a connection keeps two.
	const sorted = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 16000) SELECT i FROM n ORDER BY hex(randomblob(512))"
	found, seen := false, 0
	if err := s.For(User("somebody")).Each(t.Context(), func(scan Scan) error {
		if seen++; seen > 1 {
			return nil
		}
		open, err := os.ReadDir("/proc/self/fd")
		for _, fd := range open {
			at, _ := os.Readlink("/proc/self/fd/" + fd.Name())
			found = found || filepath.Dir(at) == dir && strings.HasSuffix(at, "(deleted)")
		}
		return err
	}, sorted); err != nil {
		t.Fatal(err)
	}
	if !found || seen != 16000 {
		t.Errorf("no file for %d rows that were sorted is in the database's folder", seen)
	}
}
