package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/config"
)

func TestAWebhooksURLCanStandInAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	cfg := config.Config{Webhooks: []config.Webhook{{Name: "chat", URLFile: file}}}
	if _, err := webhookTargets(cfg); err == nil || !strings.Contains(err.Error(), "webhooks[0].urlFile: open "+file) {
		t.Errorf("without the file: %v", err)
	}
	for text, want := range map[string]string{
		"https://chat.example.org/hooks/s3cret\n": "https://chat.example.org/hooks/s3cret",
		"":                  "",
		"ftp://s3cret":      "",
		"https://a\ns3cret": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		targets, err := webhookTargets(cfg)
		switch {
		case want != "" && (err != nil || targets[0].URL != want):
			t.Errorf("%q: %v, %v", text, targets, err)
		case want == "" && (err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "webhooks[0].urlFile")):
			t.Errorf("%q: %v", text, err)
		}
	}
}
