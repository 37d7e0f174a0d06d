package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

func TestOnlyWhatAnOwnerWantsIsToldAndOnlyOnce(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		log, err := r.store.Take(t.Context(), store.LogName{Cluster: "c1", Resource: "jobs.batch"}, "default", "h", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		log = r.write(t, log, func(b *store.Batch) { end(b, "eva", "first-start", "Running", "Failed") })
		log = r.write(t, log, func(b *store.Batch) {
			end(b, "eva", "gone", "Running", "Succeeded", "Deleted")
			end(b, "eva", "late", "Running~", "Failed~")
			end(b, "eva", "past", "Failed~", "Deleted~")
			end(b, "eva", "runs", "Pending", "Running")
			end(b, "", "nobody's", "Failed")
			end(b, "Eva", "another's", "Failed")
			end(b, "eva ", "a third's", "Failed")
		})
		stale := log
		stale.Version--
		b := store.Batch{To: log.Version}
		end(&b, "eva", "twice", "Failed")
		if _, err := r.store.Write(t.Context(), stale, b); !errors.Is(err, store.ErrMoved) {
			t.Fatalf("a second writer: %v", err)
		}
		if got, want := r.titles(t, "eva", all), []string{"late failed: Because", "gone succeeded"}; !slices.Equal(got, want) {
			t.Errorf("eva was told %q, want %q", got, want)
		}
		if got := r.titles(t, "Eva", all); !slices.Equal(got, []string{"another's failed: Because"}) {
			t.Errorf("Eva was told %q", got)
		}
		if _, err := r.Choose(t.Context(), "eva", Choice{States: []jobs.State{jobs.Running}}); err != nil {
			t.Fatal(err)
		}
		r.write(t, log, func(b *store.Batch) { end(b, "eva", "chosen", "Running", "Failed") })
		if got := r.titles(t, "eva", all); got[0] != "chosen is running: Because" || len(got) != 3 {
			t.Errorf("having chosen Running, eva was told %q", got)
		}
	})
}

func TestNothingIsShownOrCountedOfWhatMayNotBeSeen(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		minute := time.Minute
		for owner, digest := range map[string]*time.Duration{"eva": nil, "digested": &minute} {
			if _, err := r.Choose(t.Context(), owner, Choice{Digest: digest}); err != nil {
				t.Fatal(err)
			}
		}
		r.write(t, r.begun(t, "jobs.batch"), func(b *store.Batch) {
			for n := range 150 {
				end(b, "digested", fmt.Sprintf("d%03d", n), "Failed")
			}
			end(b, "eva", "open", "Failed")
			end(b, "eva", "hidden", "Failed")
		})
		if _, err := r.Choose(t.Context(), "digested", Choice{}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.makeDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		sees := func(p JobRef) bool {
			if p.Cluster != "c1" || p.Resource != "jobs.batch" || p.Namespace != "team" || p.NamespaceUID != "team-1" {
				t.Errorf("asked about %+v", p)
			}
			return p.Name == "open" || p.Name == "d007"
		}
		if got := r.titles(t, "eva", sees); !slices.Equal(got, []string{"open failed: Because"}) {
			t.Errorf("eva sees %q", got)
		}
		page, _, err := r.Page(t.Context(), "digested", sees, 0, false, 10)
		if err != nil || len(page) != 1 || len(page[0].Digest) != 1 || page[0].More != 0 || page[0].Title != "1 failed" {
			t.Errorf("of a digest is seen %+v, %v", page, err)
		}
		former := func(p JobRef) bool { return p.NamespaceUID == "team-0" } // of the same name
		if page, _, err := r.Page(t.Context(), "digested", former, 0, false, 10); err != nil || len(page) != 0 {
			t.Errorf("of another namespace's digest is seen %+v, %v", page, err)
		}
		page, _, err = r.Page(t.Context(), "digested", all, 0, false, 10)
		if err != nil || len(page) != 1 || len(page[0].Digest) != maxItems || page[0].More != 50 || page[0].Title != "150 failed" || page[0].Kind != "Digest" {
			t.Errorf("of a digest of 150, %d are told: %v", len(page), err)
		}
		for owner, want := range map[string]int{"eva": 1, "digested": 1, "nobody": 0} {
			if n, err := r.Unread(t.Context(), owner, sees); n != want || err != nil {
				t.Errorf("%s has %d unread, want %d: %v", owner, n, want, err)
			}
			if n, err := r.Unread(t.Context(), owner, func(JobRef) bool { return false }); n != 0 || err != nil {
				t.Errorf("%s, who sees nothing, has %d unread: %v", owner, n, err)
			}
		}
	})
}

func TestPagesAndMarksOfWhatIsUnread(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		log := r.begun(t, "jobs.batch")
		r.write(t, log, func(b *store.Batch) {
			for n := range 7 {
				end(b, "eva", "j"+strconv.Itoa(n), "Succeeded")
			}
		})
		var ids []uint64
		for below, turn := uint64(0), 0; turn == 0 || below > 0; turn++ {
			page, next, err := r.Page(t.Context(), "eva", all, below, false, 3)
			if err != nil || turn > 2 {
				t.Fatal(turn, err)
			}
			for _, n := range page {
				id, _ := strconv.ParseUint(n.ID, 10, 64)
				if n.Title != "j"+strconv.Itoa(6-len(ids))+" succeeded" {
					t.Errorf("%s stands at %d", n.Title, len(ids))
				}
				ids = append(ids, id)
			}
			below = next
		}
		mark := func(upTo uint64, given []uint64, unread int) {
			t.Helper()
			before, err := headOf(t.Context(), r.of("ann"), "eva")
			if err != nil {
				t.Fatal(err)
			}
			for n := range 2 { // the second time changes nothing
				if err := r.Read(t.Context(), "eva", all, upTo, given); err != nil {
					t.Fatal(err)
				}
				if left, err := r.Unread(t.Context(), "eva", all); left != unread || err != nil {
					t.Fatalf("%d are unread, want %d: %v", left, unread, err)
				}
				if now, err := headOf(t.Context(), r.of("ann"), "eva"); err != nil || now.seq != before.seq+1 {
					t.Errorf("marked %d times, and from %d the numbers went to %d: %v", n+1, before.seq, now.seq, err)
				}
			}
		}
		mark(ids[4], nil, 4)                     // the oldest three
		mark(0, []uint64{ids[0], 1, 1 << 62}, 3) // the newest, and what is not there
		changes, err := r.After(t.Context(), "eva", all, ids[0], 10)
		if err != nil || len(changes) != 2 || changes[0].Mark.UpTo != strconv.FormatUint(ids[4], 10) || !slices.Equal(changes[1].Mark.IDs, []string{strconv.FormatUint(ids[0], 10)}) ||
			changes[0].Mark.Unread != nil || *changes[1].Mark.Unread != 3 {
			t.Errorf("the marks are %+v: %v", changes, err)
		}
		if page, _, err := r.Page(t.Context(), "eva", all, 0, true, 10); err != nil || len(page) != 3 {
			t.Errorf("%d are listed as unread, want 3: %v", len(page), err)
		}
		nothing := func(JobRef) bool { return false }
		// What may not be seen cannot be found out by marks, either.
		if err := errors.Join(r.Read(t.Context(), "eva", nothing, 0, ids[1:4]), r.Read(t.Context(), "eva", nothing, ids[0], nil)); err != nil {
			t.Fatal(err)
		}
		if told, err := r.After(t.Context(), "eva", all, changes[1].Seq, 10); err != nil || len(told) != 0 {
			t.Errorf("of what is hidden, a mark told %+v: %v", told, err)
		}
		mark(1<<62, nil, 0)
		if err := r.Read(t.Context(), "nobody", all, 1<<62, ids); err != nil {
			t.Error(err)
		}
	})
}

// TestAPageOfLongTextsEndsBeforeItsLimit: what one page holds in memory is bounded, and what did
// not fit is on the next one.
func TestAPageOfLongTextsEndsBeforeItsLimit(t *testing.T) {
	const texts, length = 6, 1 << 20
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		log := r.begun(t, "jobs.batch")
		for n := range texts {
			log = r.write(t, log, func(b *store.Batch) {
				end(b, "eva", "j"+strconv.Itoa(n), "Failed")
				b.Transitions[0].Message = strings.Repeat("x", length)
			})
		}
		var titles []string
		for below, turn := uint64(0), 0; turn == 0 || below > 0; turn++ {
			page, next, err := r.Page(t.Context(), "eva", all, below, false, 100)
			if err != nil || len(page) == 0 {
				t.Fatalf("page %d: %v", turn, err)
			}
			bytes := 0
			for _, n := range page {
				titles, bytes = append(titles, n.Title), bytes+len(n.Transition)
			}
			if most := pageBytes + length; bytes > most {
				t.Errorf("a page has %d bytes; at most %d are expected", bytes, most)
			}
			below = next
		}
		slices.Reverse(titles)
		for n := range max(texts, len(titles)) {
			if want := "j" + strconv.Itoa(n) + " failed: Because"; n >= len(titles) || titles[n] != want {
				t.Fatalf("the pages have %q", titles)
			}
		}
	})
}

// Logs of several recorders write for the same users, while these read, choose and mark, and other
// replicas make digests.
func TestNumbersHaveNoGapsAndNothingIsLostBetweenWriters(t *testing.T) {
	const logs, batches, owners = 3, 12, 6
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		var working, helping sync.WaitGroup
		var helped atomic.Int32
		done := make(chan struct{})
		for l := range logs {
			own := open()
			log := own.begun(t, fmt.Sprintf("kind%d", l))
			working.Go(func() {
				for n := range batches {
					b := store.Batch{To: log.Version + 1}
					for o := range owners {
						end(&b, fmt.Sprintf("o%d", (o*5+n)%(owners+n/8)), fmt.Sprintf("l%d-%d-%d", l, n, o), "Running", "Failed")
					}
					next, err := own.store.Write(t.Context(), log, b)
					if err != nil {
						t.Errorf("log %d: %v", l, err)
						return
					}
					log = next
				}
			})
		}
		for _, other := range []replica{open(), open()} {
			helping.Go(func() {
				second := time.Millisecond
				for n := 0; ; n++ {
					select {
					case <-done:
						return
					default:
					}
					owner := fmt.Sprintf("o%d", n%4)
					_, chosen := other.Choose(t.Context(), owner, Choice{Digest: []*time.Duration{nil, &second}[n/4%2]})
					_, due := other.makeDue(t.Context())
					// A writer to a file may come last among several for long. It then tries again, as a user does.
					if err := errors.Join(chosen, due, other.Read(t.Context(), owner, all, 1<<62, nil)); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
						return
					} else if err == nil {
						helped.Add(1)
					}
				}
			})
		}
		working.Wait()
		close(done)
		helping.Wait()
		if helped.Load() == 0 {
			t.Error("nobody could read, choose and mark")
		}
		time.Sleep(2 * time.Millisecond) // the last digest is due
		if _, err := r.makeDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		told := map[string]int{}
		for o := range owners + batches/8 {
			owner := fmt.Sprintf("o%d", o)
			rows, err := rows(t.Context(), r.of("ann"), "WHERE owner = ? ORDER BY seq", owner)
			if err != nil {
				t.Fatal(err)
			}
			h, err := headOf(t.Context(), r.of("ann"), owner)
			if err != nil || h.due != 0 || h.waiting != 0 || h.began+uint64(len(rows)) != h.seq {
				t.Fatalf("%s has %d rows: %+v, %v", owner, len(rows), h, err)
			}
			for n, row := range rows {
				if row.seq != h.began+uint64(n)+1 {
					t.Fatalf("%s: number %d stands at %d behind %d", owner, row.seq, n, h.began)
				}
				if n, ok := row.notification(all, r.seal); ok && row.kind != kindMark {
					for _, text := range append(n.Digest, n.Transition) {
						if _, name, found := strings.Cut(string(text), `"name":"`); found {
							if !strings.HasPrefix(string(text), `{"seq":"sealed kind`) {
								t.Errorf("%s is told with its number", text)
							}
							told[owner+" "+name[:strings.IndexByte(name, '"')]]++
						}
					}
				}
			}
		}
		for l := range logs {
			for n := range batches {
				for o := range owners {
					key := fmt.Sprintf("o%d l%d-%d-%d", (o*5+n)%(owners+n/8), l, n, o)
					if told[key] != 1 {
						t.Errorf("%s was told %d times", key, told[key])
					}
					delete(told, key)
				}
			}
		}
		if len(told) > 0 {
			t.Errorf("told beside: %v", told)
		}
	})
}

func TestReadersMissNothingOrLearnThatTheyDo(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		log := r.begun(t, "jobs.batch")
		early, err := r.Snapshot(t.Context(), "eva", all, 10)
		if err != nil || len(early.Newest) != 0 {
			t.Fatal(early, err)
		}
		time.Sleep(2 * time.Millisecond) // the inbox begins later
		log = r.write(t, log, func(b *store.Batch) { end(b, "eva", "one", "Failed"); end(b, "eva", "two", "Failed") })
		if changes, err := r.After(t.Context(), "eva", all, early.Seq, 10); err != nil || len(changes) != 2 {
			t.Fatalf("who came before there was an inbox is told %d: %v", len(changes), err)
		}
		now, err := r.Snapshot(t.Context(), "eva", all, 1)
		if err != nil || len(now.Newest) != 1 || now.Unread != 2 {
			t.Fatal(now, err)
		}
		if err := r.store.Transact(t.Context(), func(tx *store.Tx) error {
			_, err := remove(t.Context(), tx, "eva", now.Seq-1)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for after, want := range map[uint64]error{early.Seq: ErrExpired, now.Seq - 2: ErrExpired, now.Seq - 1: nil, now.Seq: nil, now.Seq + 1: ErrAhead} {
			if _, err := r.After(t.Context(), "eva", all, after, 10); !errors.Is(err, want) {
				t.Errorf("after %d of %d: %v, want %v", after, now.Seq, err, want)
			}
		}
		// The head is forgotten, and begins anew.
		r.SetDefaults(r.opts.States, r.opts.Digest, 0)
		time.Sleep(2 * time.Millisecond)
		if _, err := r.expireSome(t.Context()); err != nil {
			t.Fatal(err)
		}
		var heads int
		if err := r.store.QueryRow(t.Context(), "SELECT COUNT(*) FROM inbox_heads").Scan(&heads); err != nil || heads != 0 {
			t.Fatalf("%d heads are left: %v", heads, err)
		}
		for range 2 {
			if _, err := r.After(t.Context(), "eva", all, now.Seq, 10); !errors.Is(err, ErrExpired) {
				t.Errorf("a number of a head that is gone: %v", err)
			}
			r.write(t, log, func(b *store.Batch) { end(b, "eva", "three", "Failed") })
			log.Version, log.Seq = log.Version+1, log.Seq+1
		}
	})
}

// TestWhatIsOldIsRemovedThoughTheClockWentBack: numbers tell what is older, where the database's clock does not.
func TestWhatIsOldIsRemovedThoughTheClockWentBack(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		log := r.begun(t, "jobs.batch")
		for _, name := range []string{"one", "two", "three"} {
			log = r.write(t, log, func(b *store.Batch) { end(b, "eva", name, "Failed") })
		}
		s, err := r.Snapshot(t.Context(), "eva", all, 1)
		if err != nil {
			t.Fatal(err)
		}
		for ago, seq := range map[time.Duration]uint64{2 * time.Hour: s.Seq - 2, 3 * time.Hour: s.Seq - 1} {
			if err := r.store.Transact(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec(t.Context(), "UPDATE inbox SET at = at - ? WHERE owner = ? AND seq = ?", ago.Milliseconds(), "eva", int64(seq))
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if more, err := r.expireSome(t.Context()); more || err != nil {
			t.Fatal(more, err)
		}
		if got := r.titles(t, "eva", all); !slices.Equal(got, []string{"three failed: Because"}) {
			t.Errorf("left are %q", got)
		}
		for after, want := range map[uint64]error{s.Seq - 2: ErrExpired, s.Seq - 1: nil} {
			if _, err := r.After(t.Context(), "eva", all, after, 10); !errors.Is(err, want) {
				t.Errorf("after %d of %d: %v, want %v", after, s.Seq, err, want)
			}
		}
	})
}

// TestDigestsAreMadeWhileAnInboxRuns, and by nobody else.
func TestDigestsAreMadeWhileAnInboxRuns(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		r.runs(t)
		digest := time.Millisecond
		if _, err := r.Choose(t.Context(), "eva", Choice{Digest: &digest}); err != nil {
			t.Fatal(err)
		}
		r.write(t, r.begun(t, "jobs.batch"), func(b *store.Batch) { end(b, "eva", "one", "Failed"); end(b, "eva", "two", "Failed") })
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if got := r.titles(t, "eva", all); slices.Equal(got, []string{"2 failed"}) {
				return
			} else if len(got) > 0 || time.Now().After(end) {
				t.Fatalf("told %q", got)
			}
		}
	})
}

// endIn is end in a namespace.
func endIn(b *store.Batch, namespace, owner, name string) {
	end(b, owner, name, "Failed")
	last := len(b.Transitions) - 1
	b.Transitions[last].Namespace, b.Jobs[len(b.Jobs)-1].Namespace = namespace, namespace
}

// A stranger who names another as the owner of many jobs neither fills the database nor drives out what is the other's.
func TestAFloodInOneNamespaceIsBoundedAndLeavesTheOthersTheirs(t *testing.T) {
	before, beforeSlack := room, slack
	defer func() { room, slack = before, beforeSlack }()
	room, slack = 40, 10
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		log := r.begun(t, "jobs.batch")
		hers := func(p JobRef) bool { return p.Namespace == "hers" }
		minute := time.Minute
		if _, err := r.Choose(t.Context(), "digested", Choice{Digest: &minute}); err != nil {
			t.Fatal(err)
		}
		for n := range 30 {
			log = r.write(t, log, func(b *store.Batch) {
				for m := range 50 {
					endIn(b, "stranger", "digested", fmt.Sprintf("d%d-%d", n, m))
					if m < 9 {
						endIn(b, "stranger", "eva", fmt.Sprintf("s%d-%d", n, m))
					}
				}
				if n%3 == 0 {
					endIn(b, "hers", "eva", fmt.Sprintf("h%d", n))
				}
			})
			var rows uint64
			if err := r.store.QueryRow(t.Context(), "SELECT COUNT(*) FROM inbox WHERE owner = ?", "eva").Scan(&rows); err != nil || rows > room+slack+10 {
				t.Fatalf("%d rows are kept: %v", rows, err)
			}
		}
		if got := r.titles(t, "eva", hers); len(got) != 10 {
			t.Errorf("of her own 10, eva is told %q", got)
		}
		h, err := headOf(t.Context(), r.of("ann"), "eva")
		if err != nil {
			t.Fatal(err)
		}
		for after, want := range map[uint64]error{h.began: ErrExpired, h.expired: nil, h.expired - 1: ErrExpired} {
			if _, err := r.After(t.Context(), "eva", all, after, 10); !errors.Is(err, want) {
				t.Errorf("after %d of %d: %v, want %v", after, h.seq, err, want)
			}
		}
		r.write(t, log, func(b *store.Batch) {
			for n := range 120 {
				endIn(b, "hers", "digested", fmt.Sprintf("own%d", n))
			}
		})
		if _, err := r.Choose(t.Context(), "digested", Choice{}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.makeDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		for sees, want := range map[string]string{"hers": "120 failed", "": "1120 failed"} {
			page, _, err := r.Page(t.Context(), "digested", func(p JobRef) bool { return sees == "" || p.Namespace == sees }, 0, false, 10)
			if err != nil || len(page) != 1 || page[0].Title != want || len(page[0].Digest) < 50 || len(page[0].Digest) > 100 {
				t.Errorf("%q: %d digests: %v", sees, len(page), err)
			}
		}
	})
}

func TestAPauseIsSilentAndADigestOfOneIsItself(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		digest := time.Millisecond
		if _, err := r.Choose(t.Context(), "eva", Choice{Digest: &digest, PausedUntil: jobs.At(time.Now().Add(time.Hour))}); err != nil {
			t.Fatal(err)
		}
		log := r.write(t, r.begun(t, "jobs.batch"), func(b *store.Batch) { end(b, "eva", "one", "Failed") })
		time.Sleep(5 * time.Millisecond)
		var both sync.WaitGroup
		for _, other := range []replica{open(), open()} {
			both.Go(func() {
				if _, err := other.makeDue(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if page, _, err := r.Page(t.Context(), "eva", all, 0, false, 10); err != nil || len(page) != 1 || !page[0].Silent || page[0].Kind != "Failed" || page[0].Transition == nil {
			t.Errorf("told %+v: %v", page, err)
		}
		if _, err := r.Choose(t.Context(), "eva", Choice{}); err != nil {
			t.Fatal(err)
		}
		r.write(t, log, func(b *store.Batch) { end(b, "eva", "two", "Failed") })
		if page, _, err := r.Page(t.Context(), "eva", all, 0, false, 10); err != nil || len(page) != 2 || page[0].Silent {
			t.Errorf("after the pause, told %+v: %v", page, err)
		}
	})
}
