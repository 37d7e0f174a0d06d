package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/tracing/tracetest"
)

// A span says in whose turn a transaction was, and whether it failed; and nothing of what is in it.
func TestTransactionsHaveSpans(t *testing.T) {
	collector := tracetest.New(t)
	tracer := collector.Tracer(t)
	s, err := New(Options{Address: "sqlite", StateDir: t.TempDir(), Tracer: tracer})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	create := func(tx *Tx) error {
		_, err := tx.Exec(t.Context(), "CREATE TABLE hush (id INTEGER)")
		return err
	}
	if err := s.For(Recorder("hush")).Transact(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	hush := errors.New("hush")
	if err := s.For(User("hush")).Transact(t.Context(), func(*Tx) error { return hush }); !errors.Is(err, hush) {
		t.Fatal(err)
	}
	tracer.Close()
	spans := collector.Named("database transaction")
	if len(spans) != 2 || spans[0].Attributes["kubecast.for"] != "recorder" || spans[0].Status.GetMessage() != "" ||
		spans[1].Attributes["kubecast.for"] != "user" || spans[1].Status.GetMessage() != "failed" {
		t.Errorf("%v", spans)
	}
	if strings.Contains(collector.Raw(), "hush") {
		t.Error("a trace has what is written, and by whom")
	}
}
