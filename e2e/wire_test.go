package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Two users send the same requests to one cache, in every form there is, while what each of them
// may see changes all the time. The bytes that one of them gets contain nothing that only the other
// may see. Each also names the other as the owner of some of their own jobs, of whose ends the
// other is not told.
func TestTwoUsersSeeNothingOfEachOther(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "wire-heron", "wire-otter")
	users := []*wiretapped{s.tap(t, g, "heron"), s.tap(t, g, "otter")}
	for _, u := range users {
		s.allowIn(t, u.name, "wire-"+u.name, "pods", "configmaps", "namespaces")
		s.allowGettingJobs(t, u.name, "wire-"+u.name)
		for i := range 12 {
			s.makeOf(t, u.name, i)
		}
		mustKnow(t, u.token, "/api/v1/namespaces/wire-"+u.name+"/pods", g)
	}
	eventually(t, "all of it is cached", func() error {
		for _, u := range users {
			if a := g.get(t, u.token, "/api/v1/configmaps"); a.code != http.StatusOK || len(parseList(t, a.body).Items) < 13 { // and kube-root-ca.crt
				return fmt.Errorf("%d %s", a.code, a.body)
			}
		}
		return nil
	})

	// For six seconds; on a slow machine until everything was answered once.
	churning, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	var running, answered sync.WaitGroup
	answered.Add(len(users))
	running.Go(func() {
		time.Sleep(6 * time.Second)
		answered.Wait()
		stop()
	})
	for i, u := range users {
		running.Go(func() { s.churnOf(churning, u.name) })
		running.Go(func() { s.endJobsOf(churning, t, u.name, users[1-i].name) })
		running.Go(func() { u.readLists(churning, answered.Done) })
		running.Go(func() { u.readStreams(churning, users[1-i]) })
	}
	running.Wait()
	for i, u := range users {
		other := users[1-i].name
		got := u.wire.bytes()
		for what, canary := range map[string]string{"its namespace": "wire-" + other, "its objects and their labels": other} {
			if at := bytes.Index(got, []byte(canary)); at >= 0 {
				t.Errorf("%s was sent %s: …%s…", u.name, what, got[max(0, at-300):min(len(got), at+100)])
			}
		}
		for _, uid := range s.uidsOf(t, other) {
			if bytes.Contains(got, []byte(uid)) {
				t.Errorf("%s was sent the uid %s of %s", u.name, uid, other)
			}
		}
		if n := bytes.Count(got, []byte(u.name+"-")); n < 1000 {
			t.Errorf("%s was sent his own objects only %d times: the test sees too little", u.name, n)
		}
		if form := u.unseen(); form != "" {
			t.Errorf("%s never had an answer to %s", u.name, form)
		}
		if !bytes.Contains(got, []byte(`"title":"`+u.name+`-job-`)) {
			t.Errorf("%s was never told of a job", u.name)
		}
		if u.seen["refusals"] > 0 {
			t.Errorf("%s was shown what should be refused", u.name)
		}
		t.Logf("%s was sent %d KiB: %v", u.name, len(got)>>10, u.seen)
	}
}

// wiretapped is a user on whose connections every byte from the gateway is kept.
type wiretapped struct {
	name, token, url string
	wire             *wiretap

	mu   sync.Mutex
	seen map[string]int // number of answers, by form
	last string         // the newest event id
}

func (s *stage) tap(t *testing.T, g *gateway, name string) *wiretapped {
	t.Helper()
	token, err := s.token(name)
	if err != nil {
		t.Fatal(err)
	}
	w := &wiretap{to: strings.TrimPrefix(g.url, "http://")}
	w.listener, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.running.Go(w.run)
	t.Cleanup(w.close)
	return &wiretapped{name: name, token: token, url: "http://" + w.listener.Addr().String(), wire: w, seen: map[string]int{}}
}

// wiretap forwards connections, and keeps all bytes that come back.
type wiretap struct {
	to       string
	listener net.Listener
	running  sync.WaitGroup

	mu   sync.Mutex
	kept bytes.Buffer
}

func (w *wiretap) run() {
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		w.running.Go(func() {
			_, _ = io.Copy(to, from)
			_ = to.Close()
		})
		w.running.Go(func() {
			var kept bytes.Buffer // one buffer per connection, so that a text is found even if it is split over two reads
			_, _ = io.Copy(from, io.TeeReader(to, &kept))
			_ = from.Close()
			w.mu.Lock()
			defer w.mu.Unlock()
			w.kept.Write(kept.Bytes())
		})
	}
}

func (w *wiretap) close() {
	_ = w.listener.Close()
	w.running.Wait()
}

// bytes ends all connections, and returns what came over them.
func (w *wiretap) bytes() []byte {
	w.close()
	return w.kept.Bytes()
}

// do makes one request over its own connection, and reads the answer until its end or the context's.
func (u *wiretapped) do(ctx context.Context, form, path string, headers ...string) []byte {
	return u.send(ctx, form, http.MethodGet, path, "", headers...)
}

func (u *wiretapped) send(ctx context.Context, form, method, path, body string, headers ...string) []byte {
	request, err := http.NewRequestWithContext(ctx, method, u.url+path, strings.NewReader(body))
	if err != nil {
		return nil
	}
	request.Header.Set("Authorization", "Bearer "+u.token)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if response.StatusCode < 300 && (err == nil || len(answer) > 0) {
		u.mu.Lock()
		u.seen[form]++
		u.mu.Unlock()
	}
	return answer
}

const (
	asTable    = "Accept: application/json;as=Table;g=meta.k8s.io;v=v1"
	asMetadata = "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	asEvents   = "Accept: text/event-stream"
)

// readLists asks for lists, counts, tables and pages.
func (u *wiretapped) readLists(ctx context.Context, answered func()) {
	tell := sync.OnceFunc(answered)
	defer tell()
	for round := 0; ctx.Err() == nil; round++ {
		for i, path := range []string{"/api/v1/pods", "/api/v1/configmaps", "/api/v1/namespaces", "/clusters/default/api/v1/pods"} {
			// Some are not there at some moments, and on a slow machine there is one round only.
			u.do(ctx, "one", fmt.Sprintf("/api/v1/namespaces/wire-%s/configmaps/%s-%d", u.name, u.name, i))
			for _, query := range []string{
				"", "labelSelector=wire%3Dyes", "fieldSelector=metadata.name!%3Dx", "search=-1", "sort=-metadata.name", "fields=metadata.labels",
				"resourceVersion=0", "countBy=metadata.namespace", "countBy=metadata.labels.owner", "sort=metadata.creationTimestamp,metadata.uid",
			} {
				u.do(ctx, "lists", path+"?"+query)
			}
			u.do(ctx, "tables", path, asTable)
			u.do(ctx, "metadata", path, asMetadata)
			for _, query := range []string{"limit=3", "limit=3&sort=-metadata.name", "limit=3&labelSelector=wire%3Dyes"} {
				u.walk(ctx, path+"?"+query)
			}
		}
		for _, path := range []string{"/auth/me", "/auth/me?kinds=pods,configmaps,namespaces,secrets", "/clusters", "/api", "/api/v1", "/version"} {
			u.do(ctx, "documents", path)
		}
		u.readNotifications(ctx, "?limit=3")
		u.do(ctx, "notifications", "/notifications?unread=true")
		u.send(ctx, "documents", http.MethodPut, "/notifications/settings", []string{`{"states":["Failed","Deleted"]}`, `{"states":["Failed"],"digest":"1s"}`}[round%2])
		// These the user may not see; the answers name only what was asked for.
		for _, path := range []string{"/api/v1/secrets", "/api/v1/nodes", "/api/v1/namespaces/kube-system/pods", "/apis/batch/v1/jobs", "/api/v1/pods?continue=x"} {
			u.do(ctx, "refusals", path)
		}
		if u.unseen() == "" {
			tell()
		}
	}
}

// unseen is a form in which nothing was answered yet. (What is asked for by name is not there at some moments.)
func (u *wiretapped) unseen() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, form := range []string{"lists", "tables", "metadata", "pages", "one", "documents", "streams", "watches", "notifications"} {
		if u.seen[form] == 0 {
			return form
		}
	}
	return ""
}

// walk reads a list page by page.
func (u *wiretapped) walk(ctx context.Context, path string) {
	next := ""
	for range 10 {
		var page struct{ Metadata struct{ Continue string } }
		if json.Unmarshal(u.do(ctx, "pages", path+next), &page) != nil || page.Metadata.Continue == "" {
			return
		}
		next = "&continue=" + url.QueryEscape(page.Metadata.Continue)
	}
}

// readNotifications reads what the user is told, page by page, and marks the last of it as read.
func (u *wiretapped) readNotifications(ctx context.Context, query string) {
	next := query
	for range 2 {
		var page struct {
			Items    []struct{ ID string }
			Continue string
		}
		if json.Unmarshal(u.do(ctx, "notifications", "/notifications"+next), &page) != nil {
			return
		}
		if n := len(page.Items); n > 1 {
			u.send(ctx, "documents", http.MethodPost, "/notifications/read", fmt.Sprintf(`{"ids":[%q]}`, page.Items[n-1].ID))
			u.send(ctx, "documents", http.MethodPost, "/notifications/read", fmt.Sprintf(`{"upTo":%q}`, page.Items[n-1].ID))
		}
		if page.Continue == "" {
			return
		}
		next = query + "&continue=" + url.QueryEscape(page.Continue)
	}
}

// readStreams follows streams and watches for a moment each, and resumes them, also with positions of the other user.
func (u *wiretapped) readStreams(ctx context.Context, other *wiretapped) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, path := range []string{
		"/api/v1/pods", "/api/v1/pods?deltas=merge-patch", "/api/v1/pods?conflate=100ms&fields=metadata.labels", "/api/v1/configmaps?labelSelector=wire%3Dyes",
		"/notifications", "/notifications?limit=2", "/stream?pods=/api/v1/pods&told=/notifications",
		"/api/v1/namespaces", "/stream?pods=/api/v1/pods&maps=/api/v1/configmaps%3Fsearch%3D-1", "/api/v1/pods?sendInitialEvents=false",
		"/api/v1/pods?limit=5&offset=2&sort=-metadata.creationTimestamp", "/api/v1/pods?countBy=metadata.namespace,metadata.name&conflate=20ms",
		"/stream?pods=/api/v1/pods%3Flimit%3D20%26deltas%3Dmerge-patch&maps=/api/v1/configmaps%3FcountBy%3Dmetadata.labels.wire&names=/api/v1/namespaces%3Flimit%3D500",
	} {
		running.Go(func() {
			for ctx.Err() == nil {
				moment, end := context.WithTimeout(ctx, time.Duration(200+rand.IntN(800))*time.Millisecond)
				position := u.position()
				if rand.IntN(3) == 0 {
					position = other.position()
				}
				headers := []string{asEvents}
				if position != "" && rand.IntN(4) > 0 {
					headers = append(headers, "Last-Event-ID: "+position)
				}
				u.note(u.do(moment, "streams", path, headers...))
				end()
			}
		})
	}
	for _, path := range []string{
		"/api/v1/pods?watch=true&timeoutSeconds=1", "/api/v1/configmaps?watch=true&timeoutSeconds=1&allowWatchBookmarks=true",
		"/api/v1/pods?watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
	} {
		for _, accept := range []string{"Accept: application/json", asTable, asMetadata} {
			running.Go(func() {
				for ctx.Err() == nil {
					u.do(ctx, "watches", path, accept)
				}
			})
		}
	}
}

func (u *wiretapped) position() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last
}

// note records the last event id of a stream.
func (u *wiretapped) note(body []byte) {
	at := bytes.LastIndex(body, []byte("\nid: "))
	if at < 0 {
		return
	}
	id, _, whole := bytes.Cut(body[at+len("\nid: "):], []byte("\n"))
	if whole {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.last = string(id)
	}
}

// allowIn lets a user read kinds in a namespace.
func (s *stage) allowIn(t *testing.T, user, namespace string, resources ...string) (revoke func()) {
	t.Helper()
	ctx := context.Background()
	name := "e2e-" + user
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: []string{"get", "list", "watch"}}},
	}
	if _, err := s.kube.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := s.kube.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := s.kube.RbacV1().RoleBindings(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// allowGettingJobs lets a user get jobs in a namespace, by which they are told of them, and neither
// list nor watch them.
func (s *stage) allowGettingJobs(t *testing.T, user, namespace string) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-jobs-" + user, Namespace: namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get"}}},
	}
	if _, err := s.kube.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := s.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// endJobsOf makes jobs in a user's namespace that fail at once. Every third names the other user as its owner.
func (s *stage) endJobsOf(ctx context.Context, t *testing.T, user, other string) {
	jobs := s.kube.BatchV1().Jobs("wire-" + user)
	for i := 0; ctx.Err() == nil; i++ {
		job, manager, owner := shortJob(fmt.Sprintf("%s-job-%d", user, i)), livesManager, user
		if i%3 == 0 {
			owner = other
		}
		job.Spec.ManagedBy, job.Annotations = &manager, map[string]string{"kubecast.io/owner": owner}
		job, err := jobs.Create(ctx, job, metav1.CreateOptions{})
		if err == nil {
			now := metav1.Now()
			job.Status.StartTime = &now
			for _, condition := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
				job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now})
			}
			_, err = jobs.UpdateStatus(ctx, job, metav1.UpdateOptions{})
		}
		if err != nil && ctx.Err() == nil {
			t.Error(err)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// makeOf makes objects that only one user may see.
func (s *stage) makeOf(t *testing.T, user string, i int) {
	t.Helper()
	namespace, name := "wire-"+user, fmt.Sprintf("%s-%d", user, i)
	labels := map[string]string{"owner": user, "wire": "yes", "mark": name}
	if _, err := s.kube.CoreV1().Pods(namespace).Create(t.Context(), pod(namespace, name, labels), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), configMap(namespace, name, labels), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// churnOf changes, removes and makes a user's objects.
func (s *stage) churnOf(ctx context.Context, user string) {
	namespace := "wire-" + user
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("%s-%d", user, i%12)
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"mark":"%s-%d","wire":"%s"}}}`, user, i, []string{"yes", "no"}[i%2])
		_, _ = s.kube.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		_, err := s.kube.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		switch {
		case apierrors.IsNotFound(err):
			_, _ = s.kube.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(namespace, name, map[string]string{"owner": user, "wire": "yes"}), metav1.CreateOptions{})
		case i%5 == 0:
			_ = s.kube.CoreV1().ConfigMaps(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// uidsOf returns the uids of a user's objects.
func (s *stage) uidsOf(t *testing.T, user string) (uids []string) {
	t.Helper()
	pods, err := s.kube.CoreV1().Pods("wire-"+user).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) == 0 {
		t.Fatal(len(pods.Items), err)
	}
	for i := range pods.Items {
		uids = append(uids, string(pods.Items[i].UID))
	}
	return uids
}
