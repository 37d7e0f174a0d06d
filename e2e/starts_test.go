package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Under Kueue's own controllers, a queue has a past: short jobs that came, waited, ran and ended, as the gateway recorded them. Those that
// wait in it then are told when they will start, alike wherever it is told, and mostly start within that. Where nothing can be
// known, of a queue without a past and of a job that never fits, nothing is told.
func TestJobsThatWaitStartWithinTheirIntervals(t *testing.T) {
	t.Parallel()
	p := startPast(t)
	p.submit(t, "line", "train-", 10, 1)
	p.ended(t, 5) // so that it is known how long jobs run while others wait
	p.submit(t, "line", "train-", 50, 1)
	p.ended(t, 60)
	p.recorded(t, 60)

	p.submit(t, "fresh", "alone-", 2, 1)
	p.submit(t, "line", "huge-", 1, 1000)
	p.submit(t, "line", "train-", 80, 1)
	p.look(t) // now, since it is found out every ten seconds at most when jobs start
	p.tellsAlike(t)
	for more := 0; ; more++ { // on a busy machine it is known of few jobs when they started
		p.ended(t, p.short)
		p.recorded(t, p.short)
		if p.holds(t, more < 5) {
			return
		}
		p.submit(t, "line", "train-", 40, 1)
	}
}

// pastQueues are a queue with room for sixteen jobs, which gets a past, and another one, for one.
const pastQueues = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: whole}
spec:
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 16}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: new}
spec:
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 1}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: line, namespace: team-a}
spec: {clusterQueue: whole}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: fresh, namespace: team-a}
spec: {clusterQueue: new}
`

// past is a queue whose jobs live short lives.
type past struct {
	stage   *stage
	gateway *gateway
	token   string // of whoever may see all
	made    int
	short   int // of these, those that run and end

	mu   sync.Mutex
	told map[string][]expected // of a job, what the queue's stream told, the first first
	err  error
}

// expected is when a job is said to start.
type expected struct {
	From, To   time.Time
	Confidence float64
}

func startPast(t *testing.T) *past {
	t.Helper()
	s := ready(t, func() (*stage, error) { return newStage("starts", 2) })
	t.Cleanup(s.cluster.Stop)
	s.runControllers(t)
	s.namespaces(t, "team-a", "team-b")
	s.kubectl(t, pastQueues, "apply", "-f", "-")
	s.kubectl(t, teamRoles, "apply", "-f", "-")
	g := s.startGateway(t, gatewayOptions{config: fmt.Sprintf("history: {database: %q}\n", "sqlite://"+t.TempDir()+"/history.db")})
	g.waitReady(t)
	token, err := s.token("admin", "queue-all", "queue-history")
	if err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "", "create", "clusterrole", "queue-history", "--verb=get,list,watch", "--resource=jobs.batch")
	s.kubectl(t, "", "create", "clusterrolebinding", "queue-history", "--clusterrole=queue-history", "--group=queue-history", "--group=queue-none")
	return &past{stage: s, gateway: g, token: token, told: map[string][]expected{}}
}

// submit submits so many jobs, which run for two to four seconds.
func (p *past) submit(t *testing.T, queue, name string, jobs, cpus int) {
	t.Helper()
	for range jobs {
		p.made++
		if name == "train-" {
			p.short++
		}
		job := shortJob(fmt.Sprint(name, p.made))
		suspend, one := true, int32(1)
		job.Spec.Suspend, job.Spec.Parallelism, job.Spec.Completions = &suspend, &one, &one
		job.Labels["kueue.x-k8s.io/queue-name"] = queue
		job.Spec.Template.Annotations = map[string]string{"devcluster.kubecast.io/run-seconds": fmt.Sprint(2 + p.made%3)}
		if queue == "fresh" {
			job.Spec.Template.Annotations["devcluster.kubecast.io/run-seconds"] = "86400"
		}
		job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(fmt.Sprint(cpus))}
		if _, err := p.stage.kube.BatchV1().Jobs("team-a").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// ended waits until so many jobs have.
func (p *past) ended(t *testing.T, want int) {
	t.Helper()
	n := 0
	advancing(t, fmt.Sprintf("%d jobs have ended", want), func() (int, error) { return n, nil }, func() error {
		all, err := p.stage.kube.BatchV1().Jobs("team-a").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		n = 0
		for i := range all.Items {
			if conditionsOf(&all.Items[i])[batchv1.JobComplete] {
				n++
			}
		}
		if n < want {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
}

// pastJob is a job as the history tells it.
type pastJob struct {
	Name, StartedAt string
	Queue           json.RawMessage
}

func (p *past) history(t *testing.T, token, question string) (jobs []pastJob, err error) {
	t.Helper()
	a := p.gateway.get(t, token, "/history/apis/batch/v1/namespaces/team-a/jobs"+question)
	var page struct{ Items []pastJob }
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.code != http.StatusOK {
		return nil, fmt.Errorf("%d %s %w", a.code, a.body, err)
	}
	return page.Items, nil
}

// recorded waits until the history has the ends of so many jobs. It asks for no jobs that wait, so the queue is not looked at.
func (p *past) recorded(t *testing.T, want int) {
	t.Helper()
	n := 0
	advancing(t, fmt.Sprintf("the ends of %d jobs are recorded", want), func() (int, error) { return n, nil }, func() error {
		jobs, err := p.history(t, p.token, "?state=Succeeded&limit=500")
		n = len(jobs)
		if err == nil && len(jobs) < want {
			err = fmt.Errorf("%d are", len(jobs))
		}
		return err
	})
}

// look reads the stream of the queue.
func (p *past) look(t *testing.T) {
	t.Helper()
	s, err := openFrames(context.Background(), p.gateway.url+"/queues/team-a/line?limit=1000", bearer(p.token)) // for as long as the test runs
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			f, err := s.next()
			if err == nil && f.event == "queue" {
				err = p.hear(f.data)
			}
			if err != nil {
				p.mu.Lock()
				p.err = err
				p.mu.Unlock()
				return
			}
		}
	})
	t.Cleanup(func() {
		s.close()
		reading.Wait()
	})
}

// hear keeps when jobs are told to start.
func (p *past) hear(text string) error {
	var queue struct {
		Jobs []struct {
			Name   string
			Starts *expected
		}
	}
	if err := json.Unmarshal([]byte(text), &queue); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range queue.Jobs {
		if j.Starts != nil && !slices.Contains(p.told[j.Name], *j.Starts) {
			p.told[j.Name] = append(p.told[j.Name], *j.Starts)
		}
	}
	return nil
}

// tellsAlike waits until the queue, the list of jobs and a job's own address have each told when a job that waits will start, as
// the stream has it. Jobs come until then, so that there are some that wait. Nothing is said of jobs of which nothing is known,
// and to nobody who may not see the queue.
func (p *past) tellsAlike(t *testing.T) {
	t.Helper()
	stranger, err := p.stage.token("stranger", "queue-none")
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	left := map[string]bool{"the queue": true, "the job": true, "the list": true, "the queue without a past": true}
	eventually(t, "it is told alike when a job starts", func() error {
		told := p.tells(t)
		p.mu.Lock()
		defer p.mu.Unlock()
		for from, jobs := range told.starts {
			for name, starts := range jobs {
				if slices.Contains(p.told[name], starts) {
					delete(left, from)
					last = name
				}
			}
		}
		if told.fresh {
			delete(left, "the queue without a past")
		}
		if p.err != nil {
			t.Fatal(p.err)
		}
		if len(left) == 0 {
			return nil
		}
		if told.waiting < 40 {
			p.submit(t, "line", "train-", 20, 1)
		}
		return fmt.Errorf("not told of by %v: %+v, and by the stream %v", left, told, p.told)
	})
	jobs, err := p.history(t, stranger, "/"+last)
	if err != nil || len(jobs) != 1 || string(jobs[0].Queue) != `"line"` {
		t.Errorf("whoever may not list the queue is told %+v %v", jobs, err)
	}
	if a := p.gateway.get(t, stranger, "/queues/team-a/line"); a.code != http.StatusNotFound {
		t.Errorf("whoever may not list the queue is told %d %s", a.code, a.body)
	}
}

// telling is when jobs will start, by who says it and by job; how many wait for that; and whether the job that waits in the queue without a
// past has its place.
type telling struct {
	starts  map[string]map[string]expected
	waiting int
	fresh   bool
}

func (p *past) tells(t *testing.T) telling {
	t.Helper()
	told := telling{starts: map[string]map[string]expected{"the queue": {}, "the job": {}, "the list": {}}}
	var queue struct {
		Jobs []struct {
			Name   string
			Starts *expected
		}
	}
	if err := json.Unmarshal([]byte(p.gateway.get(t, p.token, "/queues/team-a/line?limit=1000").body), &queue); err != nil {
		t.Fatal(err)
	}
	told.waiting = len(queue.Jobs)
	for _, j := range queue.Jobs {
		if j.Starts != nil {
			told.starts["the queue"][j.Name] = *j.Starts
		}
		if strings.HasPrefix(j.Name, "huge") && j.Starts != nil {
			t.Errorf("a job that never fits starts %v", *j.Starts)
		}
	}
	p.tellsOf(t, "the list", "?state=Submitted,Queued,Suspended&limit=500", &told)
	for name := range told.starts["the list"] {
		p.tellsOf(t, "the job", "/"+name, &told)
		break
	}
	return told
}

// tellsOf adds what a question to the history tells.
func (p *past) tellsOf(t *testing.T, from, question string, told *telling) {
	t.Helper()
	jobs, err := p.history(t, p.token, question)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		var place struct {
			Name     string
			Position *int
			Starts   *expected
		}
		if json.Unmarshal(j.Queue, &place) != nil {
			continue // it is a name alone: the job does not wait
		}
		if place.Starts != nil {
			told.starts[from][j.Name] = *place.Starts
		}
		if place.Name == "fresh" {
			if told.fresh = place.Position != nil; place.Starts != nil {
				t.Errorf("%s of a queue without a past starts %v", j.Name, *place.Starts)
			}
		}
	}
}

// holds compares what was told first of each job with when it started. Eight of ten are to start within that. They do not start
// independently of each other: if the machine hangs, many are late. So at least half must. It is false if they are too few, and
// there may be more.
func (p *past) holds(t *testing.T, more bool) bool {
	t.Helper()
	jobs, err := p.history(t, p.token, "?state=Succeeded&limit=500")
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	said, within, unknown, widest := 0, 0, 0, time.Duration(0)
	for _, j := range jobs {
		if len(p.told[j.Name]) == 0 {
			continue
		}
		if j.StartedAt == "" { // its controller, on a busy machine, said that it had ended before it said that it ran
			unknown++
			continue
		}
		started, err := time.Parse(time.RFC3339, j.StartedAt)
		if err != nil {
			t.Fatal(err)
		}
		first := p.told[j.Name][0]
		if said++; !started.Before(first.From) && !started.After(first.To) {
			within++
		}
		widest = max(widest, first.To.Sub(first.From))
		if first.Confidence != 0.8 || !first.From.Before(first.To) {
			t.Errorf("%s starts %v", j.Name, first)
		}
	}
	t.Logf("of %d jobs that were told when they start, and %d of which it is not known, %d started within that; the widest interval had %v", said, unknown, within, widest)
	few := said < 15 || unknown > said
	if few && more {
		return false
	}
	if few || 2*within < said || widest > 5*time.Minute {
		t.Errorf("%d of %d, %v wide", within, said, widest)
	}
	for name := range p.told {
		if !strings.HasPrefix(name, "train") {
			t.Errorf("%s was told to start %v", name, p.told[name])
		}
	}
	return true
}
