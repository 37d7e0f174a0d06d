package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// A release gets a history, in a file, which moves to a server and back, as docs/operations.md says, by Helm 3 and by Helm 4. What was recorded
// is there after the move; a rollback finds the file as it was left. While no gateway is there, an EventSource behind nginx comes
// again only where nginx has the chart's recipe.
func TestAChartsHistoryMovesFromNoneToSQLiteToAServerAndBack(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	server := dbtest.Postgres()
	runServer(t, server)
	token := s.admin(t)
	for _, version := range []string{"helm3", "helm4"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := s.newMovingRelease(t, version, token, twoUsers(t, server, version+"_owner", version))
			r.install(t)
			r.refuses(t)
			r.toSQLite(t)
			r.toServer(t)
			r.goBack(t)
			r.uninstall(t)
		})
	}
}

// movingRelease is a release whose history moves.
type movingRelease struct {
	stage                    *stage
	version, namespace       string
	token                    string
	values                   string // file of what stays as it is
	database, owner          string // the server's, by the two users
	first, onServer, removed string // uids of Jobs
}

func (s *stage) newMovingRelease(t *testing.T, version, token, database string) *movingRelease {
	t.Helper()
	r := &movingRelease{stage: s, version: version, namespace: "moving-" + version, token: token, database: database, values: filepath.Join(t.TempDir(), "values.yaml")}
	r.owner = strings.Replace(database, version+"@", version+"_owner@", 1)
	s.namespaces(t, r.namespace)
	s.startKubelet(t, r.namespace)
	s.secretsOfChart(t, r.namespace)
	text := fmt.Sprintf(`
config:
  auth: {jwt: [{issuer: "https://kubecast.local", audiences: [kubecast], publicKeyFile: /etc/kubecast-keys/issuer.pub}]}
  drain: 0s
history: {persistence: {storageClass: fast}}
keys: {existingSecret: keys}
ingress: {enabled: true, host: kubecast.example.org, nginxSnippet: true}
preStopSeconds: 0
nodeSelector: {%s: %s}
tolerations: [{key: %[1]s, operator: Exists}]
`, ownKubelet, r.namespace)
	if err := os.WriteFile(r.values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// helm does something to the release, with further values for its history.
func (r *movingRelease) helm(t *testing.T, do string, values ...string) (string, error) {
	t.Helper()
	args := []string{do, "kubecast", "../deploy/chart", "-n", r.namespace, "-f", r.values}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	return r.stage.tryHelm(t, r.version, args...)
}

func (r *movingRelease) mustHelm(t *testing.T, do string, values ...string) {
	t.Helper()
	if out, err := r.helm(t, do, values...); err != nil {
		t.Fatalf("%s %v: %v %s", do, values, err, out)
	}
}

// serves waits until so many replicas serve, and no others are there.
func (r *movingRelease) serves(t *testing.T, replicas int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d replicas serve", replicas), func() error {
		pods, err := r.stage.kube.CoreV1().Pods(r.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=gateway"})
		if err != nil {
			return err
		}
		if ready := r.stage.endpoints(t.Context(), r.namespace, "kubecast"); len(ready) != replicas || len(pods.Items) != replicas {
			return fmt.Errorf("%d of %d are ready", len(ready), len(pods.Items))
		}
		deployment, err := r.stage.kube.AppsV1().Deployments(r.namespace).Get(t.Context(), "kubecast", metav1.GetOptions{})
		if err == nil && (deployment.Generation != deployment.Status.ObservedGeneration || deployment.Status.UpdatedReplicas != int32(replicas)) {
			err = fmt.Errorf("%+v", deployment.Status)
		}
		return err
	})
}

// job makes a Job that is suspended, so its state is the same whoever looks at it first.
func (r *movingRelease) job(t *testing.T, name string) (uid string) {
	t.Helper()
	suspended := true
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Suspend: &suspended, Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "work", Image: "x"}}},
	}}}
	made, err := r.stage.kube.BatchV1().Jobs(r.namespace).Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(made.UID)
}

// told are the transitions of a Job, as text, when there are some in a state.
func (r *movingRelease) told(t *testing.T, uid, state string) (transitions string) {
	t.Helper()
	eventually(t, uid+" is told as "+state, func() error {
		code, body, err := r.ask(t, "?view=transitions&uid="+uid)
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("%d %s: %w", code, body, err)
		}
		var page struct {
			Items []struct{ To string }
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			return err
		}
		if len(page.Items) == 0 || page.Items[0].To != state {
			return fmt.Errorf("%s", body)
		}
		transitions = body
		return nil
	})
	return transitions
}

// ask asks for the history of the namespace's Jobs.
func (r *movingRelease) ask(t *testing.T, query string) (code int, body string, err error) {
	t.Helper()
	ready := r.stage.endpoints(t.Context(), r.namespace, "kubecast")
	if len(ready) == 0 {
		return 0, "", fmt.Errorf("no replica is ready")
	}
	a, err := fetch(http.MethodGet, "http://"+ready[0]+"/history/apis/batch/v1/namespaces/"+r.namespace+"/jobs"+query, bearer(r.token))
	return a.code, a.body, err
}

func (r *movingRelease) install(t *testing.T) {
	t.Helper()
	r.mustHelm(t, "install")
	r.serves(t, 2)
	if code, body, err := r.ask(t, ""); err != nil || code != http.StatusNotFound || !strings.Contains(body, "keeps no history") {
		t.Errorf("%d %s %v", code, body, err)
	}
	r.first = r.job(t, "first")
}

// refuses asks for what two gateways with a file each would come to. The release stays as it is.
func (r *movingRelease) refuses(t *testing.T) {
	t.Helper()
	for values, want := range map[string]string{
		"config.history.database=sqlite,replicas=2":                                                                   "/replicas",
		"config.history.database=sqlite,autoscaling.enabled=true":                                                     "/autoscaling/enabled",
		"config.history.database=sqlite,history.migration.enabled=true":                                               "is no server",
		"config.history.database=postgres://kubecast:x@db.example.org/kubecast":                                       "history.existingSecret",
		"config.history.database=postgres://u@db.example.org/kubecast,history.migration.enabled=true":                 "history.migration.database",
		"config.history.database=sqlite,config.kinds.deny={rays.ray.io},config.history.kinds[0].resource=rays.ray.io": "config.kinds.deny",
	} {
		if out, err := r.helm(t, "upgrade", values); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v %s, nothing of %s", values, err, out, want)
		}
	}
	out, err := r.stage.tryHelm(t, r.version, "history", "kubecast", "-n", r.namespace, "-o", "json")
	if err != nil || strings.Count(out, `"revision":`) != 1 {
		t.Errorf("%v %s", err, out)
	}
}

// toSQLite has one replica end before the next one begins. Meanwhile clients behind nginx get 502 or 503.
func (r *movingRelease) toSQLite(t *testing.T) {
	t.Helper()
	endsWithout, goesOnWith := r.watchWithAndWithoutRecipe(t)
	r.mustHelm(t, "upgrade", "config.history.database=sqlite")
	endsWithout() // the next replica waits for its volume
	r.stage.bindVolume(t, r.namespace, "kubecast-history")
	r.serves(t, 1)
	goesOnWith()
	r.told(t, r.first, "Suspended")
}

// watchWithAndWithoutRecipe has an EventSource behind the chart's Ingress, and one behind the same without the snippet. The functions
// that it returns wait until the second has ended for good, and until the first is told something again.
func (r *movingRelease) watchWithAndWithoutRecipe(t *testing.T) (endsWithout, goesOnWith func()) {
	t.Helper()
	ingress, err := r.stage.kube.NetworkingV1().Ingresses(r.namespace).Get(t.Context(), "kubecast", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plain := ingress.DeepCopy()
	delete(plain.Annotations, "nginx.ingress.kubernetes.io/server-snippet")
	if len(plain.Annotations) != len(ingress.Annotations)-1 {
		t.Fatalf("the Ingress has no snippet: %v", ingress.Annotations)
	}
	path := "/api/v1/namespaces/" + r.namespace + "/services?fieldSelector=metadata.name%3Dnone"
	ctx, cancel := context.WithCancel(context.Background())
	begin := func(proxy *ingressNginx) (*eventSources, <-chan error) {
		w, end := &eventSources{last: make([]int, 1), resets: true}, make(chan error, 1)
		w.running.Go(func() { end <- w.watch(ctx, 0, proxy.url+path, r.token) })
		t.Cleanup(func() { cancel(); w.running.Wait() })
		return w, end
	}
	with, withEnds := begin(r.stage.startNginx(t, ingress, "kubecast"))
	without, withoutEnds := begin(r.stage.startNginx(t, plain, "kubecast"))
	eventually(t, "both are told something", func() error {
		if with.events() == 0 || without.events() == 0 {
			return fmt.Errorf("%d, %d", with.events(), without.events())
		}
		return nil
	})
	var before int // what the other had been told by then: it may be back before anybody waits for it
	endsWithout = func() {
		t.Helper()
		select {
		case err := <-withoutEnds:
			if err == nil || !strings.Contains(err.Error(), "ended for good: 50") {
				t.Errorf("without the recipe: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("without the recipe nothing ended")
		}
		before = with.events()
	}
	goesOnWith = func() {
		t.Helper()
		eventually(t, "the other is told something again", func() error {
			if with.events() == before {
				return fmt.Errorf("%d events", before)
			}
			return nil
		})
		cancel()
		if err := <-withEnds; err != nil {
			t.Errorf("with the recipe: %v", err)
		}
	}
	return endsWithout, goesOnWith
}

// onServerValues are those of a history on the server.
func (r *movingRelease) onServerValues() []string {
	return []string{"config.history.database=" + r.database, "history.existingSecret=database", "history.migration.enabled=true",
		"history.migration.database=" + r.owner, "history.migration.existingSecret=database"}
}

// toServer ends the gateway, copies by the documented pod, and begins on the server.
func (r *movingRelease) toServer(t *testing.T) {
	t.Helper()
	before := r.told(t, r.first, "Suspended")
	r.mustHelm(t, "upgrade", "config.history.database=sqlite", "replicas=0")
	r.serves(t, 0)
	text, err := os.ReadFile("../deploy/history-copy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pod := strings.NewReplacer("postgres://kubecast_owner@db.example.org/kubecast?sslmode=verify-full", r.owner, "kubecast-db-owner", "database",
		"  restartPolicy: Never", fmt.Sprintf("  restartPolicy: Never\n  nodeSelector: {%s: %s}\n  tolerations: [{key: %[1]s, operator: Exists}]", ownKubelet, r.namespace)).Replace(string(text))
	r.stage.kubectl(t, pod, "apply", "-n", r.namespace, "--warnings-as-errors", "-f", "-")
	r.stage.kubectl(t, "", "wait", "-n", r.namespace, "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", "pod/kubecast-copy")
	r.stage.kubectl(t, pod, "delete", "-n", r.namespace, "--wait=false", "-f", "-")
	r.mustHelm(t, "upgrade", r.onServerValues()...)
	r.serves(t, 2)
	if after := r.told(t, r.first, "Suspended"); after != before {
		t.Errorf("on the server it is %s, and was %s", after, before)
	}
	r.onServer, r.removed = r.job(t, "on-server"), r.job(t, "removed")
	r.told(t, r.onServer, "Suspended")
	r.told(t, r.removed, "Suspended")
	r.stage.kubectl(t, "", "delete", "job", "removed", "-n", r.namespace)
	r.told(t, r.removed, "Deleted")
}

// goBack goes back to the file, which gets what the API server still remembers of the time on the server. A rollback of Helm 3 would take the
// volume from the claim, which the API server refuses, and leave objects behind; an upgrade with the values of before does it.
func (r *movingRelease) goBack(t *testing.T) {
	t.Helper()
	if r.version == "helm3" {
		r.mustHelm(t, "upgrade", "config.history.database=sqlite")
	} else {
		r.rollBack(t, "2")
	}
	r.serves(t, 1)
	r.told(t, r.first, "Suspended")
	r.told(t, r.onServer, "Suspended")
	r.told(t, r.removed, "Deleted")
}

func (r *movingRelease) rollBack(t *testing.T, revision string) {
	t.Helper()
	if out, err := r.stage.tryHelm(t, r.version, "rollback", "kubecast", revision, "-n", r.namespace); err != nil {
		t.Fatalf("%v %s", err, out)
	}
}

// uninstall, after a rollback to no history at all, leaves the volume.
func (r *movingRelease) uninstall(t *testing.T) {
	t.Helper()
	if r.version == "helm3" {
		r.rollBack(t, "1")
		r.serves(t, 2)
	}
	if out, err := r.stage.tryHelm(t, r.version, "uninstall", "kubecast", "-n", r.namespace); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	eventually(t, "the volume is left, and nothing else", func() error {
		if err := r.stage.leftOf(r.namespace); err == nil || !strings.HasPrefix(err.Error(), "[persistentvolumeclaim/kubecast-history]: ") {
			return fmt.Errorf("left is %w", err)
		}
		return nil
	})
}
