package store

import (
	"context"
	"errors"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
)

type writer func(ctx context.Context, tx *Tx, log Log, b Batch) error

func (w writer) Write(ctx context.Context, tx *Tx, log Log, b Batch) error { return w(ctx, tx, log, b) }

// What a writer writes must be there if, and only if, the transitions are.
func TestWhatFollowsFromATransitionIsWrittenWithItOrNotAtAll(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		if err := s.Transact(t.Context(), func(tx *Tx) error {
			_, err := tx.Exec(t.Context(), "CREATE TABLE told (seq BIGINT PRIMARY KEY, first BIGINT NOT NULL)")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		fails := errors.New("told so")
		var fail error
		s.writers = []Writer{writer(func(ctx context.Context, tx *Tx, log Log, b Batch) error {
			var rows [][]any
			for _, transition := range b.Transitions {
				rows = append(rows, []any{int64(transition.Seq), asInt(log.Version == 0)})
			}
			return errors.Join(tx.Insert(ctx, "told", []string{"seq", "first"}, rows, nil, nil), fail)
		})}
		counts := func() (told, first, recorded int) {
			if err := s.QueryRow(t.Context(), "SELECT COUNT(*), COALESCE(SUM(first), 0) FROM told").Scan(&told, &first); err != nil {
				t.Fatal(err)
			}
			if err := s.QueryRow(t.Context(), "SELECT COUNT(*) FROM transitions").Scan(&recorded); err != nil {
				t.Fatal(err)
			}
			return told, first, recorded
		}
		log := write(t, s, take(t, s, "a"), seen(5, "n", "o", []string{"u1", "u2"}, jobs.Submitted))
		if told, first, recorded := counts(); told != 2 || first != 2 || recorded != 2 {
			t.Fatalf("told %d, of them %d first, of %d recorded; want 2 of each", told, first, recorded)
		}
		fail = fails
		if _, err := s.Write(t.Context(), log, seen(6, "n", "o", []string{"u3"}, jobs.Submitted)); !errors.Is(err, fails) {
			t.Fatalf("Write gave %v", err)
		}
		if told, _, recorded := counts(); told != 2 || recorded != 2 {
			t.Fatalf("after a failure: told %d of %d recorded; want 2 and 2", told, recorded)
		}
		fail = nil
		stale := log
		write(t, s, log, seen(7, "n", "o", []string{"u4"}, jobs.Submitted))
		if _, err := s.Write(t.Context(), stale, seen(7, "n", "o", []string{"u4"}, jobs.Submitted)); !errors.Is(err, ErrMoved) {
			t.Fatalf("a second writer: %v", err)
		}
		if told, first, recorded := counts(); told != 3 || first != 2 || recorded != 3 {
			t.Fatalf("told %d, first %d, recorded %d; want 3, 2, 3", told, first, recorded)
		}
	})
}
