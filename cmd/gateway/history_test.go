package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A database is looked at without being changed, and brought up to date as often as somebody likes.
func TestTheHistorysSchemaIsCheckedAndMigrated(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "gateway.yaml")
	if err := os.WriteFile(file, []byte("auth: {anonymous: true}\nhistory: {database: \"sqlite://"+dir+"/h.db\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none.yaml")
	if err := os.WriteFile(none, []byte("auth: {anonymous: true}\nhistory: {database: none}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args      []string
		out, fail string
	}{
		{[]string{}, "", "migrate or check is expected"},
		{[]string{"drop"}, "", `migrate or check is expected, not "drop"`},
		{[]string{"migrate"}, "", "--config FILE is required"},
		{[]string{"check", "--config", none}, "", "there is no history"},
		{[]string{"check", "--config", file}, "", "history.database: the database's schema is older than this gateway needs, or there is none"},
		{[]string{"check", "--config", file}, "", "or there is none"},
		{[]string{"migrate", "--config", file}, "is the one", ""},
		{[]string{"migrate", "--config", file}, "is the one", ""},
		{[]string{"check", "--config", file}, "is the one", ""},
	} {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"history"}, step.args...), &out)
		if step.fail == "" && (err != nil || !strings.Contains(out.String(), step.out)) || step.fail != "" && (err == nil || !strings.Contains(err.Error(), step.fail)) {
			t.Errorf("%q: %q, %v", step.args, out.String(), err)
		}
	}
}
