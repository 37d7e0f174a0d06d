package clients

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/jobs/webhook"
)

// The receivers of docs/notifications.md, as they stand there, accept what is signed by one of two
// secrets, and nothing else.
func TestReceiversOfTheDocumentationTellRealMessagesFromOthers(t *testing.T) {
	docs, err := os.ReadFile("../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	receiver := func(language string) string {
		block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(string(docs))
		if block == nil {
			t.Fatalf("docs/notifications.md has no receiver in %s", language)
		}
		return block[1]
	}
	for language, command := range map[string]func(t *testing.T, dir string) *exec.Cmd{
		"go": func(t *testing.T, dir string) *exec.Cmd {
			file, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "receiver")
			write(t, file, receiver("go"))
			if err := run("..", "go", "build", "-o", binary, file); err != nil {
				t.Fatal(err)
			}
			return exec.CommandContext(t.Context(), binary)
		},
		"js": func(t *testing.T, dir string) *exec.Cmd {
			node := nodeWithPackages(t)
			modules, err := filepath.Abs("node_modules")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "receiver.mjs"), receiver("js"))
			return exec.CommandContext(t.Context(), node, filepath.Join(dir, "receiver.mjs"))
		},
		"python": func(t *testing.T, dir string) *exec.Cmd {
			python := program(t, "python3")
			library, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/standard-webhooks/standard-webhooks/libraries").Output()
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "receiver.py"), receiver("python"))
			cmd := exec.CommandContext(t.Context(), python, "-B", filepath.Join(dir, "receiver.py"))
			cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(strings.TrimSpace(string(library)), "python"))
			return cmd
		},
	} {
		t.Run(language, func(t *testing.T) {
			dir := t.TempDir()
			ours, other := newWebhookSecret(), newWebhookSecret()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			port := listener.Addr().(*net.TCPAddr).Port
			listener.Close()
			cmd := command(t, dir)
			if cmd.Env == nil {
				cmd.Env = os.Environ()
			}
			cmd.Env = append(cmd.Env, fmt.Sprintf("PORT=%d", port), "WEBHOOK_SECRET="+ours)
			cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			var targets []webhook.Target
			for name, secrets := range map[string]string{"ours": other + "\n" + ours, "other": other, "none": ""} {
				target := webhook.Target{Name: name, URL: fmt.Sprintf("http://127.0.0.1:%d/", port), Concurrency: 1}
				if secrets != "" {
					target.SecretFile = filepath.Join(dir, name)
					write(t, target.SecretFile, secrets)
				}
				targets = append(targets, target)
			}
			hooks, err := webhook.New(webhook.Options{Targets: targets, Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			answer := ""
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				if answer, err = hooks.Test(t.Context(), "ours"); err != nil || !strings.HasPrefix(answer, "unreachable") || time.Now().After(deadline) {
					break
				}
			}
			if err != nil || !strings.HasPrefix(answer, "delivered: 204") {
				t.Errorf("with its secret: %s, %v", answer, err)
			}
			for _, name := range []string{"other", "none"} {
				if answer, err := hooks.Test(t.Context(), name); err != nil || !strings.HasPrefix(answer, "refused: 401") {
					t.Errorf("with %s: %s, %v", name, answer, err)
				}
			}
		})
	}
}

func newWebhookSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
