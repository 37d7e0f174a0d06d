package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/e2e/harness"
)

// Where nobody annotates jobs, the API server can do it, by deploy/owners.yaml. Then nobody may be
// able to put a job into somebody else's hands, neither directly, nor later, nor by the template of
// a controller; and the history knows whose each job is.
func TestTheAPIServerSaysWhoseAJobIs(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	const namespace = "owned"
	s.namespaces(t, namespace)
	s.kubectl(t, "", "create", "rolebinding", "owned", "-n", namespace, "--clusterrole=edit", "--user=ann", "--user=mallory", "--user=backend")
	s.kubectl(t, "", "create", "role", "status", "-n", namespace, "--verb=get,update,patch", "--resource=jobs.batch/status,cronjobs.batch/status")
	s.kubectl(t, "", "create", "rolebinding", "status", "-n", namespace, "--role=status", "--user=mallory")
	s.onlyWithin(t, namespace, "../deploy/owners.yaml")
	s.kubectl(t, "", "create", "clusterrolebinding", "owned-backend", "--clusterrole=kubecast-owners", "--user=backend")
	t.Cleanup(func() { s.kubectl(t, "", "delete", "clusterrolebinding", "owned-backend") })

	owner := func(what string) string {
		return s.kubectl(t, "", "get", "-n", namespace, what, "-o", `jsonpath={.metadata.annotations.kubecast\.io/owner}`)
	}
	job := func(name, metadata string) string {
		return fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":%q%s},"spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"busybox"}]}}}}`, name, metadata)
	}
	as := func(user, stdin string, args ...string) error {
		_, err := s.cluster.Kubectl(context.Background(), strings.NewReader(stdin), append([]string{"--as", user, "-n", namespace}, args...)...)
		return err
	}
	const (
		annsName   = `,"annotations":{"kubecast.io/owner":"ann"}`
		annsLabel  = `,"labels":{"kubecast.io/owner":"ann"}`
		controlled = `,"ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":%q,"uid":%q,"controller":true}]`
	)
	// Policies take a moment until they are enforced.
	harness.Eventually(t, "the policies are enforced", time.Minute, func() error {
		_ = as("mallory", "", "delete", "job", "first", "--ignore-not-found")
		if err := as("mallory", job("first", annsName), "create", "-f", "-"); err == nil {
			return fmt.Errorf("mallory could name ann")
		}
		_ = as("ann", "", "delete", "job", "first", "--ignore-not-found")
		if err := as("ann", job("first", ""), "create", "-f", "-"); err != nil {
			return err
		}
		if got := owner("job/first"); got != "ann" {
			return fmt.Errorf("the owner is %q", got)
		}
		return nil
	})
	cron := `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"anns"},"spec":{"schedule":"* * * * *","suspend":true,"jobTemplate":{"metadata":{"annotations":{"kubecast.io/owner":"mallory"},"labels":{"kubecast.io/owner":"mallory"}},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"busybox"}]}}}}}}`
	if err := as("ann", cron, "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if err := as("mallory", strings.Replace(cron, `"name":"anns"`, `"name":"mallorys"`, 1), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if err := as("mallory", job("mine", ""), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	uid := func(cronJob string) string {
		return s.kubectl(t, "", "get", "-n", namespace, "cronjob/"+cronJob, "-o", "jsonpath={.metadata.uid}")
	}
	above, mallorys := fmt.Sprintf(controlled, "anns", uid("anns")), fmt.Sprintf(controlled, "mallorys", uid("mallorys"))
	for _, test := range []struct {
		user, metadata, owner string // "!": refused
	}{
		{"ann", annsName, "ann"},
		{"mallory", annsName, "!"},
		{"mallory", annsLabel, "mallory"}, // the annotation goes before the label
		{"mallory", above, "mallory"},     // only controllers create what belongs to another object
		{"backend", annsName, "ann"},
		{"backend", "", "backend"},
		{"backend", above + `,"annotations":{"kubecast.io/owner":"mallory","other":"stays"},"labels":{"kubecast.io/owner":"mallory"}`, ""},
	} {
		err := as(test.user, job("tried", test.metadata), "create", "-f", "-")
		if test.owner == "!" {
			if err == nil || !strings.Contains(err.Error(), "kubecast.io/owner must be "+test.user) {
				t.Errorf("%s with %s: %v", test.user, test.metadata, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s with %s: %v", test.user, test.metadata, err)
			continue
		}
		if got := owner("job/tried"); got != test.owner {
			t.Errorf("%s with %s is of %q, want %q", test.user, test.metadata, got, test.owner)
		}
		s.kubectl(t, "", "delete", "job", "tried", "-n", namespace, "--wait")
	}
	for _, change := range []string{"annotate", "label"} {
		if err := as("mallory", "", change, "job/first", "kubecast.io/owner=mallory", "--overwrite"); err == nil || !strings.Contains(err.Error(), "cannot be changed") {
			t.Errorf("mallory takes a job by %s: %v", change, err)
		}
	}
	if err := as("mallory", "", "annotate", "job/first", "kubecast.io/owner-", "other=x"); err != nil || owner("job/first") != "ann" {
		t.Errorf("after the annotation was taken away: %q, %v", owner("job/first"), err)
	}

	// Who may write a job's status can write its metadata by it.
	for metadata, want := range map[string]string{
		`"annotations":{"kubecast.io/owner":"ann"}`: "cannot be changed",
		`"labels":{"kubecast.io/owner":"ann"}`:      "cannot be changed",
		`"annotations":{"kubecast.io/owner":null}`:  "",
		`"annotations":{"other":"y"}`:               "",
	} {
		err := as("mallory", "", "patch", "job/mine", "--subresource=status", "--type=merge", "-p", `{"metadata":{`+metadata+`}}`)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("mallory writes %s by the status: %v", metadata, err)
		}
		if got := owner("job/mine"); got != "mallory" {
			t.Fatalf("after %s by the status the job is of %q", metadata, got)
		}
	}
	// What a controller made for mallory cannot be put below what is ann's.
	if err := as("backend", job("below", mallorys), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for _, subresource := range []string{"", "status"} {
		err := as("mallory", "", "patch", "job/below", "--subresource="+subresource, "--type=merge", "-p", `{"metadata":{`+above[1:]+`}}`)
		if err == nil || !strings.Contains(err.Error(), "what controls this cannot be changed") {
			t.Errorf("mallory puts a job below ann's by %q: %v", subresource, err)
		}
	}

	// The real controller creates a job of ann's CronJob. Its template names mallory.
	g := s.startGateway(t, gatewayOptions{})
	g.waitReady(t)
	if err := as("ann", "", "patch", "cronjob/anns", "-p", `{"spec":{"suspend":false}}`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = as("ann", "", "patch", "cronjob/anns", "-p", `{"spec":{"suspend":true}}`) })
	token := s.admin(t)
	deadline := time.Now().Add(2 * time.Minute) // it begins with the minute
	for {
		a := g.get(t, token, "/history/apis/batch/v1/namespaces/"+namespace+"/jobs?owner=ann")
		if a.code == 200 && strings.Contains(a.body, `"name":"anns-`) {
			break
		}
		if time.Now().After(deadline) {
			jobs, _ := s.kube.BatchV1().Jobs(namespace).List(context.Background(), metav1.ListOptions{})
			t.Fatalf("the history says %d %s; jobs: %v", a.code, a.body, jobs)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// onlyWithin applies policies, whose bindings hold for one namespace only: other tests share the cluster.
func (s *stage) onlyWithin(t *testing.T, namespace, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	within := fmt.Sprintf("matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}}", namespace)
	manifests := strings.ReplaceAll(string(text), "spec: {policyName: kubecast-owners", "spec: {"+within+", policyName: kubecast-owners")
	if strings.Count(manifests, within) != 2 {
		t.Fatal("no bindings are there to be bounded")
	}
	s.kubectl(t, manifests, "apply", "--warnings-as-errors", "-f", "-")
	t.Cleanup(func() { s.kubectl(t, manifests, "delete", "--ignore-not-found", "-f", "-") })
}
