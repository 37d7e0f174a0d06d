package main

import (
	"bytes"
	"errors"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asGateway makes the test binary behave as the gateway, since signals and exit codes need a process.
const asGateway = "KUBECAST_TEST_AS_GATEWAY"

func TestMain(m *testing.M) {
	if os.Getenv(asGateway) != "" {
		main()
		os.Exit(0)
	}
	state, err := os.MkdirTemp("", "kubecast-state-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("XDG_STATE_HOME", state) // cannot fail: the name is one
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(state)
		os.Exit(code)
	}))
}

func TestCommandLines(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kubeconfig := file("kubeconfig", `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`)
	valid := file("valid.yaml", "drain: 5s\nauth: {anonymous: true}\n")
	invalid := file("invalid.yaml", "drian: 5s\n")
	for name, test := range map[string]struct {
		args      []string
		out, fail string // parts of the output and of the error; "" for none
	}{
		"version":               {[]string{"version"}, "development\n", ""},
		"help":                  {[]string{"help"}, "usage: gateway [COMMAND] [FLAGS]", ""},
		"unknown command":       {[]string{"server"}, "", `there is no command "server"`},
		"unknown flag":          {[]string{"--lsten", ":1"}, "", "flag provided but not defined: -lsten"},
		"argument of serve":     {[]string{"serve", "now"}, "", `gateway serve: 0 arguments were expected, not 1: ["now"]`},
		"no such configuration": {[]string{"serve", "--config", dir + "/none"}, "", "/none: no such file"},
		"invalid configuration": {[]string{"--config", invalid}, "", "invalid.yaml:1: drian: unknown key"},
		"flag out of bounds":    {[]string{"--listen", "8080"}, "", `listen: "8080" given`},
		"same address twice":    {[]string{"--listen", ":8080", "--ops-listen", ":8080"}, "", "opsListen: "},
		"check":                 {[]string{"check", "--config", valid, "--kubeconfig", kubeconfig}, "valid.yaml is valid\n", ""},
		"check, warnings":       {[]string{"check", "--config", file("empty.yaml", ""), "--kubeconfig", kubeconfig}, "warning: nobody can sign in", ""},
		"check, no kubeconfig":  {[]string{"check", "--config", valid, "--kubeconfig", dir + "/none"}, "", "cluster default: "},
		"preflight nowhere":     {[]string{"preflight", "--config", valid, "--kubeconfig", kubeconfig}, "cluster default at http://127.0.0.1:1 \n  missing: an answer: ", "preflight: 1 things are missing"},
		"check, invalid":        {[]string{"check", "--config", invalid}, "", "unknown key"},
		"check, wrong policy":   {[]string{"check", "--config", file("policy.yaml", "authorizer: {mode: policy, policies: ['true', 'user.nmae == 1']}\n")}, "", "authorizer.policies[1]: ERROR"},
		"check nothing":         {[]string{"check"}, "", "--config FILE is required"},
		"explain nobody":        {[]string{"explain", "--config", valid, "/apis"}, "", "--user NAME and a path"},
		"explain no path":       {[]string{"explain", "--config", valid, "--user", "jane", "pods"}, "", "--user NAME and a path"},
		"explain wrong claims":  {[]string{"explain", "--config", valid, "--user", "jane", "--claims", "x", "/apis"}, "", "--claims: "},
		"token":                 {[]string{"token", "--key", dir + "/key", "--user", "jane", "--group", "a", "--group", "b", "--ttl", "5m"}, "eyJ", ""},
		"token for nobody":      {[]string{"token", "--key", dir + "/key"}, "", "--key FILE and --user NAME are required"},
		"token of the past":     {[]string{"token", "--key", dir + "/key", "--user", "jane", "--ttl", "-5m"}, "", "TTL"},
		"token of the system":   {[]string{"token", "--key", dir + "/key", "--user", "system:admin"}, "", "system:"},
		"watch nothing":         {[]string{"watch"}, "", "1 arguments were expected, not 0"},
		"watch no path":         {[]string{"watch", "pods"}, "", `"pods" is not a path`},
		"watch nowhere":         {[]string{"watch", "--server", "localhost:8080", "/api/v1/pods"}, "", "is not the URL of a gateway"},
		"watch by file":         {[]string{"watch", "--server", "file:///etc", "/api/v1/pods"}, "", "is not the URL of a gateway"},
		"watch in colours":      {[]string{"watch", "-o", "colour", "/api/v1/pods"}, "", `-o "colour" is neither line nor json`},
		"watch without token":   {[]string{"watch", "--token-file", dir + "/none", "/api/v1/pods"}, "", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), test.args, &out)
			switch {
			case test.fail == "" && err != nil:
				t.Error(err)
			case test.fail != "" && (err == nil || !strings.Contains(err.Error(), test.fail)):
				t.Errorf("%v, without %q", err, test.fail)
			case !strings.Contains(out.String(), test.out):
				t.Errorf("%q, without %q", out.String(), test.out)
			}
		})
	}
	for _, c := range append(commands(), historyCommands...) {
		for _, flagged := range []string{"-h", "--help"} {
			args := []string{c.name, flagged}
			if slices.ContainsFunc(historyCommands, func(h command) bool { return h.name == c.name && h.does == c.does }) {
				args = append([]string{"history"}, args...)
			}
			var out bytes.Buffer
			if err := run(t.Context(), args, &out); err != nil && !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(out.String(), "gateway "+c.name) && !strings.HasPrefix(out.String(), "gateway history "+c.name) && c.name != "history" {
				t.Errorf("%v: %v, %q", args, err, out.String())
			}
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key: %v %v", info, err)
	}
}

// process prepares the gateway as a process of its own, and a buffer for its log.
func process(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asGateway+"=1")
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	return cmd, stderr
}

func TestErrorsEndTheProcessWithOne(t *testing.T) {
	cmd, stderr := process(t, "nonsense")
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.HasPrefix(stderr.String(), "gateway: there is no command") {
		t.Errorf("%v: %s", err, stderr)
	}
	cmd, _ = process(t, "serve", "-h")
	cmd.Stderr = nil
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "ops-listen") {
		t.Errorf("%v: %s", err, out)
	}
}

// The first signal drains, the second one ends the gateway at once.
func TestSignals(t *testing.T) {
	dir := t.TempDir()
	// There is no API server at this address; the gateway runs all the same.
	kubeconfig := filepath.Join(dir, "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte("auth: {anonymous: true}\ndrain: 10m\nops: {pprof: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, _ := process(t, "--config", config, "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if err := read.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	log := &follower{t: t, read: read}
	ops := log.await(`msg=listening addr=(\S+) ops=(\S+)`)[2]
	conn, err := net.Dial("tcp", ops)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A long request keeps the process from ending at once upon the first signal.
	if _, err := conn.Write([]byte("GET /debug/pprof/profile?seconds=600 HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log.await(`msg=draining within=10m0s`)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log.await(`msg=ended`)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if strings.Contains(string(log.text), "broken off") {
		t.Errorf("it waited for a request: %s", log.text)
	}
}

// follower follows a process's log.
type follower struct {
	t    *testing.T
	read *os.File
	text []byte
}

func (f *follower) await(pattern string) []string {
	f.t.Helper()
	for expression := regexp.MustCompile(pattern); ; {
		if m := expression.FindStringSubmatch(string(f.text)); m != nil {
			return m
		}
		buf := make([]byte, 4096)
		n, err := f.read.Read(buf)
		if err != nil {
			f.t.Fatalf("%v before %q: %s", err, pattern, f.text)
		}
		f.text = append(f.text, buf[:n]...)
	}
}
