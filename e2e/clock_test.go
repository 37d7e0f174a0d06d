package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kubecast/kubecast/e2e/harness"
)

// jumpingProgram builds a gateway whose clock on the wall jumps every few seconds, forward and back
// by up to 50 minutes, as it does where time is set by hand or a machine wakes up. It is never
// behind the true time, in which certificates are not valid yet. What is measured by the monotonic
// clock goes on as ever.
//
// The clock is that of Go's package time, which is compiled with one line more. So all packages are
// compiled anew: minutes of work, once.
var jumpingProgram = sync.OnceValues(func() (string, error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("building a gateway whose clock jumps: %w", err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fail(err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		return fail(err)
	}
	const reading = "sec, nsec, mono := runtimeNow()\n"
	changed := strings.Replace(string(text), reading, reading+"\tsec += [...]int64{0, 2400, 5, 1200, 3000, 60, 0, 600}[mono/7e9%8]\n", 1)
	if changed == string(text) {
		return fail(fmt.Errorf("%s has no line %q any more", source, reading))
	}
	// The same name each time, so that what is compiled is found again the next time.
	dir := filepath.Join(os.TempDir(), "kubecast-e2e-clock")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	overlaid := filepath.Join(dir, "time.go")
	if err := os.WriteFile(overlaid, []byte(changed), 0o600); err != nil {
		return fail(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: overlaid}})
	if err != nil {
		return fail(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		return fail(err)
	}
	path := filepath.Join(harness.Dir(), "gateway-clock")
	build := exec.Command("go", slices.Concat([]string{"build"}, harness.RaceFlags, []string{"-overlay", filepath.Join(dir, "overlay.json"), "-o", path, "./cmd/gateway"})...)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return fail(fmt.Errorf("%w\n%s", err, out))
	}
	return path, nil
})
