package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// makeConfigMap makes a ConfigMap that the selector app=a matches.
func (s *stage) makeConfigMap(t *testing.T, namespace, name string) {
	t.Helper()
	_, err := s.kube.CoreV1().ConfigMaps(namespace).Create(context.Background(), configMap(namespace, name, map[string]string{"app": "a"}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (f frame) mustName(t *testing.T, name string) frame {
	t.Helper()
	if !strings.Contains(f.data, fmt.Sprintf(`"name":%q`, name)) {
		t.Fatalf("%+v is not of %s", f, name)
	}
	return f
}

// A position that means nothing here is never an error: the client gets a reset with a reason, and then the state.
func TestUselessPositionsAreReset(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "useless")
	manifest, group := crd("useless") // a kind so young that the API server has no early versions of it
	s.kubectl(t, manifest, "apply", "-f", "-")
	s.kubectl(t, "", "wait", "--for=condition=Established", "crd", "trainings."+group)
	s.allow(t, strings.ToLower(t.Name()), group, "trainings")
	s.kubectl(t, fmt.Sprintf(`{"apiVersion": "%s/v1alpha1", "kind": "Training", "metadata": {"name": "one", "namespace": "useless"}}`, group), "create", "-f", "-")
	path := "/apis/" + group + "/v1alpha1/namespaces/useless/trainings"
	mustKnow(t, s.viewer(t), path, g)
	now, err := parsePosition(s.open(t, g, path, nil).find(t, "synced").id, single())
	if err != nil {
		t.Fatal(err)
	}
	for id, reason := range map[string]string{
		now.epoch + ".1":          "expired",
		"aaaaaaaa.1":              "epoch",
		"nonsense":                "epoch", // an epoch without versions
		"no position at all":      "unreadable",
		now.epoch + ".1.2":        "unreadable",
		now.epoch + ".-1":         "unreadable",
		now.epoch + ".01":         "unreadable",
		"42":                      "epoch", // the id of a server that counts events
		"../../etc/passwd":        "unreadable",
		strings.Repeat("a", 9000): "unreadable",
	} {
		stream := s.open(t, g, path, http.Header{"Last-Event-Id": {id}})
		reset := stream.mustEvent(t, "reset")
		if reset.reason(t) != reason || reset.id != now.epoch+".0" {
			t.Errorf("%.40q: %+v, not %s", id, reset, reason)
		}
		stream.mustEvent(t, "added").mustName(t, "one")
		if synced := stream.mustEvent(t, "synced"); !strings.HasSuffix(synced.data, `"count":1}`) {
			t.Errorf("%.40q: %+v", id, synced)
		}
		stream.close()
	}
	// Snapshots that were not complete begin again, without a reset.
	for _, id := range []string{now.epoch, now.epoch + ".0"} {
		s.open(t, g, path, http.Header{"Last-Event-Id": {id}}).mustEvent(t, "added").mustName(t, "one")
	}
	// A resourceVersion= that is too old leads to a reset, too.
	if reset := s.open(t, g, path+"?resourceVersion=1", nil).mustEvent(t, "reset"); reset.reason(t) != "expired" {
		t.Errorf("resourceVersion=1: %+v", reset)
	}
}

// A client may change its set of watches by reconnecting. Watches that its position names go on, new ones begin with
// a snapshot, and dropped ones are forgotten.
func TestSetOfWatchesMayChange(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "set-a", "set-b")
	s.makeConfigMap(t, "set-a", "a1")
	s.makeConfigMap(t, "set-b", "b1")
	a := scope{kind: configMapsKind, namespace: "set-a", labelSelector: "app=a"}.path()
	b := scope{kind: configMapsKind, namespace: "set-b", labelSelector: "app=a"}.path()

	stream := s.open(t, g, "/stream"+query("one", a), nil)
	stream.mustEvent(t, "one.added").mustName(t, "a1")
	id := stream.mustEvent(t, "one.synced").id
	stream.close()

	s.makeConfigMap(t, "set-a", "a2")
	stream = s.open(t, g, "/stream"+query("one", a, "two", b), http.Header{"Last-Event-Id": {id}})
	told := map[string]bool{}
	for len(told) < 3 {
		read := stream.mustTold(t)
		told[read.event+" "+read.data[max(0, strings.Index(read.data, `"name":`)):][:12]] = true
		id = read.id
		if read.event == "one.synced" || strings.HasSuffix(read.event, "reset") {
			t.Fatalf("told was %+v", read)
		}
	}
	both := several("one", "two")
	if p, err := parsePosition(id, both); err != nil || len(p.versions) != 2 {
		t.Errorf("the id is %q: %v", id, err)
	}
	stream.close()

	s.makeConfigMap(t, "set-b", "b2")
	stream = s.open(t, g, "/stream"+query("two", b), http.Header{"Last-Event-Id": {id}})
	read := stream.mustEvent(t, "two.added").mustName(t, "b2")
	if p, err := parsePosition(read.id, several("two")); err != nil || len(p.versions) != 1 {
		t.Errorf("the id is %q: %v", read.id, err)
	}
}

// Streams without a snapshot begin now, or after a version.
func TestStreamsWithoutSnapshot(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "bare")
	s.makeConfigMap(t, "bare", "one")
	path := scope{kind: configMapsKind, namespace: "bare", labelSelector: "app=a"}.path()
	stream := s.open(t, g, path, nil)
	stream.mustEvent(t, "added").mustName(t, "one")
	p, err := parsePosition(stream.mustEvent(t, "synced").id, single())
	if err != nil {
		t.Fatal(err)
	}
	quiet := s.open(t, g, path+"&sendInitialEvents=false", nil)
	quiet.mustNext(t) // the comment
	quiet.mustNext(t) // retry
	eventually(t, "the quiet stream is one of the gateway's", func() error { return g.streams(path, 2) })
	s.makeConfigMap(t, "bare", "two")
	stream.mustEvent(t, "added").mustName(t, "two")
	quiet.mustEvent(t, "added").mustName(t, "two")
	after := s.open(t, g, fmt.Sprintf("%s&resourceVersion=%d", path, p.versions[""]), nil)
	after.mustEvent(t, "added").mustName(t, "two")
	s.makeConfigMap(t, "bare", "three")
	after.mustEvent(t, "added").mustName(t, "three")
	// The position wins over the version in the address, since a browser that reconnects repeats the address.
	again := s.open(t, g, fmt.Sprintf("%s&resourceVersion=%d", path, p.versions[""]), http.Header{"Last-Event-Id": {quiet.lastID}})
	again.mustEvent(t, "added").mustName(t, "three")
	// Each of several watches has its own version, or the one that is given beside them.
	both := s.open(t, g, "/stream"+query("one", fmt.Sprintf("%s&resourceVersion=%d", path, p.versions[""]), "two", path)+"&sendInitialEvents=false", nil)
	both.mustEvent(t, "one.added").mustName(t, "two")
	both.mustEvent(t, "one.added").mustName(t, "three")
	s.makeConfigMap(t, "bare", "four")
	told := map[string]bool{both.mustTold(t).mustName(t, "four").event: true, both.mustTold(t).mustName(t, "four").event: true}
	if !told["one.added"] || !told["two.added"] {
		t.Errorf("told was %v", told)
	}
}

// The path of one object streams that object, and no other.
func TestStreamOfOneObject(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "one")
	maps := s.kube.CoreV1().ConfigMaps("one")
	stream := s.open(t, g, "/api/v1/namespaces/one/configmaps/mine", nil)
	if synced := stream.mustEvent(t, "synced"); !strings.HasSuffix(synced.data, `"count":0}`) {
		t.Errorf("%+v", synced)
	}
	s.makeConfigMap(t, "one", "mine-too")
	s.makeConfigMap(t, "one", "mine")
	stream.mustEvent(t, "added").mustName(t, "mine")
	if err := maps.Delete(context.Background(), "mine", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	stream.mustEvent(t, "deleted").mustName(t, "mine")
	s.makeConfigMap(t, "one", "mine")
	stream.mustEvent(t, "added").mustName(t, "mine")
}
