package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
)

// ended is a batch of jobs that ended, each with something that is kept of it.
func ended(version uint64, data func(uid string) []byte, uids ...string) Batch {
	b := seen(version, "n", "o", uids, jobs.Running, jobs.Succeeded)
	for _, uid := range uids {
		b.Kept = append(b.Kept, Kept{UID: uid, Kind: KeptSpec, At: 7, Data: data(uid)})
	}
	return b
}

func pack(t testing.TB, text string) []byte {
	t.Helper()
	data, ok := Pack([]byte(text))
	if !ok {
		t.Fatal("it is too large")
	}
	return data
}

// keeps is what the database has of a job, as text; "" if it has nothing.
func keeps(t *testing.T, s *Store, log Log, uid string, kind KeptKind) string {
	t.Helper()
	k, err := s.Kept(t.Context(), log, uid, kind)
	if errors.Is(err, ErrNotKept) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := Unpack(k.Data)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What is kept of a job is there once the job is, is replaced by that of its next end, and goes
// with the job. Nothing is kept of a job that is not there, since nobody would remove it.
func TestWhatIsKeptOfAJobComesAndGoesWithIt(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		text := "{\"ä\":\"'\\\\?$1\x00\"}"
		log = write(t, s, log, ended(5, func(uid string) []byte { return pack(t, text+uid) }, "u", "v", "w"))
		if got := keeps(t, s, log, "v", KeptSpec); got != text+"v" {
			t.Errorf("%q", got)
		}
		for _, at := range []jobs.Time{8, 9} {
			if err := s.Keep(t.Context(), log, Kept{UID: "u", Kind: KeptLog, At: at, Data: pack(t, fmt.Sprint("log of ", at))}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Keep(t.Context(), log, Kept{UID: "nobody", Kind: KeptLog, At: 8, Data: pack(t, "x")}); err != nil {
			t.Fatal(err)
		}
		log = write(t, s, log, ended(6, func(uid string) []byte { return pack(t, "again") }, "w"))
		if u, w := keeps(t, s, log, "u", KeptLog), keeps(t, s, log, "w", KeptSpec); u != "log of 9" || w != "again" {
			t.Errorf("what was kept before is not replaced: %q, %q", u, w)
		}
		found, err := s.Keeps(t.Context(), log, []string{"u", "v", "nobody"})
		if err != nil || len(found) != 2 || found["u"][KeptLog] != 9 || found["u"][KeptSpec] != 7 || found["v"][KeptLog] != 0 {
			t.Errorf("%v, %v", found, err)
		}
		b := seen(7, "n", "o", []string{"u"}, jobs.Running, jobs.Deleted)
		b.Jobs[0].Deleted = 1000
		log = write(t, s, log, b)
		if removed, err := s.Expire(t.Context(), log, 2000, 10); err != nil || removed.Jobs != 1 {
			t.Fatal(removed, err)
		}
		if left := rowsOfKept(t, s); left != 2 {
			t.Errorf("%d rows are left of two jobs", left)
		}
		if err := s.Release(t.Context(), log.LogName, "a"); err != nil {
			t.Fatal(err)
		}
		if removed, err := s.Forget(t.Context(), log, 1<<60, 10); err != nil || removed.Jobs != 2 {
			t.Fatal(removed, err)
		}
		if left := rowsOfKept(t, s); left != 0 {
			t.Errorf("%d rows are left of no job", left)
		}
	})
}

// A job that was opened again may have ended once more while the log of its end before is still
// being read: that does not take the place of the last one's.
func TestWhatIsKeptOfAnEarlierEndTakesNoLaterOnesPlace(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		log = write(t, s, log, seen(5, "n", "o", []string{"u"}, jobs.Running, jobs.Failed))
		for i, at := range []jobs.Time{8, 9, 8, 9} {
			if err := s.Keep(t.Context(), log, Kept{UID: "u", Kind: KeptLog, At: at, Data: pack(t, fmt.Sprint(i, " of ", at))}); err != nil {
				t.Fatal(err)
			}
			if got, want := keeps(t, s, log, "u", KeptLog), []string{"0 of 8", "1 of 9", "1 of 9", "3 of 9"}[i]; got != want {
				t.Errorf("%q is kept, not %q", got, want)
			}
		}
	})
}

// Pods of a job end before it does, as many as there may be. The newest ends of their logs are kept
// beside the job's own, whoever is first to write them, and go with the job.
func TestAJobKeepsTheNewestLogsOfItsPods(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		log = write(t, s, log, seen(5, "n", "o", []string{"u", "v"}, jobs.Running, jobs.Failed))
		keep := func(uid string, kind KeptKind, at jobs.Time) {
			t.Helper()
			if err := s.Keep(t.Context(), log, Kept{UID: uid, Namespace: "n", Kind: kind, At: at, Data: pack(t, fmt.Sprint(kind, at))}); err != nil {
				t.Fatal(err)
			}
		}
		keep("u", KeptLog, 1)
		keep("v", KeptOfPod("other"), 1)
		for _, i := range rand.Perm(MostPodLogs + 5) {
			keep("u", KeptOfPod(fmt.Sprint("pod-", i)), jobs.Time(100+i))
		}
		keep("u", KeptOfPod("pod-7"), 107) // once more
		found, err := s.Keeps(t.Context(), log, []string{"u", "v"})
		if err != nil || len(found["u"]) != MostPodLogs+1 || !found.Has("u", KeptLog) || !found.Has("v", KeptOfPod("other")) {
			t.Fatalf("%v, %v", found, err)
		}
		for i := range MostPodLogs + 5 {
			if has := found.Has("u", KeptOfPod(fmt.Sprint("pod-", i))); has != (i >= 5) {
				t.Errorf("the log of pod %d is kept: %t", i, has)
			}
		}
		if got := keeps(t, s, log, "u", KeptOfPod("pod-9")); got != "log/pod-9109" {
			t.Errorf("%q", got)
		}
		b := seen(7, "n", "o", []string{"u"}, jobs.Running, jobs.Deleted)
		b.Jobs[0].Deleted = 1000
		log = write(t, s, log, b)
		if removed, err := s.Expire(t.Context(), log, 2000, 10); err != nil || removed.Jobs != 1 {
			t.Fatal(removed, err)
		}
		if left := rowsOfKept(t, s); left != 1 {
			t.Errorf("%d rows are left of one job with one pod's log", left)
		}
	})
}

func rowsOfKept(t *testing.T, s *Store) (n int) {
	t.Helper()
	if err := s.QueryRow(t.Context(), "SELECT COUNT(*) FROM kept").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Servers refuse statements that are too large, and many large jobs may end at once: nobody's specs
// keep others' transitions from being written.
func TestManyLargeSpecsAreWrittenAtOnce(t *testing.T) {
	noise := rand.NewChaCha8([32]byte{})
	large := make([]byte, mostPacked-100)
	_, _ = noise.Read(large) // it never fails
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		log = write(t, s, log, ended(5, func(uid string) []byte { return pack(t, string(large)) }, numbered("u", 200)...))
		if k, err := s.Kept(t.Context(), log, "u199", KeptSpec); err != nil || len(k.Data) < len(large) {
			t.Errorf("%d bytes, %v", len(k.Data), err)
		}
	})
}

// What would fill the database, or memory when it is read, is not kept.
func TestWhatIsTooLargeIsNotKept(t *testing.T) {
	noise := make([]byte, 2*mostPacked)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	for name, text := range map[string][]byte{"noise": noise, "much of the same": make([]byte, mostUnpacked+1)} {
		if _, ok := Pack(text); ok {
			t.Errorf("%s is kept", name)
		}
	}
	if data, ok := Pack(nil); !ok || data == nil {
		t.Errorf("of nothing, a database has NULL: %v", data)
	}
	bomb := packing.EncodeAll(make([]byte, 4*mostUnpacked), nil)
	if text, err := Unpack(bomb); err == nil {
		t.Errorf("a row of %d bytes takes %d of memory", len(bomb), len(text))
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(pack(f, "text"))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd})
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := Unpack(data)
		if err == nil && len(text) > mostUnpacked {
			t.Fatalf("%d bytes", len(text))
		}
		if again, ok := Pack(text); err == nil && ok {
			if same, err := Unpack(again); err != nil || !bytes.Equal(same, text) {
				t.Fatal("what is packed is not what is unpacked")
			}
		}
	})
}
