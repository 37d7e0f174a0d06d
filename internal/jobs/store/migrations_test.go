package store

import (
	"slices"
	"testing"
)

// TestNoStatementOfTheSchemaIsLost: a semicolon within a comment, or within a line, ends no
// statement, and what has no end is not left out.
func TestNoStatementOfTheSchemaIsLost(t *testing.T) {
	text := "-- one; two;\nALTER TABLE a;\n\nCREATE TABLE b (\n\tc TEXT DEFAULT ';' NOT NULL\n-- d;\n) $OPTIONS;\n"
	want := []string{"ALTER TABLE a", "CREATE TABLE b (\n\tc TEXT DEFAULT ';' NOT NULL\n) $OPTIONS"}
	if got := statementsOf(text); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a statement without an end is left out in silence")
		}
	}()
	statementsOf("ALTER TABLE a;\nALTER TABLE b\n")
}
