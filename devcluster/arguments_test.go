package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongArgumentsAreNamed(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "no command given"},
		{[]string{"down"}, `unknown command "down"`},
		{[]string{"up"}, "--dir is required"},
		{[]string{"up", "--dir", dir, "now"}, `unexpected argument "now"`},
		{[]string{"up", "--dir", dir, "--nodes", "0"}, "--nodes 0"},
		{[]string{"up", "--dir", dir, "--jobs", "-1"}, "--jobs -1"},
		{[]string{"up", "--dir", dir, "--jobs", "NaN"}, "--jobs NaN"},
		{[]string{"up", "--dir", dir, "--jobs", "many"}, `invalid value "many" for flag -jobs`},
		{[]string{"up", "--dir", dir, "--pods", "1"}, "-pods"},
		{[]string{"fault", "apiserver-kill"}, "--dir is required"},
		{[]string{"fault", "--dir", dir}, "one fault must be named: apiserver-kill, "},
		{[]string{"fault", "--dir", dir, "apiserver-kill", "etcd-compact"}, "one fault must be named"},
		{[]string{"fault", "--dir", dir, "etcd-kill"}, `unknown fault "etcd-kill"; there are apiserver-kill, `},
		{[]string{"fault", "--dir", dir, "etcd-compact"}, "no devcluster is ready in " + dir},
		{[]string{"fault", "--dir", dir + "/none", "etcd-compact"}, "no devcluster in " + dir + "/none"},
		{[]string{"kubectl", "get", "pods"}, "--dir is required, as the first argument"},
		{[]string{"kubectl", "--dir", dir, "get", "pods"}, "no devcluster in " + dir},
	} {
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), test.args, &stdout, &stderr)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("devcluster %s: error %v, want one with %q", strings.Join(test.args, " "), err, test.want)
		}
		if stdout.Len() > 0 || stderr.Len() > 0 {
			t.Errorf("devcluster %s: printed %q and %q beside the error", strings.Join(test.args, " "), &stdout, &stderr)
		}
	}
}

func TestMissingProgramsTellHowToBuildThem(t *testing.T) {
	devcluster := copyTestBinary(t, t.TempDir())
	out, err := runCommand(devcluster, "up", "--dir", t.TempDir())
	if err == nil || !strings.Contains(out, "make build") || !strings.Contains(out, "kube-apiserver") {
		t.Errorf("devcluster up without programs: %v, %q, want an error that names them and \"make build\"", err, out)
	}
}

func TestAssetsDirectoryComesFirstForWhatItHolds(t *testing.T) {
	built, assets := t.TempDir(), t.TempDir()
	for _, path := range []string{built + "/etcd", built + "/kube-apiserver", built + "/kwok", assets + "/etcd", assets + "/kwok"} {
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(assets+"/kube-apiserver", nil, 0o600); err != nil { // it is never run
		t.Fatal(err)
	}
	found, err := findBinariesIn(built, assets, []string{"etcd", "kube-apiserver", "kwok"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"etcd": assets, "kube-apiserver": built, "kwok": built} {
		if got := filepath.Dir(found[name]); got != want {
			t.Errorf("%s is taken from %s, want %s", name, got, want)
		}
	}
}
