package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The tests run devcluster as its users do: as a process, on the real control plane. That process is the test binary.
// It is copied to beside the programs, and a variable of the environment tells it to be devcluster.

const beDevcluster = "DEVCLUSTER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(beDevcluster) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// testForker starts the clusters of tests, which so cannot outlive the tests, however these end.
var testForker = sync.OnceValue(newForker)

// install makes a directory with devcluster and the programs that "make build" has built.
func install(t *testing.T) (devcluster string) {
	t.Helper()
	built, err := filepath.EvalSymlinks("../bin/controlplane")
	if err == nil {
		_, err = findBinariesIn(built, "", append(controlPlane, "kubectl"))
	}
	if err != nil {
		message := fmt.Sprintf("the control plane is not built (run \"make build\"): %v", err)
		if os.Getenv("CI") != "" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	bin := t.TempDir()
	if err := os.Mkdir(filepath.Join(bin, "controlplane"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(controlPlane, "kubectl") {
		if err := os.Symlink(filepath.Join(built, name), filepath.Join(bin, "controlplane", name)); err != nil {
			t.Fatal(err)
		}
	}
	return copyTestBinary(t, bin)
}

// copyTestBinary puts the test binary into a directory, because it looks for the programs beside itself.
func copyTestBinary(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "devcluster")
	if os.Link(self, name) == nil {
		return name
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

func command(devcluster string, args ...string) *exec.Cmd {
	cmd := exec.Command(devcluster, args...)
	// Without atexit_sleep_ms, the race detector makes each short command wait for a second before it ends.
	cmd.Env = append(os.Environ(), beDevcluster+"=1", "KUBEBUILDER_ASSETS=", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// runCommand runs a command to its end, and returns its output, errors included.
func runCommand(devcluster string, args ...string) (string, error) {
	out, err := command(devcluster, args...).CombinedOutput()
	return string(out), err
}

// instance is a running "devcluster up".
type instance struct {
	devcluster string
	dir        directory
	cmd        *exec.Cmd
	stderr     *bytes.Buffer // read it after done
	done       chan struct{} // closed when it has ended
	err        error         // how it ended; read it after done
	config     *rest.Config
	client     kubernetes.Interface
}

// startUp starts an instance, and returns when it has said "ready".
func startUp(t *testing.T, devcluster, dir string, args ...string) *instance {
	t.Helper()
	started := time.Now()
	i := &instance{devcluster: devcluster, dir: directory(dir), stderr: new(bytes.Buffer), done: make(chan struct{})}
	i.cmd = command(devcluster, append([]string{"up", "--dir", dir}, args...)...)
	i.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	i.cmd.Stderr = i.stderr
	stdout, stdoutWriter := io.Pipe()
	i.cmd.Stdout = stdoutWriter
	if err := testForker().start(i.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		i.err = i.cmd.Wait()
		stdoutWriter.Close()
		close(i.done)
	}()
	t.Cleanup(func() {
		if t.Failed() { // it may be about to say that a component has died, and how
			select {
			case <-i.done:
			case <-time.After(3 * time.Second):
			}
		}
		i.cmd.Process.Kill()
		<-i.done
		if t.Failed() {
			t.Logf("devcluster said, and ended with %v:\n%s", i.err, i.stderr)
			t.Logf("the end of the API server's log:\n%s", lastLines(i.dir.log("kube-apiserver"), 30))
		}
	})
	ready := false
	for lines := bufio.NewScanner(stdout); !ready && lines.Scan(); {
		ready = lines.Text() == "ready"
	}
	go io.Copy(io.Discard, stdout)
	if !ready {
		<-i.done
		t.Fatalf("devcluster up ended before it was ready: %v\n%s", i.err, i.stderr)
	}
	t.Logf("ready after %.1f s", time.Since(started).Seconds())
	var err error
	i.config, err = clientcmd.BuildConfigFromFlags("", i.dir.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	i.config.QPS = -1
	i.client = kubernetes.NewForConfigOrDie(i.config)
	return i
}

// fault does a fault, and fails the test if that is not possible.
func (i *instance) fault(t *testing.T, name string) {
	t.Helper()
	started := time.Now()
	if out, err := runCommand(i.devcluster, "fault", "--dir", string(i.dir), name); err != nil {
		t.Fatalf("fault %s: %v: %s", name, err, out)
	}
	t.Logf("%s took %.1f s", name, time.Since(started).Seconds())
}

// kubectl returns what kubectl prints.
func (i *instance) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := runCommand(i.devcluster, append([]string{"kubectl", "--dir", string(i.dir)}, args...)...)
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

// children returns the running children of a process, with their names.
func children(t *testing.T, parent int) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, stat := range stats {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if name, state, ppid := processState(pid); ppid == parent && state != "Z" {
			found[pid] = name
		}
	}
	return found
}

// processState reads /proc/PID/stat; the state is empty if there is no such process.
func processState(pid int) (name, state string, parent int) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", 0
	}
	before, after, _ := strings.Cut(string(data), "(")
	_ = before
	end := strings.LastIndex(after, ")")
	fields := strings.Fields(after[end+1:])
	parent, _ = strconv.Atoi(fields[1])
	return after[:end], fields[0], parent
}

// expectGoneProcesses waits until none of the processes runs any more.
func expectGoneProcesses(t *testing.T, pids map[int]string) {
	t.Helper()
	eventually(t, "the processes to be gone", func(context.Context) error {
		for pid, name := range pids {
			// An orphan may have no parent that collects it, so a zombie counts as gone.
			if _, state, _ := processState(pid); state != "" && state != "Z" {
				return fmt.Errorf("%s (%d) still runs, state %s", name, pid, state)
			}
		}
		return nil
	})
}

// expectComponents fails unless exactly the components run below the process.
func expectComponents(t *testing.T, pid int) map[int]string {
	t.Helper()
	pids := children(t, pid)
	var names, want []string
	for _, name := range pids {
		names = append(names, name)
	}
	for _, name := range controlPlane {
		want = append(want, name[:min(len(name), 15)]) // Linux keeps only so much of a name
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Fatalf("devcluster's processes are %v, want %v", names, want)
	}
	return pids
}

// eventually polls until a check succeeds, for as long as a slow and busy machine may need.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := poll(ctx, pollInterval, what, check); err != nil {
		t.Fatal(err)
	}
}
