package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/config"
)

// Log collectors know four levels; client-go's log has more.
func TestLevelsHavePlainNames(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelDebug - 2: "DEBUG", slog.LevelDebug: "DEBUG", slog.LevelDebug + 2: "DEBUG", slog.LevelInfo: "INFO", slog.LevelInfo + 1: "INFO",
		slog.LevelWarn: "WARN", slog.LevelError: "ERROR", slog.LevelError + 4: "ERROR",
	} {
		for format, line := range map[string]string{"text": "level=" + want + " ", "json": `"level":"` + want + `",`} {
			var out bytes.Buffer
			logger(&out, config.Log{Format: format}, slog.Level(-100)).Log(t.Context(), level, "m", slog.Group("g", "level", slog.LevelInfo+1))
			if got := out.String(); !strings.Contains(got, line) || !strings.Contains(got, "INFO+1") {
				t.Errorf("%v as %s: %s", level, format, got)
			}
		}
	}
}

// Where the log is JSON, why the gateway does not start is a line of it; else it is plain text.
func TestWhyItDoesNotStartIsALineOfTheLog(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for format, isRead := range map[string]func(string) bool{
		"json": func(line string) bool {
			var of struct{ Level, Msg, Error string }
			return json.Unmarshal([]byte(line), &of) == nil && of.Level == "ERROR" && of.Msg == "the gateway ends" && strings.Contains(of.Error, "address already in use")
		},
		"text": func(line string) bool { return strings.HasPrefix(line, "gateway: listen: ") },
	} {
		dir := t.TempDir()
		kubeconfig, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "gateway.yaml")
		for path, text := range map[string]string{
			kubeconfig: `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`,
			file: "listen: " + taken.Addr().String() + "\nauth: {anonymous: true}\nhistory: {database: none}\nlog: {format: " + format + "}\n",
		} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		command := exec.Command(os.Args[0], "serve", "--config", file, "--kubeconfig", kubeconfig, "--ops-listen", "127.0.0.1:0")
		command.Env = append(os.Environ(), asGateway+"=1")
		var out bytes.Buffer
		command.Stderr = &out
		var exit *exec.ExitError
		if err := command.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s: %v", format, err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if !isRead(lines[len(lines)-1]) || strings.Count(out.String(), "already in use") != 1 {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}
