package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/e2e/process"
)

// Under Volcano's own scheduler and controllers, jobs of two teams wait in one Queue. The order in which they are told is the one in
// which Volcano then takes them, one after another; whatever of it has started, the rest is told in that order. Who may see one team's
// jobs is told of the other's as places alone.
func TestPlacesInVolcanosQueuesAreVolcanosOwn(t *testing.T) {
	t.Parallel()
	v := startVolcano(t)
	v.submit(t, "holds", "team-a", "", 86_400)
	eventually(t, "the queue is full", func() error { return v.phase(t, "team-a", "holds", "Running") })
	var names []string
	for i := range 7 {
		name := fmt.Sprintf("job-%d", 7-i) // so that their names say nothing of when they came
		names = append(names, name)
		v.submit(t, name, []string{"team-a", "team-b"}[i%2], []string{"", "urgent", "idle"}[v.random.IntN(3)], 1)
	}
	admin, ann := v.token(t, "admin", "volcano-all"), v.token(t, "ann", "volcano-team-a")
	var order []seat
	eventually(t, "all that wait have places", func() error {
		code, told := v.told(t, admin, "/queues/lab")
		if code != http.StatusOK || len(told) != len(names) || slices.ContainsFunc(told, func(s seat) bool { return s.Position == 0 }) {
			return fmt.Errorf("%d %v", code, told)
		}
		order = told
		return nil
	})
	v.agrees(t, admin, ann, order)
	v.restsAlike(t, ann)
	for _, s := range order {
		eventually(t, s.Name+" has its place in the history", func() error { return v.isInHistory(t, admin, s, fmt.Sprint(s.Position)) })
	}

	look := v.look(t, admin)
	watch := v.binds(t)
	v.stage.kubectl(t, "", "delete", "jobs.batch.volcano.sh", "-n", "team-a", "holds", "--wait=false")
	eventually(t, "all have been bound", func() error {
		if bound := watch(); len(bound) < len(names) {
			return fmt.Errorf("%v", bound)
		}
		return nil
	})
	var want []string
	for _, s := range order {
		want = append(want, s.Namespace+"/"+s.Name)
	}
	if bound := watch(); !slices.Equal(bound, want) {
		t.Errorf("Volcano took %q, and they were told as %q", bound, want)
	}
	eventually(t, "the last one is told to wait no more", func() error {
		if lines := look(); len(lines) == 0 || len(lines[len(lines)-1]) > 0 {
			return fmt.Errorf("%v", lines)
		}
		return nil
	})
	for _, s := range order {
		eventually(t, s.Name+" has ended", func() error { return v.isInHistory(t, admin, s, "Succeeded") })
	}
	lines := look()
	for _, line := range lines {
		// Volcano may say of the group of a job that is being deleted that it waits, until the group is gone, too.
		line = slices.DeleteFunc(slices.Clone(line), func(name string) bool { return name == "team-a/holds" })
		if len(line) > len(want) || !slices.Equal(line, want[len(want)-len(line):]) {
			t.Errorf("the stream told %q, of %q", line, want)
		}
	}
	if len(lines) < len(want)/2 {
		t.Errorf("the stream told %d times who waits", len(lines))
	}
	t.Logf("%d jobs were taken in the order that was told, and the stream told %d orders meanwhile", len(want), len(lines))
}

// labQueue has room for one job at a time, as the jobs are.
const labQueue = `apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: lab}
spec: {weight: 1, reclaimable: false, capability: {cpu: "2"}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: idle}
value: -5
`

// labRoles let the group volcano-all see everything of Volcano, and volcano-team-a the Queues, and the jobs of team-a.
const labRoles = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: volcano-queues}
rules: [{apiGroups: [scheduling.volcano.sh], resources: [queues], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: volcano-jobs}
rules: [{apiGroups: [batch.volcano.sh], resources: [jobs], verbs: [get, list, watch]}, {apiGroups: [scheduling.volcano.sh], resources: [podgroups], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: volcano-queues}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: volcano-queues}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: volcano-all}, {apiGroup: rbac.authorization.k8s.io, kind: Group, name: volcano-team-a}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: volcano-jobs}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: volcano-jobs}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: volcano-all}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: volcano-jobs, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: volcano-jobs}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: volcano-team-a}]
`

// volcanoStage is a control plane with Volcano, and a gateway.
type volcanoStage struct {
	*queuers
}

func startVolcano(t *testing.T) *volcanoStage {
	t.Helper()
	s := ready(t, func() (*stage, error) { return newStage("volcano", 1) })
	t.Cleanup(s.cluster.Stop)
	s.runVolcano(t)
	s.namespaces(t, "team-a", "team-b")
	eventually(t, "Queues can be made", func() error {
		_, err := s.cluster.Kubectl(t.Context(), strings.NewReader(labQueue), "apply", "-f", "-")
		return err
	})
	s.kubectl(t, labRoles, "apply", "-f", "-")
	g := s.startGateway(t, gatewayOptions{config: fmt.Sprintf("history: {database: %q, kinds: [{resource: jobs.batch.volcano.sh}]}\n", "sqlite://"+t.TempDir()+"/history.db")})
	g.waitReady(t)
	return &volcanoStage{&queuers{stage: s, gateway: g, random: seed(t)}}
}

// runVolcano installs Volcano's kinds, and runs its scheduler and controllers until the test ends, as they are, without its webhooks.
func (s *stage) runVolcano(t *testing.T) {
	t.Helper()
	const dir = "../bin/volcano"
	if _, err := os.Stat(dir + "/scheduler"); err != nil {
		harness.Missing(t, "Volcano is not built: run \"make devvolcano\"")
	}
	kinds, err := filepath.Glob(dir + "/*.yaml")
	if err != nil || len(kinds) == 0 {
		t.Fatal("no kinds of Volcano: ", err)
	}
	for _, kind := range kinds {
		s.kubectl(t, "", "apply", "--server-side", "-f", kind)
	}
	s.kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd", "jobs.batch.volcano.sh", "queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh")
	for program, args := range map[string][]string{
		"scheduler":          {"--schedule-period=100ms", "--cache-dumper=false"},
		"controller-manager": {"--controllers=+gc-controller,+job-controller,+pg-controller,+queue-controller"},
	} {
		own := t.TempDir()
		p, err := process.Start(process.Options{
			Path: dir + "/" + program, Args: append(args, "--kubeconfig", s.cluster.Kubeconfig(), "--leader-elect=false"), Env: []string{"DEBUG_SOCKET_DIR=" + own, "HOME=" + own}, // or it looks at whatever cluster is configured there
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			p.Terminate(20 * time.Second)
			if t.Failed() {
				t.Logf("the end of the log of Volcano's %s:\n%s", program, harness.Tail(p.Stderr.String(), 40))
			}
		})
	}
}

func (v *volcanoStage) token(t *testing.T, user, group string) string {
	t.Helper()
	token, err := v.stage.token(user, group)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// submit submits a Job of Volcano with one pod that takes all of the queue, with what Volcano's webhook would fill in.
func (v *volcanoStage) submit(t *testing.T, name, namespace, class string, seconds int) {
	t.Helper()
	v.stage.kubectl(t, fmt.Sprintf(`apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %s, namespace: %s}
spec:
  schedulerName: volcano
  queue: lab
  minAvailable: 1
  maxRetry: 3
  priorityClassName: %q
  tasks:
  - name: main
    replicas: 1
    minAvailable: 1
    template:
      metadata: {annotations: {devcluster.kubecast.io/run-seconds: "%d"}}
      spec:
        restartPolicy: Never
        containers: [{name: main, image: "registry.example.org/train:1", resources: {requests: {cpu: "2"}}}]
`, name, namespace, class, seconds), "create", "-f", "-")
}

func (v *volcanoStage) phase(t *testing.T, namespace, name, want string) error {
	t.Helper()
	if got := v.stage.kubectl(t, "", "get", "jobs.batch.volcano.sh", "-n", namespace, name, "-o", "jsonpath={.status.state.phase}"); got != want {
		return fmt.Errorf("%s is %q", name, got)
	}
	return nil
}

// told is who waits in a queue.
func (v *volcanoStage) told(t *testing.T, token, path string) (int, []seat) {
	t.Helper()
	a := v.gateway.get(t, token, path)
	all, err := seatsOf(a.body)
	if a.code == http.StatusOK && err != nil {
		t.Fatal(err, a.body)
	}
	return a.code, all
}

// agrees checks what the two users are told of the queue, beside what Volcano's objects say.
func (v *volcanoStage) agrees(t *testing.T, admin, ann string, order []seat) {
	t.Helper()
	hidden := slices.Clone(order)
	for i, s := range hidden {
		if s.Namespace != "team-a" {
			hidden[i] = seat{Position: s.Position, Hidden: true}
		}
	}
	eventually(t, "who may see one team's jobs sees those", func() error {
		code, told := v.told(t, ann, "/queues/lab?kind=Queue")
		if code != http.StatusOK || !reflect.DeepEqual(told, hidden) {
			return fmt.Errorf("%d %v, and not %v", code, told, hidden)
		}
		return nil
	})
	for _, token := range []string{admin, ann} {
		eventually(t, "the list has the queue", func() error {
			var list struct {
				Items []struct {
					Name, Kind       string
					Waiting, Running int
					Resources        []struct{ Resource, Quota, Used string }
				}
			}
			a := v.gateway.get(t, token, "/queues")
			if err := json.Unmarshal([]byte(a.body), &list); err != nil {
				return fmt.Errorf("%s %w", a.body, err)
			}
			for _, q := range list.Items {
				if q.Name == "lab" && q.Kind == "Queue" && q.Waiting == len(order) && q.Running == 1 && len(q.Resources) > 0 && q.Resources[0].Quota == "2" && q.Resources[0].Used == "2" {
					return nil
				}
			}
			return fmt.Errorf("%s", a.body)
		})
	}
	if code, _ := v.told(t, v.token(t, "stranger", "nobody"), "/queues/lab"); code != http.StatusNotFound {
		t.Errorf("a stranger is told of the queue: %d", code)
	}
}

// restsAlike checks that Volcano's kinds are listed as the API server lists them, as far as somebody may see them.
func (v *volcanoStage) restsAlike(t *testing.T, ann string) {
	t.Helper()
	for path, code := range map[string]int{
		"/apis/scheduling.volcano.sh/v1beta1/queues": 200, "/apis/scheduling.volcano.sh/v1beta1/namespaces/team-a/podgroups": 200, "/apis/batch.volcano.sh/v1alpha1/namespaces/team-a/jobs": 200,
		"/apis/batch.volcano.sh/v1alpha1/namespaces/team-b/jobs": 403, "/apis/scheduling.volcano.sh/v1beta1/namespaces/team-b/podgroups": 403,
	} {
		eventually(t, path, func() error {
			a := v.gateway.get(t, ann, path)
			if a.code != code {
				return fmt.Errorf("%d %s", a.code, a.body)
			}
			if want := uidsOf(v.stage.kubectl(t, "", "get", "--raw", path)); code == 200 && !slices.Equal(uidsOf(a.body), want) {
				return fmt.Errorf("%s, and not %q", a.body, want)
			}
			return nil
		})
	}
}

// isInHistory checks the place in which a job waits by its history, or else the state in which it is.
func (v *volcanoStage) isInHistory(t *testing.T, token string, of seat, want string) error {
	t.Helper()
	a := v.gateway.get(t, token, "/history/apis/batch.volcano.sh/v1alpha1/namespaces/"+of.Namespace+"/jobs/"+of.Name)
	var page struct {
		Items []struct {
			State string
			Queue json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Items) != 1 {
		return fmt.Errorf("%d %s %w", a.code, a.body, err)
	}
	got := page.Items[0].State
	var place struct {
		Name     string
		Position *int
	}
	if json.Unmarshal(page.Items[0].Queue, &place) == nil && place.Position != nil {
		got = fmt.Sprint(*place.Position)
	}
	if got != want {
		return fmt.Errorf("%s: %s", got, a.body)
	}
	return nil
}

func uidsOf(list string) (uids []string) {
	var all struct {
		Items []struct{ Metadata metav1.ObjectMeta }
	}
	_ = json.Unmarshal([]byte(list), &all)
	for _, one := range all.Items {
		uids = append(uids, string(one.Metadata.UID))
	}
	slices.Sort(uids)
	return uids
}

// look reads the stream of the queue, and returns what it has told so far: each other order of those who wait.
func (v *volcanoStage) look(t *testing.T, token string) (told func() [][]string) {
	t.Helper()
	s, err := openFrames(context.Background(), v.gateway.url+"/queues/lab", bearer(token)) // for as long as the test runs
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var lines [][]string
	var reading errgroup.Group
	reading.Go(func() error {
		for {
			f, err := s.next()
			if err != nil {
				return err
			}
			if f.event != "queue" {
				continue
			}
			seats, err := seatsOf(f.data)
			if err != nil {
				return err
			}
			line := []string{}
			for _, one := range seats {
				line = append(line, one.Namespace+"/"+one.Name)
			}
			mu.Lock()
			if len(lines) == 0 || !slices.Equal(lines[len(lines)-1], line) {
				lines = append(lines, line)
			}
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		s.close()
		_ = reading.Wait() // it was closed
	})
	return func() [][]string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

// binds watches which jobs' pods are bound to nodes from now on, in that order, as namespaces and names of their jobs.
func (v *volcanoStage) binds(t *testing.T) (bound func() []string) {
	t.Helper()
	watch, err := v.stage.kube.CoreV1().Pods("").Watch(context.Background(), metav1.ListOptions{}) // for as long as the test runs
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []string
	var reading sync.WaitGroup
	reading.Go(func() {
		for event := range watch.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			name := ""
			if ok {
				name = pod.Namespace + "/" + strings.TrimSuffix(pod.Name, "-main-0")
			}
			mu.Lock()
			if ok && pod.Spec.SchedulerName == "volcano" && pod.Spec.NodeName != "" && name != "team-a/holds" && !slices.Contains(all, name) {
				all = append(all, name)
			}
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		watch.Stop()
		reading.Wait()
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}
