package main

import (
	"bytes"
	"log/slog"
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
