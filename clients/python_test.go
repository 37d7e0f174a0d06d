package clients

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// pythonClient is python/tests/against_gateway.py, and what it has been told.
type pythonClient struct {
	mu          sync.Mutex
	status      string
	rows        map[string]object
	transitions []string // STATE of the one job, in the order in which they came
	seqs        map[string]bool
	said        map[string]json.RawMessage // all else, by its name
}

// startPython runs the Python client against a gateway until the test ends.
func startPython(t *testing.T, g *gateway, n *namespace, job string) *pythonClient {
	t.Helper()
	cmd := exec.Command(program(t, "python3"), "tests/against_gateway.py", g.url(), n.name, job)
	cmd.Dir, cmd.Env = "python", append(cmd.Environ(), "PYTHONPATH=src", "PYTHONDONTWRITEBYTECODE=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &pythonClient{rows: map[string]object{}, seqs: map[string]bool{}, said: map[string]json.RawMessage{}}
	read := make(chan error, 1)
	go func() { read <- p.read(stdout) }()
	t.Cleanup(func() {
		_ = stdin.Close()
		err := errors.Join(<-read, cmd.Wait())
		if err != nil || stderr.String() != "" {
			t.Errorf("the Python client: %v\n%s", err, stderr.String())
		}
	})
	return p
}

func (p *pythonClient) read(stdout io.Reader) error {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if err := p.heard(lines.Bytes()); err != nil {
			return fmt.Errorf("%w: %s", err, lines.Bytes())
		}
	}
	return lines.Err()
}

func (p *pythonClient) heard(line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var said map[string]json.RawMessage
	if err := json.Unmarshal(line, &said); err != nil {
		return err
	}
	switch {
	case said["rows"] != nil:
		var rows map[string][2]string
		if err := errors.Join(json.Unmarshal(said["status"], &p.status), json.Unmarshal(said["rows"], &rows)); err != nil {
			return err
		}
		clear(p.rows)
		for name, row := range rows {
			version, err := strconv.ParseUint(row[1], 10, 64)
			if err != nil {
				return err
			}
			p.rows[name] = object{row[0], version}
		}
	case said["transition"] != nil:
		var transition struct{ Seq, Name, To string }
		if err := json.Unmarshal(said["transition"], &transition); err != nil {
			return err
		}
		if p.seqs[transition.Seq] {
			return errors.New("a transition is told twice")
		}
		p.seqs[transition.Seq] = true
		p.transitions = append(p.transitions, transition.To)
	default:
		maps.Copy(p.said, said)
	}
	return nil
}

// settle waits until the mirror is live and has what the namespace has.
func (p *pythonClient) settle(t *testing.T, n *namespace) {
	t.Helper()
	eventually(t, "the Python client has what the cluster has", func() error {
		want, err := n.state(t.Context())
		if err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.status != "live" || !maps.Equal(p.rows, want) {
			return fmt.Errorf("it is %s with %d rows, and not live with %d", p.status, len(p.rows), len(want))
		}
		return nil
	})
}

// noticed waits until the mirror says that what it has may be old: from then on it tries in vain, and objects change.
func (p *pythonClient) noticed(t *testing.T) {
	t.Helper()
	eventually(t, "the Python client says that it is stale", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.status != "stale" {
			return fmt.Errorf("it says %s", p.status)
		}
		return nil
	})
}

// Whatever becomes of the gateway, the Python client's mirror is in the end the cluster's state, and a program that is
// started anew after each transition is told each of them once.
func TestThePythonClientMissesNothingAndSeesNothingTwice(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g, n := s.newGateway(t), s.newNamespace(t, "python")
	g.history = "database: sqlite://" + filepath.Join(g.dir, "history.db")
	ctx := t.Context()
	if _, err := n.kube.RbacV1().RoleBindings(n.name).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "system:anonymous"}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", APIGroup: rbacv1.GroupName, Name: "view"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const train = "train"
	if _, err := n.kube.BatchV1().Jobs(n.name).Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: train},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"devcluster.kubecast.io/run-seconds": "1", "devcluster.kubecast.io/log-lines-per-second": "20"}},
				Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	config := func(more string) string { return "drain: 2s\n" + quickRetry + more }
	g.start(t, config(catchUp))
	p := startPython(t, g, n, train)
	stop := n.churn(t, 50)
	p.settle(t, n)
	g.kill()
	p.noticed(t)
	g.start(t, config(catchUp))
	p.settle(t, n)
	g.drain()
	g.start(t, config(catchUp))
	p.settle(t, n)
	if _, err := n.kube.BatchV1().Jobs(n.name).Patch(ctx, train, "application/merge-patch+json", []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	g.kill()
	p.noticed(t)
	g.start(t, config("ring: {events: 1000}\ncatchUp: {events: 1}\n"))
	p.settle(t, n)
	stop()
	p.settle(t, n)

	want := map[string]string{"ended": `{"train": "Succeeded"}`, "counts": `{"Succeeded": 1}`, "kept": `["Succeeded"]`, "denied": "403"}
	eventually(t, "all else has been told", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		for name, text := range want {
			if string(p.said[name]) != text {
				return fmt.Errorf("%s is %s, not %s", name, p.said[name], text)
			}
		}
		if lines, _ := strconv.Atoi(string(p.said["lines"])); lines == 0 {
			return fmt.Errorf("%s lines of a log", p.said["lines"])
		}
		var recorded []string
		if err := json.Unmarshal(p.said["recorded"], &recorded); err != nil || len(recorded) < 2 {
			return fmt.Errorf("%s is recorded: %w", p.said["recorded"], err)
		}
		for _, seq := range recorded {
			if !p.seqs[seq] {
				return fmt.Errorf("the transition %s has not been told", seq)
			}
		}
		if len(p.transitions) < 2 || p.transitions[0] != "Suspended" || p.transitions[len(p.transitions)-1] != "Succeeded" {
			return fmt.Errorf("transitions to %v", p.transitions)
		}
		return nil
	})
}
