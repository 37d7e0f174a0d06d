//go:build linux

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// The test binary also serves as the benchmark's children.
func TestMain(m *testing.M) { process.TestMain(m, main) }

// Each sort of means runs, and no good user misses an event.
func TestGoodUsersMissNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	for history, means := range map[string]string{"none": "watches,sorted,slow,kinds,patchpages,rules", "sqlite": "marks,usage,cycle"} {
		t.Run(history, func(t *testing.T) {
			var out strings.Builder
			err := run([]string{"-quick", "-history", history, "-only", means}, &out)
			t.Log(out.String())
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "means reach it") {
				t.Error("there is no verdict")
			}
		})
	}
}

func TestObjectsAreWholeAndLarge(t *testing.T) {
	m := mark.Mark{Seq: 7, At: 1754040000123456789}
	owned := job(manyJobs, 1001, m)
	if !json.Valid(owned) || strings.Count(string(owned), `"uid":"job-`) != 1+jobsInCycle {
		t.Errorf("job: %s", owned)
	}
	for name, object := range map[string][]byte{"map": configMap(7, 1001, m), "pod": pod(7, 1001, m), "owned pod": pod(manyPods-1, 1001, m)} {
		if got, ok := mark.Find(object); !ok || got != m {
			t.Errorf("%s: mark %v", name, got)
		}
		if least := map[string]int{"map": mapSize, "pod": podSize, "owned pod": podSize}[name]; !json.Valid(object) || len(object) != least {
			t.Errorf("%s: %d bytes, want %d; valid %v", name, len(object), least, json.Valid(object))
		}
	}
}
