package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A list not older than a version is answered if the cluster has that version, whatever kind's
// change it is, and whether or not the API server keeps a watch cache of the kind, as of Events it
// does not.
func TestListsOfQuietKindsAreNotOlderThanOtherKindsChanges(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "quiet-kinds")
	g := s.startGateway(t, gatewayOptions{})
	g.waitReady(t)
	token := s.admin(t)
	const as = "application/json;g=meta.k8s.io;v=v1;as="
	for i, path := range []string{"/api/v1/namespaces/quiet-kinds/events", "/apis/events.k8s.io/v1/namespaces/quiet-kinds/events", "/api/v1/podtemplates"} {
		g.list(t, token, path)                // it is cached from here on
		s.eventComesAndGoes(t, "quiet-kinds") // a revision that deletes is asked for once more
		for j, accept := range []string{asJSON, as + "Table", as + "PartialObjectMetadataList"} {
			made, err := s.kube.CoreV1().ConfigMaps("quiet-kinds").Create(t.Context(), configMap("quiet-kinds", fmt.Sprintf("c-%d-%d", i, j), nil), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if a := g.asker(token)(t, path+"?resourceVersion="+made.ResourceVersion, accept); a.code != http.StatusOK {
				t.Errorf("%s as %s: %d %s", path, accept, a.code, a.body)
			}
		}
	}
}

// A client has a version from one server and names it to another one. Whatever form it asks in, the
// answer is not older, also of a kind in which nothing happens.
func TestListsOfEveryFormAreNotOlderThanVersionsFromElsewhere(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	const namespace = "versions-elsewhere"
	s.namespaces(t, namespace)
	ctx := context.Background()
	for _, name := range []string{"a", "b", "c"} {
		meta := metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": "quiet"}}
		template := corev1.PodTemplateSpec{Spec: pod(namespace, name, nil).Spec}
		if _, err := s.kube.CoreV1().PodTemplates(namespace).Create(ctx, &corev1.PodTemplate{ObjectMeta: meta, Template: template}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		event := &corev1.Event{ObjectMeta: meta, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: name}}
		if _, err := s.kube.CoreV1().Events(namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	one, other := s.sharedGateway(t), s.startGateway(t, gatewayOptions{})
	other.waitReady(t)
	token, oracle := s.admin(t), s.oracle(t)
	write := func(t *testing.T) (version string) { // of another kind
		t.Helper()
		made, err := s.kube.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made.ResourceVersion
	}
	for _, resource := range []string{"podtemplates", "events"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			path := "/api/v1/namespaces/" + namespace + "/" + resource
			for _, g := range []*gateway{one, other} {
				g.list(t, token, path) // it is cached from here on
			}
			bookmarkOf := func(t *testing.T, g *gateway) (version string) {
				t.Helper()
				a, err := g.try(token, path+streamed+write(t), asJSON)
				if err != nil {
					t.Fatal(err)
				}
				if version = endOfState(a.body); version == "" {
					t.Fatalf("%d %s", a.code, a.body)
				}
				return version
			}
			for _, source := range []struct {
				of      string
				version func(t *testing.T) string
				at      *gateway
			}{
				{"another kind's write", write, one},
				{"the API server's own list", func(t *testing.T) string {
					t.Helper()
					write(t)
					return gjson.Get(oracle(t, path, asJSON).body, "metadata.resourceVersion").Str
				}, other},
				{"the other replica's bookmark", func(t *testing.T) string { t.Helper(); return bookmarkOf(t, other) }, one},
				{"this one's bookmark, at the other", func(t *testing.T) string { t.Helper(); return bookmarkOf(t, one) }, other},
			} {
				version := source.version(t)
				var asked sync.WaitGroup
				for _, form := range formsNotOlder(resource, namespace) {
					asked.Go(func() {
						if err := source.at.notOlder(token, form.path+version, form.accept, version); err != nil {
							t.Errorf("%s %s, not older than %s: %v", form.path, form.accept, source.of, err)
						}
					})
				}
				asked.Wait()
			}
		})
	}
}

// streamed begins a watch with the state, which is not older than a version, and ends soon after.
const streamed = "?watch=true&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&resourceVersion="

type formOfRead struct{ path, accept string }

// formsNotOlder are the ways in which something that is not older than a version is asked for, without the version.
func formsNotOlder(resource, namespace string) (forms []formOfRead) {
	const as = "application/json;g=meta.k8s.io;v=v1;as="
	everywhere, here := "/api/v1/"+resource, "/api/v1/namespaces/"+namespace+"/"+resource
	for _, accept := range []string{asJSON, as + "Table", as + "PartialObjectMetadataList"} {
		for _, path := range []string{
			everywhere + "?",
			here + "?",
			here + "?resourceVersionMatch=NotOlderThan&",
			everywhere + "?labelSelector=app%3Dquiet&",
			here + "?fieldSelector=metadata.name%3Db&",
			here + "?limit=1&",
			here + "?limit=2&resourceVersionMatch=NotOlderThan&labelSelector=app&",
			here + "?sort=-metadata.name&",
			here + "?search=a&",
		} {
			forms = append(forms, formOfRead{path + "resourceVersion=", accept})
		}
		one := strings.TrimSuffix(accept, "List")
		forms = append(forms, formOfRead{here + "/a?resourceVersion=", one}, formOfRead{here + streamed, one},
			formOfRead{everywhere + strings.Replace(streamed, "?", "?labelSelector=app%3Dquiet&", 1), one})
	}
	return append(forms, formOfRead{here + "?countBy=metadata.labels.app&resourceVersion=", asJSON})
}

// notOlder asks for something, and for its further pages, and is an error unless all is of a version, or of later ones.
func (g *gateway) notOlder(token, path, accept, version string) error {
	least, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return err
	}
	for next := path; ; {
		a, err := g.try(token, next, accept)
		if err != nil {
			return err
		}
		if a.code != http.StatusOK {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		var of string
		switch {
		case strings.Contains(path, "watch=true"):
			of = endOfState(a.body)
		case strings.Contains(path, "countBy="):
			of = gjson.Get(a.body, "resourceVersion").Str
		default:
			of = gjson.Get(a.body, "metadata.resourceVersion").Str
		}
		// An object's own version is that of its last change.
		if at, err := strconv.ParseUint(of, 10, 64); err != nil || at < least && !strings.Contains(path, "/a?") {
			return fmt.Errorf("it is of version %q: %s", of, a.body)
		}
		further := gjson.Get(a.body, "metadata.continue").Str
		if further == "" {
			return nil
		}
		next = path[:strings.LastIndex(path, "resourceVersion=")] + "continue=" + url.QueryEscape(further)
		next = strings.Replace(next, "resourceVersionMatch=NotOlderThan&", "", 1)
	}
}

// endOfState is the version of the bookmark behind the state; "" without one.
func endOfState(body string) string {
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, `{"type":"BOOKMARK"`) && strings.Contains(line, metav1.InitialEventsAnnotationKey) {
			if version := gjson.Get(line, "object.metadata.resourceVersion").Str; version != "" {
				return version
			}
			return gjson.Get(line, "object.rows.0.object.metadata.resourceVersion").Str // in a table
		}
	}
	return ""
}

// try asks for something, without a test that fails.
func (g *gateway) try(token, path, accept string) (answer, error) {
	request, err := http.NewRequest(http.MethodGet, g.url+path, nil)
	if err != nil {
		return answer{}, err
	}
	request.Header = bearer(token)
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}

// eventComesAndGoes makes an Event, and deletes it.
func (s *stage) eventComesAndGoes(t *testing.T, namespace string) {
	t.Helper()
	ctx, events := context.Background(), s.kube.CoreV1().Events(namespace)
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "passes"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "none"}}
	if _, err := events.Create(ctx, event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := events.Delete(ctx, event.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
