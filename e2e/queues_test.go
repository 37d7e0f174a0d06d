package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Under Kueue's own controllers, two teams wait in a cohort for quota, with priorities and preemption. Whatever
// changes, places in queues are Kueue's own, as its visibility API tells them, and soon; and who
// may see one team's jobs is told of the other team's as places alone.
//
// $KUBECAST_QUEUED is how many jobs wait at first, 90 if it is not set.
func TestPlacesInQueuesAreKueuesOwn(t *testing.T) {
	t.Parallel()
	q := startQueuers(t, "queues")
	queued := 90
	if text := os.Getenv("KUBECAST_QUEUED"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal("KUBECAST_QUEUED: ", err)
		}
		queued = n
	}
	q.look(t)
	q.borrowsAndPreempts(t)
	for range queued {
		q.submit(t)
	}
	q.agree(t)
	longest := time.Duration(0)
	for range 15 {
		switch q.random.IntN(3) {
		case 0:
			q.submit(t)
		case 1:
			q.withdraw(t)
		default:
			q.finish(t)
		}
		longest = max(longest, q.agree(t))
	}
	t.Logf("%d jobs were submitted; the gateway told what Kueue said within %v, and its streams at most %v after Kueue was seen to say so", q.made, longest, q.latest)
}

// borrowsAndPreempts has one team borrow what the other has, the other take it back, and an urgent job take the place of another
// one. Whoever has to give way waits again, and is told in Kueue's place.
func (q *queuers) borrowsAndPreempts(t *testing.T) {
	t.Helper()
	for range 4 {
		q.submitAs(t, teamLines[0], false, 2) // of them, team-a has room for three
	}
	q.agree(t)
	q.borrows(t, "2")
	for i, reason := range []string{"InCohortReclamation", "InClusterQueue"} {
		q.submitAs(t, teamLines[2], i == 1, 2)
		eventually(t, "a job gives way: "+reason, func() error {
			text := q.stage.kubectl(t, "", "get", "workloads.kueue.x-k8s.io", "-A", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Preempted")].reason}`)
			if !slices.Contains(strings.Fields(text), reason) {
				return fmt.Errorf("%q", text)
			}
			return nil
		})
		eventually(t, "it waits again", func() error {
			if waiting := append(q.kueueSays(t, "team-a"), q.kueueSays(t, "team-b")...); len(waiting) != i+1 {
				return fmt.Errorf("%v", waiting)
			}
			return nil
		})
		q.agree(t)
	}
	q.borrows(t, "0")
}

// borrows waits until the gateway says that team-a borrows so much, as Kueue says it.
func (q *queuers) borrows(t *testing.T, want string) {
	t.Helper()
	token, err := q.stage.token("admin", "queue-all")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "team-a borrows "+want, func() error {
		kueues := q.stage.kubectl(t, "", "get", "clusterqueue", "team-a", "-o", "jsonpath={.status.flavorsUsage[0].resources[0].borrowed}")
		var told struct {
			Resources []struct{ Borrowed string }
		}
		if a := q.gateway.get(t, token, "/queues/team-a"); json.Unmarshal([]byte(a.body), &told) != nil || len(told.Resources) != 1 || told.Resources[0].Borrowed != want || kueues != want {
			return fmt.Errorf("%s, and Kueue says %q", a.body, kueues)
		}
		return nil
	})
}

// teamQueues are two ClusterQueues that borrow from each other, and LocalQueues of them.
var teamQueues = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 1000
---
` + teamQueue("team-a", 6) + teamQueue("team-b", 2) + `apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: line, namespace: team-a}
spec: {clusterQueue: team-a}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: other, namespace: team-a}
spec: {clusterQueue: team-b}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: line, namespace: team-b}
spec: {clusterQueue: team-b}
`

func teamQueue(name string, cpus int) string {
	return fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %s}
spec:
  cohortName: teams
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: default
      resources: [{name: cpu, nominalQuota: %d}]
---
`, name, cpus)
}

// teamRoles let the group queue-team-a see its own queues and jobs, and the whole cluster's queues, and queue-all everything.
const teamRoles = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: queue-all}
rules: [{apiGroups: [kueue.x-k8s.io], resources: [clusterqueues, localqueues], verbs: [list]}, {apiGroups: [batch], resources: [jobs], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: queue-all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: queue-all}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: queue-all}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: whole-queues}
rules: [{apiGroups: [kueue.x-k8s.io], resources: [clusterqueues], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: whole-queues}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: whole-queues}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: queue-team-a}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: queues, namespace: team-a}
rules: [{apiGroups: [kueue.x-k8s.io], resources: [localqueues], verbs: [list]}, {apiGroups: [batch], resources: [jobs], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: queues, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: queues}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: queue-team-a}]
`

// queuers submit jobs, and compare what is told of them.
type queuers struct {
	stage   *stage
	gateway *gateway
	random  *rand.Rand
	jobs    []*batchv1.Job
	made    int
	looks   map[viewer]*looking
	latest  time.Duration // by how much a stream told later than Kueue
	version string        // of Kueue's visibility API; "": the newest
}

// startQueuers begins a control plane of that name with Kueue's controllers, queues of two teams, and a gateway.
func startQueuers(t *testing.T, name string) *queuers {
	t.Helper()
	s := ready(t, func() (*stage, error) { return newStage(name, 1) })
	t.Cleanup(s.cluster.Stop)
	s.runControllers(t)
	s.namespaces(t, "team-a", "team-b")
	s.kubectl(t, teamQueues, "apply", "-f", "-")
	s.kubectl(t, teamRoles, "apply", "-f", "-")
	g := s.startGateway(t, gatewayOptions{})
	g.waitReady(t)
	return &queuers{stage: s, gateway: g, random: seed(t)}
}

// viewer is who looks at which queue.
type viewer struct{ user, path string }

// looking is a stream of a queue that is read all the time.
type looking struct {
	mu    sync.Mutex
	seats []seat
	at    time.Time // when they were told
	err   error
}

// look opens the streams of queues.
func (q *queuers) look(t *testing.T) {
	t.Helper()
	q.looks = map[viewer]*looking{}
	for v, group := range map[viewer]string{{"admin", "team-a"}: "queue-all", {"admin", "team-b"}: "queue-all", {"ann", "team-b"}: "queue-team-a", {"ann", "team-a/line"}: "queue-team-a"} {
		token, err := q.stage.token(v.user, group)
		if err != nil {
			t.Fatal(err)
		}
		s, err := openFrames(context.Background(), q.gateway.url+"/queues/"+v.path+"?limit=1000", bearer(token)) // for as long as the test runs
		if err != nil {
			t.Fatal(err)
		}
		l := &looking{}
		q.looks[v] = l
		var reading sync.WaitGroup
		reading.Go(func() {
			for {
				f, err := s.next()
				l.mu.Lock()
				if l.err = err; err == nil && f.event == "queue" {
					l.seats, l.err = seatsOf(f.data)
					l.at = time.Now()
				}
				over := l.err != nil
				l.mu.Unlock()
				if over {
					return
				}
			}
		})
		t.Cleanup(func() {
			s.close()
			reading.Wait()
		})
	}
}

// told compares what the stream of a viewer, if there is one, told last. Since is when it was right first.
func (q *queuers) told(v viewer, want []seat, since time.Time) error {
	l := q.looks[v]
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || !reflect.DeepEqual(l.seats, want) {
		return fmt.Errorf("%s was streamed of %s: %v %v, and Kueue says %v", v.user, v.path, l.err, l.seats, want)
	}
	q.latest = max(q.latest, l.at.Sub(since))
	return nil
}

// teamLines are the LocalQueues, as namespace and name; two of them are of team-b's ClusterQueue.
var teamLines = [][2]string{{"team-a", "line"}, {"team-a", "other"}, {"team-b", "line"}}

func (q *queuers) submit(t *testing.T) {
	t.Helper()
	q.submitTo(t, teamLines[q.random.IntN(len(teamLines))])
}

func (q *queuers) submitTo(t *testing.T, line [2]string) {
	t.Helper()
	q.submitAs(t, line, q.random.IntN(5) == 0, 1+q.random.IntN(2))
}

func (q *queuers) submitAs(t *testing.T, line [2]string, urgent bool, cpus int) {
	t.Helper()
	q.made++
	job := shortJob(fmt.Sprintf("job-%d", q.made))
	suspend, one := true, int32(1)
	job.Spec.Suspend, job.Spec.Parallelism, job.Spec.Completions = &suspend, &one, &one
	job.Labels["kueue.x-k8s.io/queue-name"] = line[1]
	if urgent {
		job.Labels["kueue.x-k8s.io/priority-class"] = "urgent"
	}
	job.Spec.Template.Spec.NodeSelector = map[string]string{"no": "such"} // what is let in stays until it is deleted
	cpu := resource.MustParse(fmt.Sprint(cpus))
	job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: cpu}
	made, err := q.stage.kube.BatchV1().Jobs(line[0]).Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q.jobs = append(q.jobs, made)
}

// withdraw deletes any job.
func (q *queuers) withdraw(t *testing.T) {
	t.Helper()
	i := q.random.IntN(len(q.jobs))
	background := metav1.DeletePropagationBackground
	if err := q.stage.kube.BatchV1().Jobs(q.jobs[i].Namespace).Delete(t.Context(), q.jobs[i].Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	q.jobs = slices.Delete(q.jobs, i, i+1)
}

// finish deletes a job that was let in, so that another is.
func (q *queuers) finish(t *testing.T) {
	t.Helper()
	all, err := q.stage.kube.BatchV1().Jobs("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range all.Items {
		if j.Spec.Suspend != nil && !*j.Spec.Suspend {
			i := slices.IndexFunc(q.jobs, func(known *batchv1.Job) bool { return known.UID == j.UID })
			if i >= 0 {
				q.jobs[i], q.jobs[0] = q.jobs[0], q.jobs[i]
				background := metav1.DeletePropagationBackground
				if err := q.stage.kube.BatchV1().Jobs(j.Namespace).Delete(t.Context(), j.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
					t.Fatal(err)
				}
				q.jobs = q.jobs[1:]
				return
			}
		}
	}
}

// seat is a job's places, as they are compared.
type seat struct {
	Namespace, Name         string
	Position, WholePosition int
	Hidden                  bool
}

// agree waits until the gateway tells of each queue what Kueue does, twice in a row, and returns how long that took.
func (q *queuers) agree(t *testing.T) (took time.Duration) {
	t.Helper()
	began := time.Now()
	said, since := map[string][]kueueSeat{}, map[string]time.Time{}
	eventually(t, "places are Kueue's own", func() error {
		for _, whole := range []string{"team-a", "team-b"} {
			kueues := q.kueueSays(t, whole)
			if known, ok := said[whole]; !ok || !reflect.DeepEqual(known, kueues) {
				said[whole], since[whole] = kueues, time.Now()
			}
			for _, as := range []struct{ user, group string }{{"admin", "queue-all"}, {"ann", "queue-team-a"}} {
				for _, path := range []string{whole, "team-a/line", "team-a/other", "team-b/line"} {
					namespace, line, local := strings.Cut(path, "/")
					if local && (whole == "team-a") != (path == "team-a/line") {
						continue
					}
					want := []seat{}
					for _, k := range kueues {
						if local && (k.Namespace != namespace || k.line != line) {
							continue
						}
						one := k.seat
						if as.user != "admin" && one.Namespace != "team-a" {
							one = seat{Position: one.WholePosition, Hidden: true}
						}
						want = append(want, one)
					}
					code, got := q.gatewaySays(t, as.user, as.group, path)
					if as.user != "admin" && namespace == "team-b" && local {
						if code != http.StatusNotFound {
							t.Fatalf("%s is told of %s: %d", as.user, path, code)
						}
						continue
					}
					if code != http.StatusOK || !reflect.DeepEqual(got, want) {
						return fmt.Errorf("%s is told of %s: %d %v, and Kueue says %v", as.user, path, code, got, want)
					}
					if err := q.told(viewer{as.user, path}, want, since[whole]); err != nil {
						return err
					}
				}
			}
			if again := q.kueueSays(t, whole); !reflect.DeepEqual(again, kueues) {
				return fmt.Errorf("Kueue goes on")
			}
		}
		return nil
	})
	return time.Since(began)
}

type kueueSeat struct {
	seat
	line string
}

// kueueSays is who waits in a ClusterQueue, by Kueue's own visibility API.
func (q *queuers) kueueSays(t *testing.T, clusterQueue string) (all []kueueSeat) {
	t.Helper()
	text := q.stage.kubectl(t, "", "get", "--raw", "/apis/visibility.kueue.x-k8s.io/"+cmp.Or(q.version, "v1beta2")+"/clusterqueues/"+clusterQueue+"/pendingworkloads")
	var summary struct {
		Items []struct {
			Metadata                                     metav1.ObjectMeta
			LocalQueueName                               string
			PositionInClusterQueue, PositionInLocalQueue int
		}
	}
	if err := json.Unmarshal([]byte(text), &summary); err != nil {
		t.Fatal(err, text)
	}
	for _, item := range summary.Items {
		all = append(all, kueueSeat{seat{Namespace: item.Metadata.Namespace, Name: item.Metadata.OwnerReferences[0].Name, Position: item.PositionInLocalQueue + 1, WholePosition: item.PositionInClusterQueue + 1}, item.LocalQueueName})
	}
	return all
}

// gatewaySays is who waits in a queue.
func (q *queuers) gatewaySays(t *testing.T, user, group, path string) (int, []seat) {
	t.Helper()
	token, err := q.stage.token(user, group)
	if err != nil {
		t.Fatal(err)
	}
	a, err := fetch(http.MethodGet, q.gateway.url+"/queues/"+path+"?limit=1000", bearer(token))
	if err != nil {
		t.Fatal(err)
	}
	all, err := seatsOf(a.body)
	if a.code == http.StatusOK && err != nil {
		t.Fatal(err, a.body)
	}
	return a.code, all
}

// seatsOf are the places that a queue tells.
func seatsOf(text string) ([]seat, error) {
	var told struct {
		Jobs []struct {
			Namespace, Name           string
			Position, ClusterPosition int
			Hidden                    bool
		}
	}
	err := json.Unmarshal([]byte(text), &told)
	all := []seat{}
	for _, j := range told.Jobs {
		all = append(all, seat{j.Namespace, j.Name, j.Position, j.ClusterPosition, j.Hidden})
	}
	return all, err
}
