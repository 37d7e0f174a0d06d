package logstream

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/logs"
)

// A log is asked for by its pod's name. A pod that was made anew under that name is another pod,
// before its log is asked for and while it is: nothing of it is told as of the one before, which
// has not simply ended.
func TestPodThatIsMadeAnewIsNotTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		defer api.Close()
		const runs = `status.containerStatuses:=[{"name":"main","restartCount":0,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]`
		api.Put("pods", "a/web", runs)
		again := func() {
			api.Delete("pods", "a/web")
			api.Put("pods", "a/web", runs)
		}
		meanwhile := func() {}
		api.Logs = func(w http.ResponseWriter, _ *http.Request) {
			meanwhile()
			_, _ = io.WriteString(w, "2026-01-01T00:00:00Z of whichever pod has the name\n")
		}
		u := upstream{api.Connect(t)}
		of := logs.ContainerRun{Namespace: "a", Pod: "web", UID: api.UID("pods", "a/web"), Container: "main"}
		body, err := u.Read(t.Context(), of, logs.ReadOptions{Tail: -1})
		if err != nil {
			t.Fatal(err)
		}
		_ = body.Close()
		meanwhile = again
		if body, err := u.Read(t.Context(), of, logs.ReadOptions{Tail: -1}); !errors.Is(err, logs.ErrGone) {
			t.Errorf("made anew while it was asked for: %v, %v", body, err)
		}
		meanwhile = func() { t.Error("the log of another pod is asked for") }
		if body, err := u.Read(t.Context(), of, logs.ReadOptions{Tail: -1}); !errors.Is(err, logs.ErrGone) {
			t.Errorf("made anew before: %v, %v", body, err)
		}
		if ended, err := u.Ended(t.Context(), of); !errors.Is(err, logs.ErrGone) {
			t.Errorf("the run before is taken for the new pod's: %t, %v", ended, err)
		}
	})
}
