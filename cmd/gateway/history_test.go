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
	server, other := filepath.Join(dir, "server.yaml"), filepath.Join(dir, "other.yaml")
	for name, database := range map[string]string{server: "postgres://kubecast@db/kubecast", other: "sqlite://" + dir + "/to.db"} {
		if err := os.WriteFile(name, []byte("auth: {anonymous: true}\nhistory: {database: \""+database+"\"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		args      []string
		out, fail string
	}{
		{[]string{}, "", "one of migrate, check, grants, copy is expected"},
		{[]string{"drop"}, "", `one of migrate, check, grants, copy is expected, not ["drop"]`},
		{[]string{"migrate"}, "", "--config FILE is required"},
		{[]string{"check", "--config", none}, "", "there is no history"},
		{[]string{"check", "--config", file}, "", "history.database: the database's schema is older than this gateway needs, or there is none"},
		{[]string{"check", "--config", file}, "", "or there is none"},
		{[]string{"migrate", "--config", file}, "is one that this gateway can use", ""},
		{[]string{"migrate", "--config", file}, "is one that this gateway can use", ""},
		{[]string{"check", "--config", file}, "is one that this gateway can use", ""},
		{[]string{"grants", "--config", file}, "", "there are no rights"},
		{[]string{"grants", "--config", server}, "GRANT SELECT, INSERT, UPDATE, DELETE ON inbox TO \"kubecast\";", ""},
		{[]string{"grants", "--config", server, "--role", `a"b`}, `ON outbox TO "a""b";`, ""},
		{[]string{"copy", file}, "", "2 arguments were expected"},
		{[]string{"copy", file, "sqlite://" + dir + "/to.db"}, "", "the target: the database's schema is older"},
		{[]string{"migrate", "--config", other}, "is one that this gateway can use", ""},
		{[]string{"copy", file, "sqlite://" + dir + "/to.db"}, "transitions    0 rows", ""},
	} {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"history"}, step.args...), &out)
		if step.fail == "" && (err != nil || !strings.Contains(out.String(), step.out)) || step.fail != "" && (err == nil || !strings.Contains(err.Error(), step.fail)) {
			t.Errorf("%q: %q, %v", step.args, out.String(), err)
		}
	}
}
