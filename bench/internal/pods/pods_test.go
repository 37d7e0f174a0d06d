//go:build linux

package pods

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/mark"
)

// Figures of compression mean nothing if the pods are copies of each other.
func TestPodsAreVariedAndAreTheirOwnAgain(t *testing.T) {
	names, uids := map[string]bool{}, map[string]bool{}
	nodes, images := map[string]bool{}, map[string]bool{}
	var all bytes.Buffer
	const count = 1000
	for number := range count {
		text := Pod(number, apiserver.FirstVersion, mark.Mark{})
		if !bytes.Equal(text, Pod(number, apiserver.FirstVersion, mark.Mark{})) {
			t.Fatalf("pod %d is another one each time", number)
		}
		all.Write(text)
		var p corev1.Pod
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		names[p.Namespace+"/"+p.Name], uids[string(p.UID)] = true, true
		nodes[p.Spec.NodeName], images[p.Spec.Containers[0].Image] = true, true
	}
	if len(names) != count || len(uids) != count || len(nodes) < 200 || len(images) < 100 {
		t.Errorf("%d pods have %d names, %d uids, %d nodes and %d images", count, len(names), len(uids), len(nodes), len(images))
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	each, coded := all.Len()/count, len(encoder.EncodeAll(all.Bytes(), nil))/count
	if each < 2500 || each > 5000 || coded < 250 {
		t.Errorf("a pod has %d bytes, and %d compressed", each, coded)
	}
}

// A million pods must be each other's strangers, too, and cheap to render.
func TestManyPodsHaveNamesUidsAndMarksOfTheirOwn(t *testing.T) {
	render := Many(64, 10)
	names, uids := map[string]bool{}, map[string]bool{}
	const count = 1000
	for number := range count {
		m := mark.Mark{Seq: uint64(number + 1), At: 5}
		text := render(number, 7777, m)
		var p corev1.Pod
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		names[p.Namespace+"/"+p.Name], uids[string(p.UID)] = true, true
		if found, ok := mark.Find(text); !ok || found != m || p.ResourceVersion != "7777" {
			t.Fatalf("pod %d has mark %v and version %s", number, found, p.ResourceVersion)
		}
	}
	if len(names) != count || len(uids) != count {
		t.Errorf("%d pods have %d names and %d uids", count, len(names), len(uids))
	}
}
