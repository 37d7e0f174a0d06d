//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// The test binary also serves as the benchmark's children.
func TestMain(m *testing.M) { process.TestMain(m, main) }

// Each workload runs in a small size, and the gateway delivers each change once.
func TestWorkloadsRunAndNothingIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	var out strings.Builder
	err := run([]string{"-quick"}, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
}

// Figures of compression mean nothing if the pods are copies of each other.
func TestPodsAreVariedAndAreTheirOwnAgain(t *testing.T) {
	names, uids := map[string]bool{}, map[string]bool{}
	nodes, images := map[string]bool{}, map[string]bool{}
	var all bytes.Buffer
	const count = 1000
	for number := range count {
		text := pod(number, apiserver.FirstVersion, mark.Mark{})
		if !bytes.Equal(text, pod(number, apiserver.FirstVersion, mark.Mark{})) {
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
