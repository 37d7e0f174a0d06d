package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/e2e/process"
)

// Jobs live random lives under the controllers of Kubernetes and of Kueue: they wait for quota, are
// preempted, given up, suspended, deleted and resized; their pods succeed, fail, run out of memory,
// are evicted, preempted and deleted; and the gateway is killed amid it. What the history tells of
// their states, attempts, runs, causes and hours is what their pods lived.
//
// $KUBECAST_SOAK says how long the test lasts, as in `make soak`.
func TestLivesAreToldAsTheirPodsLivedThem(t *testing.T) {
	t.Parallel()
	// Kueue's kinds and controllers are nothing for other tests.
	s := ready(t, func() (*stage, error) { return newStage("controllers", 4) })
	t.Cleanup(s.cluster.Stop)
	s.runControllers(t)
	s.namespaces(t, "lives")
	s.kubectl(t, queues, "apply", "-f", "-")
	file := t.TempDir() + "/history.db"
	g := s.startGateway(t, gatewayOptions{listen: harness.Address(t), config: fmt.Sprintf("history: {database: %q}\n", "sqlite://"+file)})
	g.waitReady(t)
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	lasts := time.Duration(0)
	if text := os.Getenv("KUBECAST_SOAK"); text != "" {
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal("KUBECAST_SOAK: ", err)
		}
	}
	d := &driver{stage: s, t: t, namespace: "lives", jobs: s.kube.BatchV1().Jobs("lives"), random: seed(t), lives: map[string]*life{}, pods: map[types.UID]*kubeletPod{}}
	t.Cleanup(d.kubelet.Wait) // once no pods are seen any more
	d.recording = s.record(t, d.namespace, d.saw)
	d.beginsToBeRecorded(t, g)
	all := 0
	for ends := time.Now().Add(lasts); ; {
		all += d.round(t, g, db, all)
		if t.Failed() || time.Now().After(ends) {
			break
		}
	}
	t.Logf("%d lives", all)
}

// runControllers runs Kueue until the test ends.
func (s *stage) runControllers(t *testing.T) {
	t.Helper()
	const program = "../bin/devcontrollers"
	if _, err := os.Stat(program); err != nil {
		harness.Missing(t, "Kueue's controllers are not built: run \"make devcontrollers\"")
	}
	p, err := process.Start(process.Options{Path: program, Args: []string{"--kubeconfig", s.cluster.Kubeconfig()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Terminate(20 * time.Second)
		if t.Failed() {
			t.Logf("the end of Kueue's log:\n%s", harness.Tail(p.Stderr.String(), 40))
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	if _, err := p.Stdout.WaitFor(ctx, regexp.MustCompile(`(?m)^ready$`)); err != nil {
		t.Fatalf("Kueue's controllers did not start: %v\n%s", err, p.Stderr)
	}
}

const queues = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: low}
value: 10
description: "gives way"
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 1000
description: "takes"
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: lives}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: default
      resources: [{name: cpu, nominalQuota: 30}, {name: memory, nominalQuota: 1Ti}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lives, namespace: lives}
spec: {clusterQueue: lives}
`

// beginsToBeRecorded waits until Jobs and pods are recorded.
func (d *driver) beginsToBeRecorded(t *testing.T, g *gateway) {
	t.Helper()
	l := d.invent("first")
	spec := &l.job.Spec // of a plain Job, which stays, and whose pods run until the round is over: nobody ends them
	spec.Suspend, spec.ActiveDeadlineSeconds, spec.TTLSecondsAfterFinished, spec.PodFailurePolicy = nil, nil, nil, nil
	spec.Template.Spec.PriorityClassName = ""
	spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	delete(l.job.Labels, "kueue.x-k8s.io/queue-name")
	made, err := d.jobs.Create(t.Context(), l.job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "jobs and pods are recorded", func() error {
		told, err := d.tellings(t, g, []string{string(made.UID)})
		if err == nil && len(told[string(made.UID)].runs) == 0 {
			err = errors.New("no pod is")
		}
		return err
	})
}

// round lets Jobs live, kills the gateway once meanwhile, and compares.
func (d *driver) round(t *testing.T, g *gateway, db *sql.DB, before int) (lived int) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), settlesWithin, errors.New("it is not over"))
	defer cancel()
	random := rand.New(rand.NewPCG(d.random.Uint64(), 0))
	dies := atLeast/4 + random.IntN(atLeast/2)
	var lives []*life
	var missed, away uint64 // the last version that was missed; the last one before all of these were recorded
	var living sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	began := time.Now()
	for i := 0; i < wanted && (i < atLeast || time.Since(began) < submits); i++ {
		l := d.invent(fmt.Sprintf("life-%d", before+i))
		lives = append(lives, l)
		turns <- struct{}{}
		living.Go(func() {
			defer func() { <-turns }()
			if err := d.live(ctx, l); err != nil {
				t.Error(err)
			}
		})
		if i%atLeast == dies {
			g.kill()
			missed, away = 0, 0
		}
		if i%atLeast == dies+10 {
			g.restart(t)
			g.waitReady(t)
			missed = d.recording.newestVersion()
		}
		if missed != 0 && away == 0 {
			var recorded uint64
			if err := db.QueryRow("SELECT MIN(version) FROM logs WHERE resource IN ('jobs.batch', 'runs')").Scan(&recorded); err != nil {
				t.Error(err)
			}
			if recorded >= missed {
				away = d.recording.newestVersion()
			}
		}
		time.Sleep(time.Duration(50+random.IntN(100)) * time.Millisecond)
	}
	living.Wait()
	over := time.Since(began)
	if away == 0 { // it was away until the end
		away = d.recording.newestVersion()
	}
	if t.Failed() {
		return len(lives)
	}
	var uids []string
	for _, l := range lives {
		uids = append(uids, l.uid)
	}
	d.settle(t, uids)
	var skew []time.Duration
	harness.Eventually(t, "what is told is what there was", toldWithin, func() (err error) {
		if skew, err = d.compare(t, g, lives, away); err != nil {
			time.Sleep(time.Second)
		}
		return err
	})
	checkSkew(t, skew)
	t.Logf("%d lives are over within %s, and told within %s", len(lives), over.Round(time.Second), time.Since(began).Round(time.Second))
	d.mu.Lock()
	d.lives, d.pods = map[string]*life{}, map[types.UID]*kubeletPod{}
	d.mu.Unlock()
	d.recording.take()
	if err := d.jobs.DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	return len(lives)
}

const (
	atOnce        = 60  // lives, so that a slow machine has no more to do than it can
	wanted        = 120 // lives in a round
	atLeast       = 60  // of which there are fewer if these take longer than submits
	submits       = time.Minute
	settlesWithin = 8 * time.Minute // all lives end, which takes one
	toldWithin    = 3 * time.Minute // the history tells them: it looks for causes again for two
)

// settle waits until all pods of Jobs that are over have ended.
func (d *driver) settle(t *testing.T, uids []string) {
	t.Helper()
	eventually(t, "all pods have ended", func() error {
		d.recording.mu.Lock()
		defer d.recording.mu.Unlock()
		for _, uid := range uids {
			for pod, versions := range d.recording.jobs[uid].pods {
				if p := truthOf(pod, versions); p.ended.number == 0 {
					return fmt.Errorf("%s runs", p.name)
				}
			}
		}
		return nil
	})
}

// compare compares what is told of lives with what was recorded of them.
func (d *driver) compare(t *testing.T, g *gateway, lives []*life, away uint64) (skew []time.Duration, err error) {
	t.Helper()
	var uids []string
	for _, l := range lives {
		uids = append(uids, l.uid)
	}
	told, err := d.tellings(t, g, uids)
	if err != nil {
		return nil, err
	}
	d.recording.mu.Lock()
	defer d.recording.mu.Unlock()
	var wrong []error
	for _, l := range lives {
		o := &oracle{name: l.job.Name, of: d.recording.jobs[l.uid], told: told[l.uid], away: away}
		if err := o.check(); err != nil {
			wrong = append(wrong, err)
		}
		skew = append(skew, o.skew...)
	}
	if len(wrong) > 0 {
		text := errors.Join(wrong[:min(len(wrong), 10)]...)
		return nil, fmt.Errorf("%d of %d lives are told wrong: %w", len(wrong), len(lives), text)
	}
	return skew, nil
}

// checkSkew checks that times of pods are told to the second. The gateway says when it saw
// something, and so does the test, and each may be late where the machine is busy.
func checkSkew(t *testing.T, skew []time.Duration) {
	t.Helper()
	if len(skew) == 0 {
		t.Fatal("no times are told")
	}
	slices.Sort(skew)
	median, first, last := skew[len(skew)/2], skew[0], skew[len(skew)-1]
	t.Logf("%d times are told %s to %s after the test saw it, half of them within %s", len(skew), first, last, median)
	if median.Abs() > time.Second || first < -30*time.Second || last > 30*time.Second {
		t.Error("that is not to the second")
	}
}

// tellings is what the history tells of Jobs.
func (d *driver) tellings(t *testing.T, g *gateway, uids []string) (map[string]toldLife, error) {
	t.Helper()
	token, all := d.viewer(t), map[string]toldLife{}
	for some := range slices.Chunk(uids, 100) {
		path := "/history/apis/batch/v1/namespaces/" + d.namespace + "/jobs?limit=1000&uid=" + strings.Join(some, ",")
		jobs, err := pagesOf[toldJob](g, token, path)
		transitions, err2 := pagesOf[toldTransition](g, token, path+"&view=transitions")
		runs, err3 := pagesOf[toldRun](g, token, path+"&view=runs")
		if err := errors.Join(err, err2, err3); err != nil {
			return nil, err
		}
		for _, j := range jobs {
			if _, twice := all[j.UID]; twice {
				return nil, fmt.Errorf("%s is told twice", j.Name)
			}
			all[j.UID] = toldLife{job: j, runs: map[string]toldRun{}}
		}
		for _, tr := range slices.Backward(transitions) { // the newest come first
			if tr.number, err = strconv.ParseUint(tr.ResourceVersion, 10, 64); err != nil {
				return nil, err
			}
			l := all[tr.UID]
			l.transitions = append(l.transitions, tr)
			all[tr.UID] = l
		}
		for _, r := range runs {
			if _, twice := all[r.Job.UID].runs[r.UID]; twice {
				return nil, fmt.Errorf("the run of %s is told twice", r.Name)
			}
			all[r.Job.UID].runs[r.UID] = r
		}
	}
	for _, uid := range uids {
		if all[uid].runs == nil {
			return nil, fmt.Errorf("%s is not told", uid)
		}
	}
	return all, nil
}

// pagesOf are the items of all pages.
func pagesOf[T any](g *gateway, token, path string) (all []T, err error) {
	for next := ""; ; {
		a, err := fetchBy(g.client, http.MethodGet, g.url+path+next, bearer(token))
		if err != nil {
			return nil, err
		}
		var page struct {
			Items    []T
			Continue string
		}
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.code != http.StatusOK {
			return nil, fmt.Errorf("%s: %d %s %w", path, a.code, a.body, err)
		}
		all = append(all, page.Items...)
		if page.Continue == "" {
			return all, nil
		}
		next = "&continue=" + page.Continue
	}
}
